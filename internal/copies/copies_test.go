package copies

import (
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// TestCopies: what makes two drives copies of each other, and what does not.
func TestCopies(t *testing.T) {
	drive := func(id string, s ...drivebay.Signature) drivebay.Drive {
		return drivebay.Drive{ID: id, Name: id, Status: drivebay.StatusOnline, Content: drivebay.Content{Kind: drivebay.ContentOurs, Signatures: s}}
	}
	ours := func(guid string) drivebay.Signature {
		return drivebay.Signature{Format: "gpt", UUID: guid, Label: "drivebay-x"}
	}
	pv := func(name string) drivebay.Signature {
		return drivebay.Signature{Format: "LVM2_member", UUID: "pv-1", Partition: "1", Name: name}
	}
	away := drive("b", drivebay.Signature{})
	away.Status, away.Content = drivebay.StatusOffline, drivebay.Content{}
	unidentified := drive("a", ours("G"))
	unidentified.Status = drivebay.StatusUnknown
	for name, c := range map[string]struct {
		drives []drivebay.Drive
		want   string // ids that are flagged
	}{
		"our table copied":                       {[]drivebay.Drive{drive("a", ours("G")), drive("b", ours("g"))}, "ab"},
		"our table copied, the original unread":  {[]drivebay.Drive{drive("a", ours(drivebay.TableGUID("b"))), drive("b")}, "ab"},
		"our table copied, the original away":    {[]drivebay.Drive{drive("a", ours(drivebay.TableGUID("b"))), away}, "a"},
		"one that may be the drive of a record":  {[]drivebay.Drive{unidentified, drive("a-at-01234567", ours("G"))}, ""},
		"two that may be the drive of a record":  {[]drivebay.Drive{unidentified, drive("a-at-01234567", ours("G")), drive("a-at-76543210", ours("G"))}, "a-at-01234567a-at-76543210"},
		"the drive of no record, and another":    {[]drivebay.Drive{unidentified, drive("b-at-01234567", ours("G"))}, "ab-at-01234567"},
		"each with its own table":                {[]drivebay.Drive{drive("a", ours(drivebay.TableGUID("a"))), drive("b", ours(drivebay.TableGUID("b")))}, ""},
		"three":                                  {[]drivebay.Drive{drive("a", ours("g")), drive("b", ours("g")), drive("c", ours("g"))}, "abc"},
		"tables of others":                       {[]drivebay.Drive{drive("a", drivebay.Signature{Format: "gpt", UUID: "g", Label: "root"}), drive("b", drivebay.Signature{Format: "gpt", UUID: "g", Label: "root"})}, ""},
		"our physical volume":                    {[]drivebay.Drive{drive("a", pv("drivebay-pv-1")), drive("b", pv("drivebay-pv-1"))}, "ab"},
		"our physical volume on another's drive": {[]drivebay.Drive{drive("a", pv("drivebay-pv-1")), drive("b", pv("backup"))}, "ab"},
		"labels that users wrote":                {[]drivebay.Drive{drive("a", pv("drivebay-volume1")), drive("b", pv("drivebay-volume2")), drive("c", pv("drivebay-pv-1"))}, ""},
		"filesystems in volumes":                 {[]drivebay.Drive{drive("a", drivebay.Signature{Format: "ext4", UUID: "u", Partition: "1", Name: "drivebay-v"}), drive("b", drivebay.Signature{Format: "ext4", UUID: "u", Partition: "1", Name: "drivebay-new-v"})}, ""},
	} {
		got := Find(c.drives)
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
