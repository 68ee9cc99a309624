package drivemgr

import (
	"errors"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// TestOurUses: what stands on a partition that we made keeps no drive from being
// ours; anything else on the same drive does.
func TestOurUses(t *testing.T) {
	build := func() (tree, string) {
		w := tree{}
		a := w.sata(1, "sda", map[string]string{"serial": "A1"})
		w["run/udev/data/b8:0"] = "E:ID_PART_TABLE_TYPE=gpt\n"
		one, two := w.partition(a, "sda1", "8:1"), w.partition(a, "sda2", "8:2")
		w[one+"/uevent"], w[two+"/uevent"] = "MAJOR=8\nPARTN=1\nPARTNAME=drivebay-x\n", "PARTN=2\nPARTNAME=drivebay-pv-1\n"
		w.dm(0, "drivebay--g-drivebay--v", "LVM-x", two)
		return w, a
	}
	noNames := func(w tree, a string) { delete(w, a+"/sda1/uevent"); delete(w, a+"/sda2/uevent") }
	mounts := []host.Mount{mount("8:1", "/var/lib/kubelet/a", "ext4", "/dev/sda1"), mount("253:0", "/var/lib/kubelet/b", "xfs", "x")}
	for name, c := range map[string]struct {
		change  func(w tree, a string)
		mounts  []host.Mount
		content drivebay.ContentKind
		refused string
		opt     InventoryOptions
	}{
		"all ours":                  {nil, mounts, drivebay.ContentUnknown, "", InventoryOptions{}},
		"a stranger's partition":    {func(w tree, a string) { w.partition(a, "sda3", "8:3") }, mounts, drivebay.ContentUnknown, "sda3", InventoryOptions{}},
		"a stranger on the drive":   {func(w tree, a string) { w.dm(1, "s", "x", a) }, mounts, drivebay.ContentForeign, "dm-1", InventoryOptions{}},
		"the machine runs from it":  {nil, append(mounts, mount("8:1", "/var", "ext4", "/dev/sda1")), drivebay.ContentUnknown, "runs from it", InventoryOptions{}},
		"udev saw more":             {func(w tree, _ string) { w["run/udev/data/b8:0"] = "E:ID_FS_TYPE=zfs_member\n" }, mounts, drivebay.ContentForeign, "zfs", InventoryOptions{}},
		"the kernel knows no names": {noNames, mounts, drivebay.ContentUnknown, "", InventoryOptions{Ours: map[string]bool{"sda": true}}},
		"nobody knows any names":    {noNames, mounts, drivebay.ContentUnknown, "partition of sda1", InventoryOptions{}},
		"udev knows the names": {func(w tree, a string) {
			noNames(w, a)
			w["run/udev/data/b8:1"], w["run/udev/data/b8:2"] = "E:ID_PART_ENTRY_NAME=drivebay-x\n", "E:ID_PART_ENTRY_NAME=drivebay-pv-1\n"
		}, mounts, drivebay.ContentUnknown, "", InventoryOptions{}},
	} {
		w, a := build()
		if c.change != nil {
			c.change(w, a)
		}
		_, drives := w.observe(t, c.opt, c.mounts...)
		d := drives["sda"]
		if d.Content.Kind != c.content || len(d.Uses) < 5 {
			t.Errorf("%s: content %v, uses %q", name, d.Content.Kind, uses(d))
		}
		if d.Content.Kind == drivebay.ContentUnknown {
			d.Content = settleContent(d, drivebay.Content{Kind: drivebay.ContentOurs})
		}
		d.Usage = drivebay.UsageInUse
		if r := strings.Join(d.Refusals(), "; "); (r != "") != (c.refused != "") || !strings.Contains(r, c.refused) {
			t.Errorf("%s: refused: %q", name, r)
		}
	}
}

// TestTableAlone: a listing may come between the table and its partitions, when
// they are made or taken away. On a drive that was ours or blank that tells nothing.
func TestTableAlone(t *testing.T) {
	for _, c := range []struct {
		seen string
		ours bool
		want drivebay.ContentKind
	}{
		{"E:ID_PART_TABLE_TYPE=gpt\n", true, drivebay.ContentUnknown},
		{"E:ID_PART_TABLE_TYPE=dos\n", true, drivebay.ContentUnknown}, // the protective table is written first, and goes last
		{"E:ID_PART_TABLE_TYPE=gpt\n", false, drivebay.ContentForeign},
		{"E:ID_PART_TABLE_TYPE=dos\n", false, drivebay.ContentForeign},
		{"E:ID_PART_TABLE_TYPE=gpt\nE:ID_FS_TYPE=ext4\n", true, drivebay.ContentForeign},
		{"E:ID_FS_TYPE=ext4\n", true, drivebay.ContentForeign},
	} {
		w := tree{}
		w.sata(1, "sda", map[string]string{"serial": "A1"})
		w["run/udev/data/b8:0"] = c.seen
		_, drives := w.observe(t, InventoryOptions{Ours: map[string]bool{"sda": c.ours}})
		if got := drives["sda"].Content.Kind; got != c.want {
			t.Errorf("%q, ours %v: %v, want %v", c.seen, c.ours, got, c.want)
		}
	}
}

func TestSame(t *testing.T) {
	w := tree{}
	a := w.sata(1, "sda", map[string]string{"serial": "A1", "wwid": "naa.5000c500a0000001"})
	b := w.sata(2, "sdb", map[string]string{"serial": "B1"})
	c := w.sata(3, "sdc", map[string]string{"serial": "C1"})
	none := w.sata(4, "sdd", nil)
	for num, at := range map[string]string{"8:0": a, "8:1": w.partition(a, "sda1", "8:1"), "8:16": b, "8:32": c, "8:48": none, "253:0": w.dm(0, "x", "x")} {
		w["sys/dev/block/"+num] = "-> " + at
	}
	_, drives := w.observe(t, InventoryOptions{})
	m := New(w.machine(t), nil, Options{})
	m.applyListing(Observe(m.machine, nil, InventoryOptions{}))
	m.publish()
	w[c+"/size"] = "999\n"
	m.machine = w.machine(t)
	for _, c := range []struct {
		drive, num string
		want       error
	}{
		{"sda", "8:0", nil}, {"sda", "8:1", nil}, {"sdb", "8:16", nil},
		{"sda", "8:16", drivebay.ErrRefused}, // renamed between look and write
		{"sda", "253:0", drivebay.ErrRefused},
		{"sda", "8:99", drivebay.ErrRefused},
		{"sdc", "8:32", drivebay.ErrRefused}, // of another size
		{"sdd", "8:48", drivebay.ErrRefused}, // nothing tells it from others
	} {
		if err := m.ProveIdentity(t.Context(), drives[c.drive].ID, c.num); !errors.Is(err, c.want) {
			t.Errorf("%s and %s: %v, want %v", c.drive, c.num, err, c.want)
		}
	}
	// A duplicate in the place of a drive, before drives are listed again: the kernel gives
	// no disk the number of another.
	w["proc/sys/kernel/random/boot_id"], w[a+"/diskseq"] = "boot\n", "8\n"
	m.machine = w.machine(t)
	m.applyListing(Observe(m.machine, nil, InventoryOptions{}))
	m.publish()
	if err := m.ProveIdentity(t.Context(), drives["sda"].ID, "8:0"); err != nil {
		t.Error(err)
	}
	w[a+"/diskseq"] = "9\n"
	m.machine = w.machine(t)
	if err := m.ProveIdentity(t.Context(), drives["sda"].ID, "8:0"); !errors.Is(err, drivebay.ErrRefused) {
		t.Errorf("another disk by the name of the first: %v", err)
	}
	if err := m.ProveIdentity(t.Context(), "sda", "8:0"); !errors.Is(err, drivebay.ErrNotFound) {
		t.Errorf("a name is no id: %v", err)
	}
}
