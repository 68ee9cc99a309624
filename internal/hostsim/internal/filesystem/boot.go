package filesystem

import (
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// Boot adds the mount table and the other files of /proc.
func Boot(m *Mounter, name string) {
	add := func(dev, target, fs, source, super string, opts ...string) {
		m.addMount(&mount{at: target, what: host.PlaceFolder, opts: append(opts, "relatime"), boot: super, own: host.Mount{DevNum: dev, Root: "/", FS: fs, Source: source}})
	}
	root, rootDev, rootFS := "rootfs", "0:2", "rootfs"
	if m.devices.Mirrored() {
		root, rootDev, rootFS = "md0", "9:0", "ext4"
	} else if len(m.devices.System.Drives) == 1 {
		root, rootDev, rootFS = m.devices.System.Drives[0].Parts[1].Name, m.devices.System.Drives[0].Parts[1].Num, "ext4"
	}
	if rootFS == "ext4" {
		add(rootDev, "/", rootFS, "/dev/"+root, "rw,errors=remount-ro")
		efi := m.devices.System.Drives[0].Parts[0]
		add(efi.Num, "/boot/efi", "vfat", "/dev/"+efi.Name, "rw")
		for name, text := range map[string]string{"errors_count": "0\n", "warning_count": "0\n", "first_error_time": "0\n", "last_error_time": "0\n"} {
			m.devices.Tree.Put("sys/fs/ext4/"+root+"/"+name, &sysfs.Node{Text: text})
		}
	} else {
		add(rootDev, "/", rootFS, root, "rw")
	}
	add("0:20", "/proc", "proc", "proc", "rw", "nosuid", "nodev", "noexec")
	add("0:21", "/sys", "sysfs", "sysfs", "rw", "nosuid", "nodev", "noexec")
	add("0:5", "/dev", "devtmpfs", "udev", "rw", "nosuid")
	add("0:23", "/run", "tmpfs", "tmpfs", "rw", "nosuid", "nodev", "noexec")

	for _, dir := range []string{"proc/self", "proc/1"} {
		m.devices.Tree.Put(dir+"/mountinfo", &sysfs.Node{Read: m.mountinfo})
		m.devices.Tree.Put(dir+"/mounts", &sysfs.Node{Read: m.mountList})
	}
	m.devices.Tree.Put("proc/mounts", &sysfs.Node{Link: "self/mounts"})
	m.devices.Tree.Put("proc/swaps", &sysfs.Node{Text: "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"})
	m.devices.NextBoot()
	m.devices.Tree.Put("proc/sys/kernel/hostname", &sysfs.Node{Text: name + "\n"})
	m.devices.Tree.Put("etc/hostname", &sysfs.Node{Text: name + "\n"})
}
