//go:build lab

package suite

import (
	"testing"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabToolbox: what later tests build on is in the image and works on its
// kernel: LVM of every kind that we make, encryption, filesystems, DRBD.
func TestLabToolbox(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("NV0"), nvme("NV1"), nvme("NV2")}})
	dev := func(id string) string { return "/dev/" + m.Name(id) }
	for _, step := range []struct{ name, line string }{
		{"lvm", "vgcreate -q vg " + dev("NV0") + " " + dev("NV1")},
		{"linear", "lvcreate -q -y -L 400M -n linear vg"},
		{"thin", "lvcreate -q -y -L 200M -T vg/pool -V 1G -n thin && lvcreate -q -y -s -n snap vg/thin"},
		{"mirror", "lvcreate -q -y -L 100M --type raid1 -m 1 -n mirror vg"},
		{"report", "lvs --reportformat json vg | grep -q mirror"},
		{"xfs", "mkfs.xfs -q /dev/vg/linear && mkdir -p /mnt/a && mount /dev/vg/linear /mnt/a && xfs_info /mnt/a >/dev/null && umount /mnt/a"},
		{"ext4", "mkfs.ext4 -q /dev/vg/thin && mkdir -p /mnt/b && mount /dev/vg/thin /mnt/b && fstrim /mnt/b && umount /mnt/b && e2fsck -fn /dev/vg/thin"},
		{"luks", "echo secret | cryptsetup -q luksFormat --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file - " + dev("NV2") + " && echo secret | cryptsetup open --key-file - " + dev("NV2") + " plain"},
		{"btrfs", "mkfs.btrfs -q /dev/mapper/plain && mkdir -p /mnt/c && mount /dev/mapper/plain /mnt/c && umount /mnt/c && cryptsetup close plain"},
		{"partitions", "wipefs -qa " + dev("NV2") + " && sgdisk -n 1:0:+100M " + dev("NV2") + " >/dev/null; for i in $(seq 100); do [ -b " + dev("NV2") + "p1 ] && exit; sleep 0.1; done; exit 1"},
		{"drbd", "modprobe drbd && drbdadm --version | grep -q DRBDADM_VERSION"},
		{"io limits", "grep -qw io /sys/fs/cgroup/cgroup.controllers"},
	} {
		t.Run(step.name, func(t *testing.T) { m.For(t).Sh("%s", step.line) })
	}
}
