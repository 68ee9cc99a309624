package lvm

import (
	"encoding/hex"
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

// TestInNoGroup: the headers are those that lvm2 2.03.16 wrote on partitions of 64 MiB.
func TestInNoGroup(t *testing.T) {
	header := func(text string) []byte {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		start := make([]byte, LeftTexts)
		copy(start[4096:], b)
		return start
	}
	const (
		removed = "16d68edb204c564d3220785b35412572304e2a3e01000000001000000000000000f00f0000000000"
		used    = "d5f72113204c564d3220785b35412572304e2a3e01000000001000000000000000f00f000000000000020000000000008b0300000000000089e2d26e00000000"
	)
	damaged := header(removed)
	damaged[4096+300] = 1
	for name, c := range map[string]struct {
		start []byte
		want  bool
	}{
		"after pvcreate, vgremove, vgreduce and pvremove": {header(removed), true},
		"in a group":     {header(used), false},
		"wrong checksum": {damaged, false},
		"no header":      {header(""), false},
		"cut short":      {header(removed)[:4096+511], false},
	} {
		if got := InNoGroup(c.start); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
