package content

import (
	"path/filepath"
	"testing"

	"github.com/drivebay/drivebay"
)

// TestFirstPartition: what is in a partition of a whole drive is found also without its table (sgdisk --zap-all), where the
// format leaves the first blocks as zeroes or they were erased as well. Partitions begin at 1 MiB, and end with the drive or
// at a whole MiB.
func TestFirstPartition(t *testing.T) {
	const size, last = 1001 * mib, 1000 * mib
	for name, m := range map[string]struct {
		at            int64
		magic, format string
	}{
		"md 1.2":                        {mib + 4096, "\xfc\x4e\x2b\xa9\x01\x00\x00\x00", "linux_raid_member"},
		"md 1.0, to a whole MiB":        {last - 8192, "\xfc\x4e\x2b\xa9\x01\x00\x00\x00", "linux_raid_member"},
		"bcache":                        {mib + 4096 + 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", "bcache"},
		"btrfs":                         {mib + 64<<10 + 64, "_BHRfS_M", "btrfs"},
		"JFS":                           {mib + 32<<10, "JFS1", "jfs"},
		"ZFS":                           {mib + 128<<10 + 4096, "\x0c\xb1\xba\x00\x00\x00\x00\x00", "zfs_member"},
		"second group of an erased XFS": {mib + (last-mib+3)/4/4096*4096 + 0, "XFSB", "xfs"},
	} {
		f := sparse(t, filepath.Join(t.TempDir(), "image"), size)
		if _, err := f.WriteAt([]byte(m.magic), m.at); err != nil {
			t.Fatal(err)
		}
		c := DetectDrive(f, size, 512)
		if c.Kind != drivebay.ContentForeign || len(c.Signatures) == 0 || c.Signatures[0].Format != m.format || c.Signatures[0].Offset > uint64(m.at) || c.Signatures[0].Offset+128 < uint64(m.at) {
			t.Errorf("%s: %v: %+v", name, c.Kind, c.Signatures)
		}
	}
}
