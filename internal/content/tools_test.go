package content

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// tool finds a program, in the folders of root's too. A machine without it skips
// the test; CI has them all.
func tool(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin") {
		if p := filepath.Join(dir, name); exec.Command(p, "--version").Err == nil {
			if _, err := os.Stat(p); err == nil {
				return p
			}
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed", name)
	}
	t.Skipf("%s is not installed", name)
	return ""
}

// TestAgainstTools has real tools write their formats and holds what we find
// against what blkid finds.
func TestAgainstTools(t *testing.T) {
	const luks = "luksFormat --batch-mode --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file KEY IMAGE "
	rows := []struct {
		format string // as blkid names it, "" where it has none: tables
		size   int64
		run    string
	}{
		{"ext2", 16 * mib, "mkfs.ext2 -q -F -L my-label IMAGE"},
		{"ext3", 32 * mib, "mkfs.ext3 -q -F -L my-label IMAGE"},
		{"ext4", 32 * mib, "mkfs.ext4 -q -F -L my-label IMAGE"},
		{"ext4", 32 * mib, "mkfs.ext4 -q -F -O ^has_journal IMAGE"},
		{"jbd", 32 * mib, "mkfs.ext4 -q -F -O journal_dev -L journal IMAGE"},
		{"xfs", 512 * mib, "mkfs.xfs -q -L my-label IMAGE"},
		{"xfs", 512 * mib, "mkfs.xfs -q -m crc=0 -s size=4096 IMAGE"},
		{"btrfs", 128 * mib, "mkfs.btrfs -q -L my-label IMAGE"},
		{"swap", 16 * mib, "mkswap -L my-label IMAGE"},
		{"swap", 16 * mib, "mkswap -p 65536 -L my-label IMAGE"},
		{"vfat", 64 * mib, "mkfs.vfat -n MYLABEL IMAGE"},
		{"exfat", 64 * mib, "mkfs.exfat IMAGE"},
		{"ntfs", 64 * mib, "mkfs.ntfs -F -Q IMAGE"},
		{"f2fs", 128 * mib, "mkfs.f2fs -q IMAGE"},
		{"minix", 4 * mib, "mkfs.minix -1 IMAGE"},
		{"minix", 4 * mib, "mkfs.minix -1 -n 14 IMAGE"},
		{"minix", 4 * mib, "mkfs.minix -2 IMAGE"},
		{"minix", 4 * mib, "mkfs.minix -2 -n 14 IMAGE"},
		{"minix", 4 * mib, "mkfs.minix -3 IMAGE"},
		{"crypto_LUKS", 32 * mib, "cryptsetup " + luks + "--type luks1"},
		{"crypto_LUKS", 32 * mib, "cryptsetup " + luks + "--type luks2 --label my-label"},
		{"gpt", 16 * mib, "sgdisk -n 1:0:+4M -c 1:data -n 2:0:0 -c 2:more IMAGE"},
		{"gpt", 16 * mib, "parted -s IMAGE mklabel gpt mkpart data ext4 1MiB 8MiB"},
		{"dos", 16 * mib, "parted -s IMAGE mklabel msdos mkpart primary ext4 1MiB 8MiB mkpart extended 8MiB 15MiB"},
	}
	blkid := tool(t, "blkid")
	for _, r := range rows {
		t.Run(r.run, func(t *testing.T) {
			dir := t.TempDir()
			file, key := filepath.Join(dir, "image"), filepath.Join(dir, "key")
			argv := strings.Fields(strings.NewReplacer("IMAGE", file, "KEY", key).Replace(r.run))
			argv[0] = tool(t, argv[0])
			f := sparse(t, file, r.size)
			if err := os.WriteFile(key, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", argv, err, out)
			}
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			c := Detect(f, uint64(info.Size()), 512)
			if c.Kind != drivebay.ContentForeign || len(c.Signatures) == 0 || c.Signatures[0].Format != r.format {
				t.Fatalf("%v %+v, want %s", c.Kind, c.Signatures, r.format)
			}
			s, referee := c.Signatures[0], probe(t, blkid, file)
			if r.format == "gpt" || r.format == "dos" {
				if referee["PTTYPE"] != s.Format || s.UUID != "" && !strings.EqualFold(referee["PTUUID"], s.UUID) {
					t.Errorf("%+v, blkid says %v", s, referee)
				}
				return
			}
			if referee["TYPE"] != s.Format || referee["LABEL"] != s.Label {
				t.Errorf("%+v, blkid says %v", s, referee)
			}
			if s.UUID != "" && s.UUID != referee["UUID"] {
				t.Errorf("uuid %s, blkid says %s", s.UUID, referee["UUID"])
			}
		})
	}
}

func sparse(t *testing.T, file string, size int64) *os.File {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return f
}

// probe asks blkid, and does not let it remember.
func probe(t *testing.T, blkid, file string) map[string]string {
	t.Helper()
	out, err := exec.Command(blkid, "-p", "-o", "export", file).Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 2) { // 2: it knows no such format
		t.Fatalf("blkid: %v", err)
	}
	m := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			m[k] = strings.ReplaceAll(v, `\ `, " ")
		}
	}
	return m
}

// TestMarksAgainstBlkid shows blkid a bare mark of every format. It wants more than
// that for most of them, but what it does believe must bear our name.
func TestMarksAgainstBlkid(t *testing.T) {
	blkid := tool(t, "blkid")
	file := filepath.Join(t.TempDir(), "image")
	believed := map[string]bool{}
	for _, m := range marks {
		img := markImage(m)
		if m.format == "stratis" {
			sector := img.data[m.at-4:][:512]
			binary.LittleEndian.PutUint32(sector, crc32.Checksum(sector[4:], crc32.MakeTable(crc32.Castagnoli)))
		}
		if err := os.WriteFile(file, img.data, 0o600); err != nil {
			t.Fatal(err)
		}
		referee := probe(t, blkid, file)
		said := referee["TYPE"] + referee["PTTYPE"]
		believed[m.format] = believed[m.format] || said != ""
		if c := img.detect(512); said != "" && formats(c) != said {
			t.Errorf("%s at %#x: %q, blkid says %v", m.format, m.at, formats(c), referee)
		}
	}
	for format, yes := range believed {
		if !yes {
			t.Logf("blkid does not believe a bare %s", format)
		}
	}
}
