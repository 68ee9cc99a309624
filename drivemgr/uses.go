package drivemgr

import (
	"path"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// usage knows what stands on each block device: mounts, swap, and the devices
// that the kernel has stacked on it.
type usage struct {
	sysfs  *sysfs
	mounts map[string][]host.Mount // by MAJ:MIN
	swaps  map[string]bool         // by kernel name
	btrfs  map[string][]string     // kernel name -> mount points of its filesystem
}

// systemMounts are mount points without which the machine does not run.
var systemMounts = map[string]bool{
	"/": true, "/boot": true, "/boot/efi": true, "/efi": true, "/usr": true, "/etc": true,
	"/var": true, "/var/lib": true, "/var/log": true, "/opt": true, "/home": true, "/nix": true, "/sysroot": true,
}

func readUses(s *sysfs, names []string, mounts []host.Mount) *usage {
	u := &usage{sysfs: s, mounts: map[string][]host.Mount{}, swaps: map[string]bool{}, btrfs: map[string][]string{}}
	byName := map[string]string{} // /dev/mapper/x and the like -> kernel name
	for _, name := range names {
		if dm := s.dmName(name); dm != "" {
			byName["/dev/mapper/"+dm] = name
		}
	}
	kernelName := func(dev string) string {
		if name, ok := byName[dev]; ok {
			return name
		}
		return path.Base(dev)
	}
	for _, m := range mounts {
		if m.DevNum == "" { // an old table without numbers: go by the name
			m.DevNum = s.text("sys/class/block/" + kernelName(m.Source) + "/dev")
		}
		u.mounts[m.DevNum] = append(u.mounts[m.DevNum], m)
	}
	swaps, _ := s.read("proc/swaps")
	for line := range strings.Lines(string(swaps)) {
		if dev, _, _ := strings.Cut(line, " "); strings.HasPrefix(dev, "/dev/") {
			u.swaps[kernelName(strings.TrimSpace(dev))] = true
		}
	}
	u.readBtrfs(mounts, kernelName)
	return u
}

func (s *sysfs) dmName(name string) string {
	if !strings.HasPrefix(name, "dm-") {
		return ""
	}
	return s.text(s.blockDir + "/" + name + "/dm/name")
}

// readBtrfs finds the devices of each mounted btrfs: its device number belongs
// to no device, and only one of several is named in the mount table, if it is:
// what the table calls "/dev/root" or by a link may be any of those in sysfs.
func (u *usage) readBtrfs(mounts []host.Mount, kernelName func(string) string) {
	var filesystems [][]string
	for _, fsid := range u.sysfs.list("sys/fs/btrfs") {
		filesystems = append(filesystems, u.sysfs.list("sys/fs/btrfs/"+fsid+"/devices"))
	}
	for _, m := range mounts {
		if m.FS != "btrfs" {
			continue
		}
		has := func(devices []string) bool { return slices.Contains(devices, kernelName(m.Source)) }
		anybody := !slices.ContainsFunc(filesystems, has)
		for _, devices := range filesystems {
			for _, d := range devices {
				if anybody || has(devices) {
					u.btrfs[d] = append(u.btrfs[d], m.Target)
				}
			}
		}
	}
}

// give writes down who uses a drive, at any depth of the stack on it.
func (u *usage) give(d *drivebay.Drive) {
	u.walk(d, d.Paths[0].SysPath, d.Name, map[string]bool{})
	if len(d.Uses) > 0 && d.Content.Kind == drivebay.ContentUnknown {
		d.Content.Kind, d.Content.Reason = drivebay.ContentForeign, "in use: "+d.Uses[0].Kind
	}
}

func (u *usage) walk(d *drivebay.Drive, dir, name string, been map[string]bool) {
	if been[name] {
		return
	}
	been[name] = true
	u.here(d, dir, name)
	for _, entry := range u.sysfs.list(dir) {
		if strings.HasPrefix(entry, name) && u.sysfs.exists(dir+"/"+entry+"/partition") {
			addUse(d, drivebay.Use{Kind: "partition", Device: entry})
			u.walk(d, dir+"/"+entry, entry, been)
		}
	}
	for _, holder := range u.sysfs.list(dir + "/holders") {
		up := u.sysfs.blockDir + "/" + holder
		addUse(d, u.holder(up, holder))
		u.walk(d, up, holder, been)
	}
}

// here notes what uses this very device.
func (u *usage) here(d *drivebay.Drive, dir, name string) {
	devnum := u.sysfs.text(dir + "/dev")
	for _, m := range u.mounts[devnum] {
		addUse(d, drivebay.Use{Kind: "mount", Device: name, What: m.Target})
		d.System = d.System || systemMounts[m.Target]
	}
	for _, target := range u.btrfs[name] {
		addUse(d, drivebay.Use{Kind: "btrfs", Device: name, What: target})
		d.System = d.System || systemMounts[target]
	}
	if u.swaps[name] {
		addUse(d, drivebay.Use{Kind: "swap", Device: name})
		d.System = true
	}
	if u.sysfs.udev(devnum)["ID_FS_TYPE"] == "zfs_member" {
		addUse(d, drivebay.Use{Kind: "zfs", Device: name})
	}
}

// stacks names what the owner of a device-mapper device is, by the prefix of its
// uuid (each tool has one, see dmsetup(8) and lvm2's dev-manager).
var stacks = []struct{ prefix, kind string }{
	{"LVM-", "lvm"}, {"CRYPT-", "crypt"}, {"mpath-", "multipath"}, {"part", "partition"},
}

func (u *usage) holder(dir, name string) drivebay.Use {
	use := drivebay.Use{Kind: "holder", Device: name}
	switch {
	case strings.HasPrefix(name, "md"):
		use.Kind, use.What = "md", u.sysfs.text(dir+"/md/level")
	case strings.HasPrefix(name, "bcache"):
		use.Kind = "bcache"
	case strings.HasPrefix(name, "dm-"):
		use.Kind, use.What = "dm", u.sysfs.text(dir+"/dm/name")
		uuid := u.sysfs.text(dir + "/dm/uuid")
		for _, s := range stacks {
			if strings.HasPrefix(uuid, s.prefix) {
				use.Kind = s.kind
				break
			}
		}
	}
	return use
}

func addUse(d *drivebay.Drive, u drivebay.Use) {
	if !slices.Contains(d.Uses, u) {
		d.Uses = append(d.Uses, u)
	}
}
