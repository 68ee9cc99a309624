package drivemgr

import (
	"fmt"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// TestUsesWithoutADeviceNumber are filesystems and swaps that the mount table
// does not tie to a device by number.
func TestUsesWithoutADeviceNumber(t *testing.T) {
	rows := []struct {
		name   string
		files  map[string]string
		mounts []host.Mount
		want   string
		system bool
	}{
		{"a swap file on a data drive", map[string]string{"proc/swaps": "Filename Type\n/data/swap/file file 8388604 0 -2\n"},
			[]host.Mount{mount("254:0", "/", "ext4", "/dev/vda"), mount("8:0", "/data", "xfs", "/dev/sda"), mount("0:9", "/data/swap2", "tmpfs", "tmpfs")},
			"mount:sda:/data swap:sda", true},
		{"a swap file elsewhere", map[string]string{"proc/swaps": "Filename Type\n/swap file 8388604 0 -2\n"},
			[]host.Mount{mount("254:0", "/", "ext4", "/dev/vda"), mount("8:0", "/data", "xfs", "/dev/sda")},
			"mount:sda:/data", false},
		{"root on a ZFS pool", map[string]string{"run/udev/data/b8:0": "E:ID_FS_TYPE=zfs_member\nE:ID_FS_LABEL=rpool\n"},
			[]host.Mount{mount("0:27", "/", "zfs", "rpool/ROOT/debian"), mount("0:28", "/tank", "zfs", "tank")},
			"zfs:sda:rpool zfs:sda:/", true},
		{"bcachefs of two devices", nil,
			[]host.Mount{mount("0:40", "/data", "bcachefs", "/dev/sda:/dev/sdb")}, "mount:sda:/data", false},
		{"btrfs in a copy without sys/fs", nil,
			[]host.Mount{mount("0:35", "/usr", "btrfs", "/dev/sda")}, "mount:sda:/usr", true},
		{"mounted where we cannot see", map[string]string{"sys/fs/xfs/sda/error/fail_at_unmount": "1\n"}, nil, "mount:sda", false},
		{"/home is no system", nil, []host.Mount{mount("8:0", "/home", "ext4", "/dev/sda")}, "mount:sda:/home", false},
	}
	for _, r := range rows {
		w := tree{}
		w.sata(1, "sda", map[string]string{"serial": "A1"})
		for name, text := range r.files {
			w[name] = text
		}
		_, drives := w.observe(t, InventoryOptions{}, r.mounts...)
		if d := drives["sda"]; uses(d) != r.want || d.System != r.system {
			t.Errorf("%s: %q system %v, want %q %v", r.name, uses(d), d.System, r.want, r.system)
		}
	}
}

// TestPartitionsOfACopy are partitions whose folders were flattened: all that is
// left of the stack is their names.
func TestPartitionsOfACopy(t *testing.T) {
	w := tree{}
	for i, name := range []string{"sda", "sdaa", "nvme0n1", "sda1", "sda10", "sda2", "sdaa1", "nvme0n1p1"} {
		w["sys/class/block/"+name+"/size"], w["sys/class/block/"+name+"/dev"] = "2048\n", fmt.Sprintf("8:%d\n", i)
		if i > 2 {
			w["sys/class/block/"+name+"/partition"] = "1\n"
		}
	}
	files := without{w.machine(t), "sys/block"}
	drives := byName(Observe(files, []host.Mount{mount("8:4", "/", "ext4", "/dev/sda10")}, InventoryOptions{}))
	for name, want := range map[string]string{
		"sda": "partition:sda1 partition:sda2 partition:sda10 mount:sda10:/", "sdaa": "partition:sdaa1", "nvme0n1": "partition:nvme0n1p1",
	} {
		if d := drives[name]; uses(d) != want || d.System != (name == "sda") {
			t.Errorf("%s: %q system %v, want %q", name, uses(d), d.System, want)
		}
	}
}

// TestTrimmedCopy is a machine of which somebody kept next to nothing: the drive is
// listed all the same, and what is not known is left out.
func TestTrimmedCopy(t *testing.T) {
	w := tree{"sys/block/sda/queue/rotational": "0\n", "sys/block/loop0/queue/rotational": "0\n", "sys/block/sr0/queue/rotational": "1\n"}
	l, drives := w.observe(t, InventoryOptions{Loop: true})
	if d := drives["sda"]; names(l) != "sda" || !l.Complete || d.Size != 0 || d.Type != drivebay.TypeSSD || d.ID != "path-sda" || d.IdentityIssue == "" {
		t.Errorf("%q, complete %v, %+v", names(l), l.Complete, d)
	}
}

func TestThousandMounts(t *testing.T) {
	w := tree{}
	w.sata(1, "sda", map[string]string{"serial": "A1"})
	var mounts []host.Mount
	for i := range 1000 {
		mounts = append(mounts, mount("8:0", fmt.Sprintf("/pods/%d", i%500), "ext4", "/dev/sda"))
	}
	if _, drives := w.observe(t, InventoryOptions{}, mounts...); len(drives["sda"].Uses) != 500 {
		t.Errorf("%d uses of 500 mount points", len(drives["sda"].Uses))
	}
}
