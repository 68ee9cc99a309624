package drivemgr

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
)

// usage knows what stands on each block device: mounts, swap, and the devices
// that the kernel has stacked on it.
type usage struct {
	sysfs  *sysfs
	mapper map[string]string       // /dev/mapper/x -> kernel name
	titles map[string]string       // kernel name -> x
	mounts map[string][]host.Mount // by MAJ:MIN
	named  map[string][]string     // kernel name -> mount points of filesystems without a device number
	pools  map[string][]string     // ZFS pool -> mount points
	swaps  map[string]bool         // by kernel name, or MAJ:MIN of what a swap file is on
	live   map[string]string       // kernel name -> filesystem that is mounted, here or where we cannot see
	ours   map[string]bool         // see InventoryOptions
}

// systemMounts are mount points without which the machine is not this machine.
// /home and /opt are in use like any other mount.
var systemMounts = map[string]bool{
	"/": true, "/boot": true, "/boot/efi": true, "/efi": true, "/usr": true, "/etc": true,
	"/var": true, "/var/lib": true, "/var/log": true, "/nix": true, "/nix/store": true, "/sysroot": true,
}

func readUses(s *sysfs, names []string, mounts []host.Mount) *usage {
	u := &usage{
		sysfs: s, mapper: map[string]string{}, titles: map[string]string{}, mounts: map[string][]host.Mount{}, named: map[string][]string{},
		pools: map[string][]string{}, swaps: map[string]bool{}, live: map[string]string{},
	}
	for _, name := range names {
		if strings.HasPrefix(name, "dm-") {
			title := s.text(s.blockDir + "/" + name + "/dm/name")
			u.mapper["/dev/mapper/"+title], u.titles[name] = name, title
		}
	}
	for _, fs := range []string{"ext4", "xfs", "f2fs"} { // each has a folder for every device it has mounted
		for _, name := range s.list("sys/fs/" + fs) {
			u.live[name] = fs
		}
	}
	for _, m := range mounts {
		u.readMount(m)
	}
	u.readBtrfs(mounts)
	u.readSwaps(mounts)
	return u
}

// kernelName is the name below sys/class/block of a path below /dev.
func (u *usage) kernelName(dev string) string {
	if name, ok := u.mapper[dev]; ok {
		return name
	}
	return path.Base(dev)
}

// readMount files a mount under what it is on. ZFS names a dataset of a pool;
// bcachefs has no device number of its own and names its devices; an old mount
// table has no numbers at all.
func (u *usage) readMount(m host.Mount) {
	switch {
	case m.DevNum != "" && !strings.HasPrefix(m.DevNum, "0:"):
		u.mounts[m.DevNum] = append(u.mounts[m.DevNum], m)
	case m.FS == "zfs":
		pool, _, _ := strings.Cut(m.Source, "/")
		u.pools[pool] = append(u.pools[pool], m.Target)
	case m.FS != "btrfs" && strings.HasPrefix(m.Source, "/dev/"):
		for _, dev := range strings.Split(m.Source, ":") {
			name := u.kernelName(dev)
			u.named[name] = append(u.named[name], m.Target)
		}
	}
}

// readBtrfs finds the devices of each mounted btrfs: its device number belongs
// to no device, and only one of several is named in the mount table, if it is:
// what the table calls "/dev/root" or by a link may be any of those in sysfs.
func (u *usage) readBtrfs(mounts []host.Mount) {
	var filesystems [][]string
	for _, fsid := range u.sysfs.list("sys/fs/btrfs") {
		devices := u.sysfs.list("sys/fs/btrfs/" + fsid + "/devices")
		filesystems = append(filesystems, devices)
		for _, d := range devices {
			u.live[d] = "btrfs"
		}
	}
	for _, m := range mounts {
		if m.FS != "btrfs" {
			continue
		}
		name := u.kernelName(m.Source)
		has := func(devices []string) bool { return slices.Contains(devices, name) }
		if len(filesystems) == 0 { // a copy without sys/fs
			u.named[name] = append(u.named[name], m.Target)
		}
		anybody := !slices.ContainsFunc(filesystems, has)
		for _, devices := range filesystems {
			for _, d := range devices {
				if anybody || has(devices) {
					u.named[d] = append(u.named[d], m.Target)
				}
			}
		}
	}
}

// readSwaps finds the devices that are swapped to, and those that a swap file is
// on: of the mounts, the deepest that holds the file.
func (u *usage) readSwaps(mounts []host.Mount) {
	text, _ := u.sysfs.read("proc/swaps")
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 || !strings.HasPrefix(f[0], "/") {
			continue
		}
		if strings.HasPrefix(f[0], "/dev/") {
			u.swaps[u.kernelName(f[0])] = true
			continue
		}
		var on host.Mount
		for _, m := range mounts {
			if len(m.Target) >= len(on.Target) && strings.HasPrefix(f[0], strings.TrimSuffix(m.Target, "/")+"/") {
				on = m
			}
		}
		if on.FS == "btrfs" {
			u.swaps[u.kernelName(on.Source)] = true
		} else if on.DevNum != "" {
			u.swaps[on.DevNum] = true
		}
	}
}

// give writes down who uses a drive, at any depth of the stack on it.
func (u *usage) give(d *drivebay.Drive) {
	w := walk{usage: u, drive: d, been: map[string]bool{}, said: map[drivebay.Use]bool{}}
	w.device(d.Paths[0].SysPath, d.Name, d.Paths[0].DevNum)
	used := w.foreign != ""
	switch {
	case used && d.Content.Kind == drivebay.ContentUnknown:
		d.Content.Kind, d.Content.Reason = drivebay.ContentForeign, inUse+w.foreign
	case !used && len(d.Uses) > 0 && onlyTable(d.Content, "gpt"), len(d.Uses) == 0 && u.ours[d.Name] && onlyTable(d.Content, "gpt", "dos"):
		// udev has seen the table that our partitions stand in, or one, perhaps half of
		// it, that we are just making or taking away. Whether all of it is ours is for
		// the bytes themselves to say.
		d.Content = drivebay.Content{Reason: drivebay.NotRead}
	}
}

// inUse begins the reason of a content that follows from who uses the drive. It was not
// read from the drive, and ends with the use.
const inUse = "in use: "

func fromUses(c drivebay.Content) bool { return strings.HasPrefix(c.Reason, inUse) }

// strangerIn finds a use that is not ours.
func strangerIn(uses []drivebay.Use) (drivebay.Use, bool) {
	if i := slices.IndexFunc(uses, func(u drivebay.Use) bool { return !u.Ours }); i >= 0 {
		return uses[i], true
	}
	return drivebay.Use{}, false
}

func onlyTable(c drivebay.Content, formats ...string) bool {
	return len(c.Signatures) == 1 && slices.Contains(formats, c.Signatures[0].Format)
}

// walk goes up the stack from one block device.
type walk struct {
	*usage
	drive  *drivebay.Drive
	been   map[string]bool
	said   map[drivebay.Use]bool // a machine can have a thousand mounts of one device
	within bool                  // at a partition that we made, or above one
	// A partition without a name in the kernel may be ours: only the table on the drive
	// says whose it is, and whose are the users of it.
	unnamed bool   // at such a partition, or above one
	foreign string // a use that cannot be ours, whatever the table says
}

func (w *walk) use(kind, device, what string) {
	if !w.unnamed || !mayBeOurs[kind] {
		w.sawForeign(kind)
	}
	what = strings.Clone(what) // it is a piece of a mount table, which would stay in memory for it
	if u := (drivebay.Use{Kind: kind, Device: device, What: what, Ours: w.within}); !w.said[u] {
		w.said[u] = true
		w.drive.Uses = append(w.drive.Uses, u)
	}
}

// mayBeOurs are the kinds of uses that our own partitions have; the others tell that a
// partition without a name is foreign.
var mayBeOurs = map[string]bool{"partition": true, "mount": true, "btrfs": true, "lvm": true, "crypt": true, "dm": true}

func (w *walk) sawForeign(kind string) {
	if !w.within && w.foreign == "" {
		w.foreign = kind
	}
}

func (w *walk) mount(kind, device, target string) {
	w.use(kind, device, target)
	if systemMounts[target] {
		w.drive.System = true
		w.sawForeign(kind)
	}
}

func (w *walk) device(dir, name, devnum string) {
	if w.been[name] {
		return
	}
	w.been[name] = true
	w.here(name, devnum)
	for _, part := range w.partitionsOf(dir, name) {
		within, unnamed := w.within, w.unnamed
		ours, named := w.madeByUs(part)
		w.within, w.unnamed = within || ours, unnamed || !named
		w.use("partition", path.Base(part), "")
		w.device(part, path.Base(part), w.sysfs.text(part+"/dev"))
		w.within, w.unnamed = within, unnamed
	}
	for _, holder := range w.sysfs.list(dir + "/holders") {
		up := w.sysfs.blockDir + "/" + holder
		kind, what := w.holder(up, holder)
		w.use(kind, holder, what)
		w.device(up, holder, w.sysfs.text(up+"/dev"))
	}
}

// partitionsOf lists the folders of the partitions of a device: in its own, or,
// where a copy has lost those, the ones named after it.
func (w *walk) partitionsOf(dir, name string) []string {
	if strings.HasPrefix(name, "dm-") { // the kernel makes none there, kpartx makes holders
		return nil
	}
	var out []string
	for _, entry := range w.sysfs.list(dir) {
		if strings.HasPrefix(entry, name) {
			if _, ok := w.sysfs.read(dir + "/" + entry + "/partition"); ok {
				out = append(out, dir+"/"+entry)
			}
		}
	}
	for _, part := range w.sysfs.partitions {
		if m := partitionName.FindStringSubmatch(part); m != nil && (m[1] == name || m[2] == name) && !slices.Contains(out, dir+"/"+part) {
			out = append(out, w.sysfs.blockDir+"/"+part)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return len(a) - len(b) }) // sda2 before sda10
	return out
}

// madeByUs goes by the name in the GPT: the kernel shows that of the partitions
// which it found itself (block/partitions/efi.c), udev that of all. A partition that
// the kernel was told of (BLKPG) has none: of such a one, what was read from the
// drive says enough.
func (w *walk) madeByUs(part string) (ours, named bool) {
	name, known := w.sysfs.udev(w.sysfs.text(part + "/dev"))["ID_PART_ENTRY_NAME"]
	b, _ := w.sysfs.read(part + "/uevent")
	for line := range strings.Lines(string(b)) {
		if title, ok := strings.CutPrefix(line, "PARTNAME="); ok {
			name, known = title, true
		}
	}
	if !known {
		return w.usage.ours[w.drive.Name], false
	}
	return strings.HasPrefix(name, content.OursPrefix), true
}

// partitionName splits "nvme0n1p2" and "sda2": a "p" stands between where the name
// of the drive ends in a digit (block/partitions/core.c).
var partitionName = regexp.MustCompile(`^(?:(.*\d)p\d+|(.*\D)\d+)$`)

// here notes what uses this very device.
func (w *walk) here(name, num string) {
	mounted := false
	for _, m := range w.mounts[num] {
		w.mount("mount", name, m.Target)
		mounted = true
	}
	kind := "mount"
	if w.live[name] == "btrfs" {
		kind = "btrfs"
	}
	for _, target := range w.named[name] {
		w.mount(kind, name, target)
		mounted = true
	}
	if w.live[name] != "" && !mounted { // for a container, or whoever has mounts of his own
		w.use(kind, name, "")
	}
	if w.swaps[name] || w.swaps[num] {
		w.use("swap", name, "")
		w.drive.System = true
	}
	if udev := w.sysfs.udev(num); udev["ID_FS_TYPE"] == "zfs_member" {
		pool := udev["ID_FS_LABEL"]
		w.use("zfs", name, pool)
		for _, target := range w.pools[pool] {
			w.mount("zfs", name, target)
		}
	}
}

// stacks names what the owner of a device-mapper device is, by the prefix of its
// uuid (each tool has one, see dmsetup(8) and lvm2's dev-manager).
var stacks = []struct{ prefix, kind string }{
	{"LVM-", "lvm"}, {"CRYPT-", "crypt"}, {"mpath-", "multipath"}, {"part", "partition"},
}

func (w *walk) holder(dir, name string) (kind, what string) {
	s := w.sysfs
	switch {
	case strings.HasPrefix(name, "md"):
		return "md", s.text(dir + "/md/level")
	case strings.HasPrefix(name, "bcache"):
		return "bcache", ""
	case !strings.HasPrefix(name, "dm-"):
		return "holder", ""
	}
	uuid := s.text(dir + "/dm/uuid")
	for _, k := range stacks {
		if strings.HasPrefix(uuid, k.prefix) {
			return k.kind, w.titles[name]
		}
	}
	return "dm", w.titles[name]
}
