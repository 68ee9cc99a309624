package compare

import (
	"slices"
	"testing"

	"github.com/drivebay/drivebay"
)

func machine() ([]Expect, *drivebay.Snapshot) {
	a := Expect{Serial: "A1", Vendor: "LABVEND", Model: "LABSCSI", Firmware: "3.1", WWN: "naa.5000c500b0000000", Size: 1 << 30, RPM: 7200,
		Type: drivebay.TypeHDD, Transport: drivebay.TransportSAS, Protocol: drivebay.ProtocolSCSI, LogicalBlock: 512, PhysBlock: 4096,
		Paths: 2, Bay: "3", Status: drivebay.StatusOnline, Usage: drivebay.UsageInUse}
	b := Expect{Serial: "B2", Model: "QEMU NVMe Ctrl", Size: 1 << 30, Type: drivebay.TypeNVMe, Transport: drivebay.TransportNVMe,
		Protocol: drivebay.ProtocolNVMe, LogicalBlock: 512, PhysBlock: 512, Paths: 1, System: true, Status: drivebay.StatusOnline, Usage: drivebay.UsageInUse}
	return []Expect{a, b}, &drivebay.Snapshot{Drives: []drivebay.Drive{built(a), built(b)}}
}

// built is what a drive that meets its expectation looks like.
func built(e Expect) drivebay.Drive {
	return drivebay.Drive{ID: "sn-" + e.Serial, Name: "sd" + e.Serial, Paths: make([]drivebay.Path, e.Paths), Slot: drivebay.Slot{Bay: e.Bay},
		Identity: drivebay.Identity{Vendor: e.Vendor, Model: e.Model, Serial: e.Serial, Firmware: e.Firmware, WWN: e.WWN, Size: e.Size, RPM: e.RPM},
		Type:     e.Type, Transport: e.Transport, Protocol: e.Protocol, LogicalBlock: e.LogicalBlock, PhysBlock: e.PhysBlock,
		Removable: e.Removable, ReadOnly: e.ReadOnly, System: e.System, Status: e.Status, Usage: e.Usage}
}

func TestInventoryAsBuilt(t *testing.T) {
	want, got := machine()
	if differences := Inventory(want, got); differences != nil {
		t.Errorf("%v", differences)
	}
	got.Drives[1].Slot.Bay = "0-3" // a bay that nobody expects is not looked at
	if differences := Inventory(want, got); differences != nil {
		t.Errorf("%v", differences)
	}
}

// TestInventoryField changes one field of one drive after another.
func TestInventoryField(t *testing.T) {
	for field, change := range map[string]func(d *drivebay.Drive){
		"vendor":            func(d *drivebay.Drive) { d.Vendor = "" },
		"model":             func(d *drivebay.Drive) { d.Model = "LAB" },
		"firmware":          func(d *drivebay.Drive) { d.Firmware = "3" },
		"wwn":               func(d *drivebay.Drive) { d.WWN = "eui.5000c500b0000000" },
		"size":              func(d *drivebay.Drive) { d.Size-- },
		"rpm":               func(d *drivebay.Drive) { d.RPM = 0 },
		"type":              func(d *drivebay.Drive) { d.Type = drivebay.TypeSSD },
		"transport":         func(d *drivebay.Drive) { d.Transport = drivebay.TransportSCSI },
		"protocol":          func(d *drivebay.Drive) { d.Protocol = drivebay.ProtocolATA },
		"logicalBlockSize":  func(d *drivebay.Drive) { d.LogicalBlock = 4096 },
		"physicalBlockSize": func(d *drivebay.Drive) { d.PhysBlock = 512 },
		"paths":             func(d *drivebay.Drive) { d.Paths = d.Paths[1:] },
		"bay":               func(d *drivebay.Drive) { d.Slot.Bay = "4" },
		"removable":         func(d *drivebay.Drive) { d.Removable = true },
		"readOnly":          func(d *drivebay.Drive) { d.ReadOnly = true },
		"system":            func(d *drivebay.Drive) { d.System = true },
		"status":            func(d *drivebay.Drive) { d.Status = drivebay.StatusOffline },
		"usage":             func(d *drivebay.Drive) { d.Usage = drivebay.UsageReleasing },
		"identityIssue":     func(d *drivebay.Drive) { d.IdentityIssue = "its serial is another drive's too" },
	} {
		want, got := machine()
		change(&got.Drives[0])
		if names := paths(Inventory(want, got)); !slices.Equal(names, []string{"A1 " + field}) {
			t.Errorf("%s: %v", field, names)
		}
	}
}

func TestInventoryDrives(t *testing.T) {
	want, got := machine()
	blank := drivebay.Drive{ID: "path-x", Name: "vda"}
	for name, c := range map[string]struct {
		want []Expect
		got  *drivebay.Snapshot
		text []string
	}{
		"no snapshot":    {want, nil, []string{`snapshot: want "2 drives", ours "nothing"`}},
		"missing":        {want, &drivebay.Snapshot{Drives: got.Drives[:1]}, []string{`B2: want "a drive", ours "missing"`}},
		"unexpected":     {want[:1], got, []string{`B2: want "nothing", ours "unexpected: sn-B2 as sdB2"`}},
		"without serial": {want, &drivebay.Snapshot{Drives: append(slices.Clone(got.Drives), blank)}, []string{`drive without a serial: want "nothing", ours "unexpected: path-x as vda"`}},
		"duplicate":      {want, &drivebay.Snapshot{Drives: append(slices.Clone(got.Drives), got.Drives[0])}, []string{`A1: want "one drive", ours "duplicate: sn-A1 and sn-A1"`}},
		"expected twice": {append(slices.Clone(want), want[1]), got, []string{`B2: want "a serial of one expected drive", ours "expected twice"`}},
	} {
		var text []string
		for _, d := range Inventory(c.want, c.got) {
			text = append(text, d.String())
		}
		if !slices.Equal(text, c.text) {
			t.Errorf("%s: %q, want %q", name, text, c.text)
		}
	}
}
