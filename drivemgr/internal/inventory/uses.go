package inventory

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/sysfs"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
)

// usage holds what uses each block device: mounts, swap, and the devices that the kernel
// has stacked on it.
type usage struct {
	sysfs     *sysfs.Reader
	mapper    map[string]string       // /dev/mapper/x -> kernel name
	titles    map[string]string       // kernel name -> x
	mounts    map[string][]host.Mount // by MAJ:MIN
	named     map[string][]string     // kernel name -> mount points of filesystems without a device number
	pools     map[string][]string     // ZFS pool -> mount points
	swaps     map[string]bool         // by kernel name, or MAJ:MIN of the device below a swap file
	mountedFS map[string]string       // kernel name -> filesystem that is mounted, maybe in another mount namespace
	ours      map[string]bool         // see Options.Ours
}

// systemMounts holds mount points that the machine needs to run. /home and /opt count as
// ordinary mounts.
var systemMounts = map[string]bool{
	"/": true, "/boot": true, "/boot/efi": true, "/efi": true, "/usr": true, "/etc": true,
	"/var": true, "/var/lib": true, "/var/log": true, "/nix": true, "/nix/store": true, "/sysroot": true,
}

func readUses(s *sysfs.Reader, names []string, mounts []host.Mount) *usage {
	u := &usage{
		sysfs: s, mapper: map[string]string{}, titles: map[string]string{}, mounts: map[string][]host.Mount{}, named: map[string][]string{},
		pools: map[string][]string{}, swaps: map[string]bool{}, mountedFS: map[string]string{},
	}
	for _, name := range names {
		if strings.HasPrefix(name, "dm-") {
			title := s.Text(s.BlockDir + "/" + name + "/dm/name")
			u.mapper["/dev/mapper/"+title], u.titles[name] = name, title
		}
	}
	for _, fs := range []string{"ext4", "xfs", "f2fs"} { // each has a folder for every mounted device
		for _, name := range s.List("sys/fs/" + fs) {
			u.mountedFS[name] = fs
		}
	}
	for _, m := range mounts {
		u.readMount(m)
	}
	u.readBtrfs(mounts)
	u.readSwaps(mounts)
	return u
}

// kernelName returns the name below sys/class/block of a path below /dev.
func (u *usage) kernelName(dev string) string {
	if name, ok := u.mapper[dev]; ok {
		return name
	}
	return path.Base(dev)
}

// readMount records a mount under its device. ZFS names a dataset of a pool; bcachefs
// has no device number and names its devices; an old mount table has no device numbers.
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

// readBtrfs finds the devices of each mounted btrfs: its device number belongs to no
// device, and the mount table names at most one of its devices. If it names "/dev/root"
// or a link, any filesystem in sysfs may be meant.
func (u *usage) readBtrfs(mounts []host.Mount) {
	var filesystems [][]string
	for _, fsid := range u.sysfs.List("sys/fs/btrfs") {
		devices := u.sysfs.List("sys/fs/btrfs/" + fsid + "/devices")
		filesystems = append(filesystems, devices)
		for _, d := range devices {
			u.mountedFS[d] = "btrfs"
		}
	}
	for _, m := range mounts {
		if m.FS != "btrfs" {
			continue
		}
		name := u.kernelName(m.Source)
		has := func(devices []string) bool { return slices.Contains(devices, name) }
		if len(filesystems) == 0 { // a recording without sys/fs
			u.named[name] = append(u.named[name], m.Target)
		}
		anyFilesystem := !slices.ContainsFunc(filesystems, has)
		for _, devices := range filesystems {
			for _, d := range devices {
				if anyFilesystem || has(devices) {
					u.named[d] = append(u.named[d], m.Target)
				}
			}
		}
	}
}

// readSwaps finds the swap devices, and the devices below swap files: a file is on the
// mount with the longest path that contains it.
func (u *usage) readSwaps(mounts []host.Mount) {
	text, _ := u.sysfs.Read("proc/swaps")
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 || !strings.HasPrefix(f[0], "/") {
			continue
		}
		f[0] = host.Unescape(f[0])
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

// addUses records the uses of a drive, at any depth of the stack of devices on it.
func (u *usage) addUses(d *drivebay.Drive) {
	w := useCollector{usage: u, drive: d, visited: map[string]bool{}, recorded: map[drivebay.Use]bool{}}
	w.device(d.Paths[0].SysPath, d.Name, d.Paths[0].DevNum)
	used := w.foreign != ""
	switch {
	case used && d.Content.Kind == drivebay.ContentUnknown:
		d.Content.Kind, d.Content.Reason = drivebay.ContentForeign, inUse+w.foreign
	case !used && len(d.Uses) > 0 && onlyTable(d.Content, "gpt"), len(d.Uses) == 0 && onlyTable(d.Content, "gpt", "dos", "PMBR"):
		// udev has seen the table with our partitions, or a table of which the kernel shows none: half of one
		// that drivebay is writing or removing, or one for blocks of another size. Only the content of the
		// drive shows whether it is ours.
		d.Content = drivebay.Content{Reason: drivebay.NotRead}
	}
}

// inUse begins the reason of a content that follows from the uses of a drive. It was not
// read from the drive, and ends with the use.
const inUse = "in use: "

// FromUses reports whether a content was derived from uses of the drive and not read from it.
func FromUses(c drivebay.Content) bool { return strings.HasPrefix(c.Reason, inUse) }

// ForeignUse returns the first use that is not drivebay's.
func ForeignUse(uses []drivebay.Use) (drivebay.Use, bool) {
	if i := slices.IndexFunc(uses, func(u drivebay.Use) bool { return !u.Ours }); i >= 0 {
		return uses[i], true
	}
	return drivebay.Use{}, false
}

func onlyTable(c drivebay.Content, formats ...string) bool {
	return len(c.Signatures) == 1 && slices.Contains(formats, c.Signatures[0].Format)
}

// useCollector collects the uses up the stack from one block device.
type useCollector struct {
	*usage
	drive    *drivebay.Drive
	visited  map[string]bool
	recorded map[drivebay.Use]bool // one device can have a thousand mounts
	within   bool                  // at a partition that drivebay made, or above one
	// A partition without a name in the kernel may be ours, and so may its users: only the
	// partition table on the drive shows that.
	unnamed bool   // at such a partition, or above one
	foreign string // a use that cannot be ours, whatever the table holds
}

func (w *useCollector) use(kind, device, what string) {
	if !w.unnamed || !mayBeOurs[kind] {
		w.sawForeign(kind)
	}
	what = strings.Clone(what) // a copy, so that the mount table can be freed
	if u := (drivebay.Use{Kind: kind, Device: device, What: what, Ours: w.within}); !w.recorded[u] {
		w.recorded[u] = true
		w.drive.Uses = append(w.drive.Uses, u)
	}
}

// mayBeOurs holds the kinds of uses that drivebay partitions have; any other kind shows
// that a partition without a name is foreign.
var mayBeOurs = map[string]bool{"partition": true, "mount": true, "btrfs": true, "lvm": true, "crypt": true, "dm": true}

func (w *useCollector) sawForeign(kind string) {
	if !w.within && w.foreign == "" {
		w.foreign = kind
	}
}

func (w *useCollector) mount(kind, device, target string) {
	w.use(kind, device, target)
	if systemMounts[target] {
		w.drive.System = true
		w.sawForeign(kind)
	}
}

func (w *useCollector) device(dir, name, devnum string) {
	if w.visited[name] {
		return
	}
	w.visited[name] = true
	w.ownUses(name, devnum)
	for _, part := range w.partitionsOf(dir, name) {
		within, unnamed := w.within, w.unnamed
		ours, named := w.isOurPartition(part)
		w.within, w.unnamed = within || ours, unnamed || !named
		w.use("partition", path.Base(part), "")
		w.device(part, path.Base(part), w.sysfs.Text(part+"/dev"))
		w.within, w.unnamed = within, unnamed
	}
	for _, holder := range w.sysfs.List(dir + "/holders") {
		up := w.sysfs.BlockDir + "/" + holder
		kind, what := w.holder(up, holder)
		w.use(kind, holder, what)
		w.device(up, holder, w.sysfs.Text(up+"/dev"))
	}
}

// partitionsOf lists the sysfs directories of the partitions of a device: those in its own
// directory and, in a recording without them, those with its name.
func (w *useCollector) partitionsOf(dir, name string) []string {
	if strings.HasPrefix(name, "dm-") { // the kernel makes none there, kpartx makes holders
		return nil
	}
	var out []string
	for _, entry := range w.sysfs.List(dir) {
		if strings.HasPrefix(entry, name) {
			if _, ok := w.sysfs.Read(dir + "/" + entry + "/partition"); ok {
				out = append(out, dir+"/"+entry)
			}
		}
	}
	for _, part := range w.sysfs.Partitions {
		if m := partitionName.FindStringSubmatch(part); m != nil && (m[1] == name || m[2] == name) && !slices.Contains(out, dir+"/"+part) {
			out = append(out, w.sysfs.BlockDir+"/"+part)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return len(a) - len(b) }) // sda2 before sda10
	return out
}

// isOurPartition reports whether drivebay made a partition, by its name in the GPT: the kernel shows it for partitions that it
// found itself (block/partitions/efi.c), udev for all. A partition that was added by
// BLKPG has no name in the kernel: for that one the content of the drive decides.
func (w *useCollector) isOurPartition(part string) (ours, named bool) {
	name, known := w.sysfs.Udev(w.sysfs.Text(part + "/dev"))["ID_PART_ENTRY_NAME"]
	b, _ := w.sysfs.Read(part + "/uevent")
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

// partitionName matches "nvme0n1p2" and "sda2": a "p" separates the number when the name
// of the drive ends in a digit (block/partitions/core.c).
var partitionName = regexp.MustCompile(`^(?:(.*\d)p\d+|(.*\D)\d+)$`)

// ownUses records the uses of this device itself.
func (w *useCollector) ownUses(name, num string) {
	mounted := false
	for _, m := range w.mounts[num] {
		w.mount("mount", name, m.Target)
		mounted = true
	}
	kind := "mount"
	if w.mountedFS[name] == "btrfs" {
		kind = "btrfs"
	}
	for _, target := range w.named[name] {
		w.mount(kind, name, target)
		mounted = true
	}
	if w.mountedFS[name] != "" && !mounted { // mounted in a container or another mount namespace
		w.use(kind, name, "")
	}
	if w.swaps[name] || w.swaps[num] {
		w.use("swap", name, "")
		w.drive.System = true
	}
	if udev := w.sysfs.Udev(num); udev["ID_FS_TYPE"] == "zfs_member" {
		pool := udev["ID_FS_LABEL"]
		w.use("zfs", name, pool)
		for _, target := range w.pools[pool] {
			w.mount("zfs", name, target)
		}
	}
}

// stacks maps the prefix of a device-mapper uuid to the kind of device (each tool has
// its prefix, see dmsetup(8) and lvm2's dev-manager).
var stacks = []struct{ prefix, kind string }{
	{"LVM-", "lvm"}, {"CRYPT-", "crypt"}, {"mpath-", "multipath"}, {"part", "partition"},
}

func (w *useCollector) holder(dir, name string) (kind, what string) {
	s := w.sysfs
	switch {
	case strings.HasPrefix(name, "md"):
		return "md", s.Text(dir + "/md/level")
	case strings.HasPrefix(name, "bcache"):
		return "bcache", ""
	case !strings.HasPrefix(name, "dm-"):
		return "holder", ""
	}
	uuid := s.Text(dir + "/dm/uuid")
	for _, k := range stacks {
		if strings.HasPrefix(uuid, k.prefix) {
			return k.kind, w.titles[name]
		}
	}
	return "dm", w.titles[name]
}
