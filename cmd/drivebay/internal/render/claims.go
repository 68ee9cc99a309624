package render

import (
	"strings"

	"github.com/drivebay/drivebay"
)

// Claims lists the claim of each drive, and the reasons why nothing may be written to
// it.
func Claims(drives []drivebay.Drive, s Style) string {
	t := table{columns: []column{{head: "BAY"}, {head: "NAME"}, {head: "SIZE", right: true}, {head: "SERIAL"}, {head: "CLAIM"}, {head: "AGAINST IT"}}}
	for i := range drives {
		d := &drives[i]
		t.add(bayCell(d), cell{text: d.Name}, cell{text: size(d.Size)}, cell{text: dash(d.Serial)}, cell{text: dash(claimer(d))}, cell{text: dash(strings.Join(d.Refusals(), "; "))})
	}
	return t.String(s)
}

func claimer(d *drivebay.Drive) string {
	if d.Claim == nil {
		return ""
	}
	return string(d.Claim.By)
}

// claim describes the claim of a drive, or whether the drive can be claimed.
func claim(d *drivebay.Drive) string {
	against := d.Refusals()
	switch {
	case d.Claim != nil && len(against) > 0:
		return "by the " + claimer(d) + ", but not usable: " + Clean(strings.Join(against, "; "))
	case d.Claim != nil:
		return "by the " + claimer(d)
	case len(against) > 0:
		return "no, and not possible: " + Clean(strings.Join(against, "; "))
	}
	return "no"
}
