package compare

import (
	"fmt"

	"github.com/drivebay/drivebay"
)

// Expect is a drive as the machine was built with it. Every field but Bay must
// be met as it stands, its zero too.
type Expect struct {
	Serial string // tells the drive from the others

	Vendor, Model, Firmware string
	WWN                     string
	Size                    uint64
	RPM                     int
	Type                    drivebay.Type
	Transport               drivebay.Transport
	Protocol                drivebay.Protocol
	LogicalBlock, PhysBlock int
	Paths                   int
	Bay                     string // "": not looked at
	Removable, ReadOnly     bool
	System                  bool
	Status                  drivebay.Status
	Usage                   drivebay.Usage
}

// Inventory compares the drives of a snapshot with those that the machine has:
// each is there once, nothing else is, and every field is as expected.
func Inventory(want []Expect, got *drivebay.Snapshot) []Difference {
	if got == nil {
		return []Difference{{Path: "snapshot", Smartctl: fmt.Sprintf("%d drives", len(want)), Ours: nothing}}
	}
	found := map[string][]*drivebay.Drive{}
	for i := range got.Drives {
		d := &got.Drives[i]
		found[d.Serial] = append(found[d.Serial], d)
	}
	var out []Difference
	expected := map[string]bool{}
	for _, e := range want {
		if expected[e.Serial] {
			out = append(out, Difference{e.Serial, "a serial of one expected drive", "expected twice"})
			continue
		}
		expected[e.Serial] = true
		out = append(out, e.meet(found[e.Serial])...)
	}
	for i := range got.Drives {
		if d := &got.Drives[i]; !expected[d.Serial] {
			out = append(out, Difference{place(d.Serial), nothing, "unexpected: " + d.ID + " as " + d.Name})
		}
	}
	return out
}

// place names a drive in a difference.
func place(serial string) string {
	if serial == "" {
		return "drive without a serial"
	}
	return serial
}

// meet compares an expected drive with those of its serial.
func (e Expect) meet(found []*drivebay.Drive) []Difference {
	switch len(found) {
	case 0:
		return []Difference{{place(e.Serial), "a drive", "missing"}}
	case 1:
		return e.fields(found[0])
	}
	var out []Difference
	for _, d := range found[1:] {
		out = append(out, Difference{place(e.Serial), "one drive", "duplicate: " + found[0].ID + " and " + d.ID})
	}
	return out
}

func (e Expect) fields(d *drivebay.Drive) []Difference {
	var out []Difference
	for _, f := range []struct {
		name       string
		want, ours any
	}{
		{"vendor", e.Vendor, d.Vendor},
		{"model", e.Model, d.Model},
		{"firmware", e.Firmware, d.Firmware},
		{"wwn", e.WWN, d.WWN},
		{"size", e.Size, d.Size},
		{"rpm", e.RPM, d.RPM},
		{"type", e.Type, d.Type},
		{"transport", e.Transport, d.Transport},
		{"protocol", e.Protocol, d.Protocol},
		{"logicalBlockSize", e.LogicalBlock, d.LogicalBlock},
		{"physicalBlockSize", e.PhysBlock, d.PhysBlock},
		{"paths", e.Paths, len(d.Paths)},
		{"removable", e.Removable, d.Removable},
		{"readOnly", e.ReadOnly, d.ReadOnly},
		{"system", e.System, d.System},
		{"status", e.Status, d.Status},
		{"usage", e.Usage, d.Usage},
		{"identityIssue", "", d.IdentityIssue},
	} {
		if f.want != f.ours {
			out = append(out, Difference{place(e.Serial) + " " + f.name, fmt.Sprint(f.want), fmt.Sprint(f.ours)})
		}
	}
	if e.Bay != "" && e.Bay != d.Slot.Bay {
		out = append(out, Difference{place(e.Serial) + " bay", e.Bay, d.Slot.Bay})
	}
	return out
}
