package lvm

import (
	"fmt"
	"testing"
)

// TestHaveLeft: a device that was a physical volume has left its groups only if the report shows each of
// them whole, and changed since.
func TestHaveLeft(t *testing.T) {
	const one, two = "TlQpKT-3kxt-4qkM-czZB-UiRR-sJPo-PbaQ3A", "8qrecY-XQTC-r000-0000-0000-0000-000000"
	text := func(uuid string, seq int) string { // as lvm2 2.03.16 writes it
		return fmt.Sprintf("drivebay-a {\nid = %q\nseqno = %d\nformat = \"lvm2\"\n\nphysical_volumes {\n\npv0 {\nid = \"x0recY-XQTC-r000-0000-0000-0000-000000\"\ndevice = \"/dev/sda1\"\n}\n}\n}\n\x00\x00", uuid, seq)
	}
	group := func(uuid string, seq uint64) Group {
		return Group{UUID: uuid, Name: "drivebay-a", Seq: seq, PVs: []PV{{UUID: "b", Device: "/dev/sdb1"}}}
	}
	lost, partial := group(one, 3), group(one, 3)
	lost.PVs = append(lost.PVs, PV{UUID: "c", Missing: true})
	partial.Partial = true
	for name, c := range map[string]struct {
		start string
		shown []Group
		want  bool
	}{
		"left":                         {text(one, 1) + text(one, 2), []Group{group(one, 3)}, true},
		"left both":                    {text(one, 2) + text(two, 5), []Group{group(one, 3), group(two, 6)}, true},
		"no text":                      {"\x00\x00", []Group{group(one, 3)}, false},
		"the group is not shown":       {text(one, 2), []Group{group(two, 3)}, false},
		"another group is not shown":   {text(one, 2) + text(two, 5), []Group{group(one, 3)}, false},
		"unchanged since":              {text(one, 3), []Group{group(one, 3)}, false},
		"a physical volume is missing": {text(one, 2), []Group{lost}, false},
		"partial":                      {text(one, 2), []Group{partial}, false},
		"no sequence number":           {fmt.Sprintf("{\nid = %q\nseqno = 99999999999999999999\n", one), []Group{group(one, 3)}, false},
	} {
		if got := (&Report{Groups: c.shown}).HaveLeft([]byte(c.start)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
