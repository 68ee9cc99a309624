package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/host/hosttest"
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
			[]host.Mount{hosttest.Mount("254:0", "/", "ext4", "/dev/vda"), hosttest.Mount("8:0", "/data", "xfs", "/dev/sda"), hosttest.Mount("0:9", "/data/swap2", "tmpfs", "tmpfs")},
			"mount:sda:/data swap:sda", true},
		{"a swap file below a blank", map[string]string{"proc/swaps": "Filename Type\n/data\\040of\\040users/swap file 8388604 0 -2\n"},
			[]host.Mount{hosttest.Mount("254:0", "/", "ext4", "/dev/vda"), hosttest.Mount("8:0", "/data of users", "xfs", "/dev/sda")},
			"mount:sda:/data of users swap:sda", true},
		{"a swap file elsewhere", map[string]string{"proc/swaps": "Filename Type\n/swap file 8388604 0 -2\n"},
			[]host.Mount{hosttest.Mount("254:0", "/", "ext4", "/dev/vda"), hosttest.Mount("8:0", "/data", "xfs", "/dev/sda")},
			"mount:sda:/data", false},
		{"root on a ZFS pool", map[string]string{"run/udev/data/b8:0": "E:ID_FS_TYPE=zfs_member\nE:ID_FS_LABEL=rpool\n"},
			[]host.Mount{hosttest.Mount("0:27", "/", "zfs", "rpool/ROOT/debian"), hosttest.Mount("0:28", "/tank", "zfs", "tank")},
			"zfs:sda:rpool zfs:sda:/", true},
		{"bcachefs of two devices", nil,
			[]host.Mount{hosttest.Mount("0:40", "/data", "bcachefs", "/dev/sda:/dev/sdb")}, "mount:sda:/data", false},
		{"btrfs in a copy without sys/fs", nil,
			[]host.Mount{hosttest.Mount("0:35", "/usr", "btrfs", "/dev/sda")}, "mount:sda:/usr", true},
		{"mounted where we cannot see", map[string]string{"sys/fs/xfs/sda/error/fail_at_unmount": "1\n"}, nil, "mount:sda", false},
		{"/home is no system", nil, []host.Mount{hosttest.Mount("8:0", "/home", "ext4", "/dev/sda")}, "mount:sda:/home", false},
	}
	for _, r := range rows {
		w := hosttest.Tree{}
		w.SATA(1, "sda", map[string]string{"serial": "A1"})
		for name, text := range r.files {
			w[name] = text
		}
		_, drives := listTree(t, w, Options{}, r.mounts...)
		if d := drives["sda"]; uses(d) != r.want || d.System != r.system {
			t.Errorf("%s: %q system %v, want %q %v", r.name, uses(d), d.System, r.want, r.system)
		}
	}
}

// TestPartitionsOfACopy are partitions whose folders were flattened: all that is
// left of the stack is their names.
func TestPartitionsOfACopy(t *testing.T) {
	w := hosttest.Tree{}
	for i, name := range []string{"sda", "sdaa", "nvme0n1", "sda1", "sda10", "sda2", "sdaa1", "nvme0n1p1"} {
		w["sys/class/block/"+name+"/size"], w["sys/class/block/"+name+"/dev"] = "2048\n", fmt.Sprintf("8:%d\n", i)
		if i > 2 {
			w["sys/class/block/"+name+"/partition"] = "1\n"
		}
	}
	files := without{w.Machine(t), "sys/block"}
	drives := byName(Observe(files, []host.Mount{hosttest.Mount("8:4", "/", "ext4", "/dev/sda10")}, Options{}))
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
	w := hosttest.Tree{"sys/block/sda/queue/rotational": "0\n", "sys/block/loop0/queue/rotational": "0\n", "sys/block/sr0/queue/rotational": "1\n"}
	l, drives := listTree(t, w, Options{Loop: true})
	if d := drives["sda"]; names(l) != "sda" || !l.Complete || d.Size != 0 || d.Type != drivebay.TypeSSD || d.ID != "path-sda" || d.IdentityIssue == "" {
		t.Errorf("%q, complete %v, %+v", names(l), l.Complete, d)
	}
}

func TestThousandMounts(t *testing.T) {
	w := hosttest.Tree{}
	w.SATA(1, "sda", map[string]string{"serial": "A1"})
	var mounts []host.Mount
	for i := range 1000 {
		mounts = append(mounts, hosttest.Mount("8:0", fmt.Sprintf("/pods/%d", i%500), "ext4", "/dev/sda"))
	}
	if _, drives := listTree(t, w, Options{}, mounts...); len(drives["sda"].Uses) != 500 {
		t.Errorf("%d uses of 500 mount points", len(drives["sda"].Uses))
	}
}

// TestOurUses: what stands on a partition that we made keeps no drive from being
// ours; anything else on the same drive does.
func TestOurUses(t *testing.T) {
	build := func() (hosttest.Tree, string) {
		w := hosttest.Tree{}
		a := w.SATA(1, "sda", map[string]string{"serial": "A1"})
		w["run/udev/data/b8:0"] = "E:ID_PART_TABLE_TYPE=gpt\n"
		one, two := w.Partition(a, "sda1", "8:1"), w.Partition(a, "sda2", "8:2")
		w[one+"/uevent"], w[two+"/uevent"] = "MAJOR=8\nPARTN=1\nPARTNAME=drivebay-x\n", "PARTN=2\nPARTNAME=drivebay-pv-1\n"
		w.DM(0, "drivebay--g-drivebay--v", "LVM-x", two)
		return w, a
	}
	noNames := func(w hosttest.Tree, a string) { delete(w, a+"/sda1/uevent"); delete(w, a+"/sda2/uevent") }
	mounts := []host.Mount{hosttest.Mount("8:1", "/var/lib/kubelet/a", "ext4", "/dev/sda1"), hosttest.Mount("253:0", "/var/lib/kubelet/b", "xfs", "x")}
	for name, c := range map[string]struct {
		change  func(w hosttest.Tree, a string)
		mounts  []host.Mount
		content drivebay.ContentKind
		refused string
		opt     Options
	}{
		"all ours":                  {nil, mounts, drivebay.ContentUnknown, "", Options{}},
		"a stranger's partition":    {func(w hosttest.Tree, a string) { w.Partition(a, "sda3", "8:3") }, mounts, drivebay.ContentUnknown, "sda3", Options{}},
		"a stranger on the drive":   {func(w hosttest.Tree, a string) { w.DM(1, "s", "x", a) }, mounts, drivebay.ContentForeign, "dm-1", Options{}},
		"the machine runs from it":  {nil, append(mounts, hosttest.Mount("8:1", "/var", "ext4", "/dev/sda1")), drivebay.ContentUnknown, "runs from this drive", Options{}},
		"udev saw more":             {func(w hosttest.Tree, _ string) { w["run/udev/data/b8:0"] = "E:ID_FS_TYPE=zfs_member\n" }, mounts, drivebay.ContentForeign, "zfs", Options{}},
		"the kernel knows no names": {noNames, mounts, drivebay.ContentUnknown, "", Options{Ours: map[string]bool{"sda": true}}},
		"nobody knows any names":    {noNames, mounts, drivebay.ContentUnknown, "partition of sda1", Options{}},
		"udev knows the names": {func(w hosttest.Tree, a string) {
			noNames(w, a)
			w["run/udev/data/b8:1"], w["run/udev/data/b8:2"] = "E:ID_PART_ENTRY_NAME=drivebay-x\n", "E:ID_PART_ENTRY_NAME=drivebay-pv-1\n"
		}, mounts, drivebay.ContentUnknown, "", Options{}},
	} {
		w, a := build()
		if c.change != nil {
			c.change(w, a)
		}
		_, drives := listTree(t, w, c.opt, c.mounts...)
		d := drives["sda"]
		if d.Content.Kind != c.content || len(d.Uses) < 5 {
			t.Errorf("%s: content %v, uses %q", name, d.Content.Kind, uses(d))
		}
		if d.Content.Kind == drivebay.ContentUnknown {
			d.Content = SettleContent(d, drivebay.Content{Kind: drivebay.ContentOurs})
		}
		d.Usage = drivebay.UsageInUse
		if r := strings.Join(d.Refusals(), "; "); (r != "") != (c.refused != "") || !strings.Contains(r, c.refused) {
			t.Errorf("%s: refused: %q", name, r)
		}
	}
}

// TestTableAlone: a table of which the kernel shows no partition says nothing before it was read. A listing may come
// between the table and its partitions, and a table may be for blocks of another size.
func TestTableAlone(t *testing.T) {
	for _, c := range []struct {
		seen string
		want drivebay.ContentKind
	}{
		{"E:ID_PART_TABLE_TYPE=gpt\n", drivebay.ContentUnknown},
		{"E:ID_PART_TABLE_TYPE=PMBR\n", drivebay.ContentUnknown},
		{"E:ID_PART_TABLE_TYPE=dos\n", drivebay.ContentUnknown}, // the protective table is written first, and goes last
		{"E:ID_PART_TABLE_TYPE=gpt\nE:ID_FS_TYPE=ext4\n", drivebay.ContentForeign},
		{"E:ID_FS_TYPE=ext4\n", drivebay.ContentForeign},
	} {
		w := hosttest.Tree{}
		w.SATA(1, "sda", map[string]string{"serial": "A1"})
		w["run/udev/data/b8:0"] = c.seen
		_, drives := listTree(t, w, Options{})
		if got := drives["sda"].Content.Kind; got != c.want {
			t.Errorf("%q: %v, want %v", c.seen, got, c.want)
		}
	}
}
