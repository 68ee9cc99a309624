package drivebay

import (
	"strings"
	"testing"
)

// TestCopies: what makes two drives copies of each other, and what does not.
func TestCopies(t *testing.T) {
	drive := func(id string, s ...Signature) Drive {
		return Drive{ID: id, Name: id, Status: StatusOnline, Content: Content{Kind: ContentOurs, Signatures: s}}
	}
	ours := func(guid string) Signature { return Signature{Format: "gpt", UUID: guid, Label: "drivebay-x"} }
	pv := func(name string) Signature {
		return Signature{Format: "LVM2_member", UUID: "pv-1", Partition: "1", Name: name}
	}
	away := drive("b", Signature{})
	away.Status, away.Content = StatusOffline, Content{}
	for name, c := range map[string]struct {
		drives []Drive
		want   string // ids that are flagged
	}{
		"our table copied":                       {[]Drive{drive("a", ours("G")), drive("b", ours("g"))}, "ab"},
		"our table copied, the original unread":  {[]Drive{drive("a", ours(TableGUID("b"))), drive("b")}, "ab"},
		"our table copied, the original away":    {[]Drive{drive("a", ours(TableGUID("b"))), away}, "a"},
		"each with its own table":                {[]Drive{drive("a", ours(TableGUID("a"))), drive("b", ours(TableGUID("b")))}, ""},
		"three":                                  {[]Drive{drive("a", ours("g")), drive("b", ours("g")), drive("c", ours("g"))}, "abc"},
		"tables of others":                       {[]Drive{drive("a", Signature{Format: "gpt", UUID: "g", Label: "root"}), drive("b", Signature{Format: "gpt", UUID: "g", Label: "root"})}, ""},
		"our physical volume":                    {[]Drive{drive("a", pv("drivebay-pv-1")), drive("b", pv("drivebay-pv-1"))}, "ab"},
		"our physical volume on another's drive": {[]Drive{drive("a", pv("drivebay-pv-1")), drive("b", pv("backup"))}, "ab"},
		"labels that users wrote":                {[]Drive{drive("a", pv("drivebay-volume1")), drive("b", pv("drivebay-volume2")), drive("c", pv("drivebay-pv-1"))}, ""},
		"filesystems in volumes":                 {[]Drive{drive("a", Signature{Format: "ext4", UUID: "u", Partition: "1", Name: "drivebay-v"}), drive("b", Signature{Format: "ext4", UUID: "u", Partition: "1", Name: "drivebay-new-v"})}, ""},
	} {
		got := Copies(c.drives)
		flagged := ""
		for _, d := range c.drives {
			if why := got[d.ID]; why != "" {
				flagged += d.ID
				if strings.Contains(why, "drive "+d.ID+" ") {
					t.Errorf("%s: drive %s is a copy of itself: %s", name, d.ID, why)
				}
			}
		}
		if flagged != c.want {
			t.Errorf("%s: %q are copies (%v), want %q", name, flagged, got, c.want)
		}
	}
}
