package hostsim

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
)

// system is what the machine boots from: a partition, or a mirror of two.
type system struct {
	drives []*drive
	nodes  []*node // of the mirror
}

const mirror = "sys/devices/virtual/block/md0"

// findSystem finds the boot drives. A description may have none.
func (m *Machine) findSystem() error {
	for _, d := range m.drives {
		if d.system {
			m.system.drives = append(m.system.drives, d)
		}
	}
	if n := len(m.system.drives); n > 2 {
		return fmt.Errorf("%d system drives: want one, or two for a mirror", n)
	}
	return nil
}

func (m *Machine) mirrored() bool { return len(m.system.drives) == 2 }

// refreshSystem rebuilds the mirror from the present halves.
func (m *Machine) refreshSystem() {
	for _, n := range m.system.nodes {
		m.tree.drop(n)
	}
	m.system.nodes = nil
	if !m.mirrored() {
		return
	}
	var halves []string
	var size uint64
	for _, d := range m.system.drives {
		if d.present && len(d.parts) == 2 {
			halves = append(halves, m.mustResolve("sys/class/block/"+d.parts[1].name))
			size = d.parts[1].sectors
		}
	}
	put := func(path, text string) {
		m.system.nodes = append(m.system.nodes, m.tree.put(path, &node{text: text}))
	}
	link := func(path, target string) {
		m.system.nodes = append(m.system.nodes, m.tree.put(path, &node{link: relative(path, target)}))
	}
	for name, text := range map[string]string{
		"dev": "9:0\n", "size": fmt.Sprintln(size - 264192), "stat": strings.Repeat("       0 ", 16) + "       0\n", "inflight": "       0        0\n",
		"ro": "0\n", "removable": "0\n", "hidden": "0\n", "range": "1\n", "ext_range": "256\n", "uevent": devUevent("9:0", "md0", "disk"),
		"md/level": "raid1\n", "md/raid_disks": "2\n", "md/array_state": "clean\n", "md/degraded": fmt.Sprintln(2 - len(halves)), "md/metadata_version": "1.2\n",
		"queue/logical_block_size": "512\n", "queue/physical_block_size": "512\n", "queue/rotational": "0\n", "queue/zoned": "none\n", "queue/scheduler": "none\n",
	} {
		put(mirror+"/"+name, text)
	}
	link(mirror+"/subsystem", "sys/class/block")
	link("sys/block/md0", mirror)
	link("sys/class/block/md0", mirror)
	link("sys/dev/block/9:0", mirror)
	for _, half := range halves {
		_, name := split(half)
		link(mirror+"/slaves/"+name, half)
		link(half+"/holders/md0", mirror)
	}
}

// booted reports whether the machine runs from a device.
func (m *Machine) booted(d *device) bool {
	return d.drive != nil && d.drive.system && d.number > 0 && d.number <= 2 && len(m.system.drives) > 0
}

// buildProc adds the mount table and the other files of /proc.
func (m *Machine) buildProc() {
	add := func(dev, target, fs, source, super string, opts ...string) {
		m.addMount(&mount{at: target, what: host.PlaceFolder, opts: append(opts, "relatime"), boot: super, own: host.Mount{DevNum: dev, Root: "/", FS: fs, Source: source}})
	}
	root, rootDev, rootFS := "rootfs", "0:2", "rootfs"
	if m.mirrored() {
		root, rootDev, rootFS = "md0", "9:0", "ext4"
	} else if len(m.system.drives) == 1 {
		root, rootDev, rootFS = m.system.drives[0].parts[1].name, m.system.drives[0].parts[1].num, "ext4"
	}
	if rootFS == "ext4" {
		add(rootDev, "/", rootFS, "/dev/"+root, "rw,errors=remount-ro")
		efi := m.system.drives[0].parts[0]
		add(efi.num, "/boot/efi", "vfat", "/dev/"+efi.name, "rw")
		for name, text := range map[string]string{"errors_count": "0\n", "warning_count": "0\n", "first_error_time": "0\n", "last_error_time": "0\n"} {
			m.tree.put("sys/fs/ext4/"+root+"/"+name, &node{text: text})
		}
	} else {
		add(rootDev, "/", rootFS, root, "rw")
	}
	add("0:20", "/proc", "proc", "proc", "rw", "nosuid", "nodev", "noexec")
	add("0:21", "/sys", "sysfs", "sysfs", "rw", "nosuid", "nodev", "noexec")
	add("0:5", "/dev", "devtmpfs", "udev", "rw", "nosuid")
	add("0:23", "/run", "tmpfs", "tmpfs", "rw", "nosuid", "nodev", "noexec")

	for _, dir := range []string{"proc/self", "proc/1"} {
		m.tree.put(dir+"/mountinfo", &node{read: m.mountinfo})
		m.tree.put(dir+"/mounts", &node{read: m.mountList})
	}
	m.tree.put("proc/mounts", &node{link: "self/mounts"})
	m.tree.put("proc/swaps", &node{text: "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"})
	m.nextBoot()
	m.tree.put("proc/sys/kernel/hostname", &node{text: m.name + "\n"})
	m.tree.put("etc/hostname", &node{text: m.name + "\n"})
}

// NextBoot sets a new boot ID, as a restart of the machine does. The caller ensures that nothing is
// mounted.
func (m *Machine) NextBoot() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nextBoot()
}

func (m *Machine) nextBoot() {
	m.boots++
	m.tree.put("proc/sys/kernel/random/boot_id", &node{text: fmt.Sprintf("5cd0e2a6-0f1e-4f0b-8a52-%012x\n", m.boots)})
}
