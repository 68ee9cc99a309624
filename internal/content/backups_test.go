package content

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// TestBackupSuperblocks: a filesystem whose beginning was zeroed is not blank, whatever
// its tool made of it; once its copies are zeroed, it is.
func TestBackupSuperblocks(t *testing.T) {
	for _, r := range []struct {
		size int64
		run  string
	}{
		{64 * mib, "mkfs.ext2 -q -F -b 1024 IMAGE"},
		{256 * mib, "mkfs.ext3 -q -F -b 2048 IMAGE"},
		{1024 * mib, "mkfs.ext4 -q -F -b 4096 IMAGE"},
		{1024*mib + 12345*512, "mkfs.ext4 -q -F IMAGE"},
		{512 * mib, "mkfs.xfs -q IMAGE"},
		{999*mib + 4096, "mkfs.xfs -q IMAGE"},
		{1024 * mib, "mkfs.xfs -q -d agcount=8 IMAGE"},
		{256 * mib, "mkfs.btrfs -q IMAGE"},
	} {
		t.Run(r.run, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "image")
			argv := strings.Fields(strings.ReplaceAll(r.run, "IMAGE", file))
			argv[0] = tool(t, argv[0])
			f := sparse(t, file, r.size)
			if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", argv, err, out)
			}
			zero := func(at, n int64) {
				if _, err := f.WriteAt(make([]byte, min(n, r.size-at)), at); err != nil {
					t.Fatal(err)
				}
			}
			zero(0, 2*mib)
			zero(r.size-2*mib, 2*mib)
			c := Detect(f, uint64(r.size), 512)
			if c.Kind != drivebay.ContentForeign || len(c.Signatures) == 0 || c.Signatures[0].UUID == "" {
				t.Fatalf("without its beginning it is %v: %+v", c.Kind, c.Signatures)
			}
			for _, s := range c.Signatures {
				zero(int64(s.Offset), 4096)
			}
			if c := Detect(f, uint64(r.size), 512); c.Kind != drivebay.ContentBlank {
				t.Errorf("without the copies it is %v: %+v", c.Kind, c.Signatures)
			}
		})
	}
}
