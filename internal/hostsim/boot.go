package hostsim

import "github.com/drivebay/drivebay/internal/host"

// boot adds the mount table and the other files of /proc.
func boot(m *mounter, name string) {
	add := func(dev, target, fs, source, super string, opts ...string) {
		m.addMount(&mount{at: target, what: host.PlaceFolder, opts: append(opts, "relatime"), boot: super, own: host.Mount{DevNum: dev, Root: "/", FS: fs, Source: source}})
	}
	root, rootDev, rootFS := "rootfs", "0:2", "rootfs"
	if m.devices.mirrored() {
		root, rootDev, rootFS = "md0", "9:0", "ext4"
	} else if len(m.devices.system.drives) == 1 {
		root, rootDev, rootFS = m.devices.system.drives[0].parts[1].name, m.devices.system.drives[0].parts[1].num, "ext4"
	}
	if rootFS == "ext4" {
		add(rootDev, "/", rootFS, "/dev/"+root, "rw,errors=remount-ro")
		efi := m.devices.system.drives[0].parts[0]
		add(efi.num, "/boot/efi", "vfat", "/dev/"+efi.name, "rw")
		for name, text := range map[string]string{"errors_count": "0\n", "warning_count": "0\n", "first_error_time": "0\n", "last_error_time": "0\n"} {
			m.devices.tree.put("sys/fs/ext4/"+root+"/"+name, &node{text: text})
		}
	} else {
		add(rootDev, "/", rootFS, root, "rw")
	}
	add("0:20", "/proc", "proc", "proc", "rw", "nosuid", "nodev", "noexec")
	add("0:21", "/sys", "sysfs", "sysfs", "rw", "nosuid", "nodev", "noexec")
	add("0:5", "/dev", "devtmpfs", "udev", "rw", "nosuid")
	add("0:23", "/run", "tmpfs", "tmpfs", "rw", "nosuid", "nodev", "noexec")

	for _, dir := range []string{"proc/self", "proc/1"} {
		m.devices.tree.put(dir+"/mountinfo", &node{read: m.mountinfo})
		m.devices.tree.put(dir+"/mounts", &node{read: m.mountList})
	}
	m.devices.tree.put("proc/mounts", &node{link: "self/mounts"})
	m.devices.tree.put("proc/swaps", &node{text: "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"})
	m.devices.nextBoot()
	m.devices.tree.put("proc/sys/kernel/hostname", &node{text: name + "\n"})
	m.devices.tree.put("etc/hostname", &node{text: name + "\n"})
}
