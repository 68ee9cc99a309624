package content

import (
	"testing"

	"github.com/drivebay/drivebay"
)

// TestHasIsNoCopy: a copy of a superblock is not the filesystem. In a partition of a drive, where no copies are looked for, every offset counts.
func TestHasIsNoCopy(t *testing.T) {
	const id = "0b5b1a2e-5c0c-4a1e-9d8c-0f6b7a3c2d1e"
	btrfs := func(partition string, offset uint64) drivebay.Content {
		return drivebay.Content{Signatures: []drivebay.Signature{{Format: "btrfs", UUID: id, Partition: partition, Offset: offset}}}
	}
	for name, c := range map[string]struct {
		is        drivebay.Content
		partition string
		format    string
		uuid      string
		has       bool
		text      string
	}{
		"the superblock":      {btrfs("", 64<<10+64), "", "btrfs", id, true, "btrfs " + id},
		"its first copy":      {btrfs("", 64<<20+64), "", "btrfs", id, false, "only a copy of the superblock of btrfs " + id},
		"far on the drive":    {btrfs("2", 64<<30), "2", "btrfs", id, true, "btrfs " + id},
		"another partition":   {btrfs("2", 64<<30), "3", "btrfs", id, false, "btrfs " + id},
		"another UUID":        {btrfs("", 0), "", "btrfs", "1" + id[1:], false, "btrfs " + id},
		"another filesystem":  {btrfs("", 0), "", "xfs", id, false, "btrfs " + id},
		"no UUID is known":    {btrfs("", 0), "", "btrfs", "", true, "btrfs " + id},
		"nothing is on there": {drivebay.Content{}, "", "btrfs", id, false, "nothing"},
	} {
		if has, text := Has(c.is, c.partition, c.format, c.uuid), Describe(c.is); has != c.has || text != c.text {
			t.Errorf("%s: %v, %q", name, has, text)
		}
	}
}
