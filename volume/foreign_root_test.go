//go:build root

package volume_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/fusedisk"
	"github.com/drivebay/drivebay/hack/loopdisk"
	"github.com/drivebay/drivebay/volume"
)

// foreign are what others write, with their own tools where this machine can have
// them. The rest are the marks that those formats are known by.
var foreign = map[string]string{
	"ext4":         "mkfs.ext4 -q DEV",
	"xfs":          "mkfs.xfs -q DEV",
	"btrfs":        "mkfs.btrfs -q DEV",
	"swap":         "mkswap -q DEV",
	"LVM2":         "lvm pvcreate -qq --devices DEV DEV 2>/dev/null; blkid -p DEV | grep -q LVM2",
	"LUKS":         "echo secret | cryptsetup luksFormat --batch-mode --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 DEV -",
	"GPT only":     "sgdisk -o DEV",
	"GPT":          "sgdisk -n 1:0:+64M -c 1:theirs DEV",
	"MBR only":     "parted -s DEV mklabel msdos",
	"MBR":          "parted -s DEV mklabel msdos mkpart primary ext4 1MiB 64MiB",
	"backup GPT":   "sgdisk -n 1:0:+64M DEV && dd if=/dev/zero of=DEV bs=1M count=1 conv=notrunc",
	"md":           "printf '\\374\\116\\053\\251\\001\\000\\000\\000' | dd of=DEV bs=1 seek=4096 conv=notrunc",
	"ZFS":          "printf '\\014\\261\\272\\000\\000\\000\\000\\000' | dd of=DEV bs=1 seek=262144 conv=notrunc",
	"bcache":       "printf '\\306\\205\\163\\366\\116\\032\\105\\312\\202\\145\\365\\177\\110\\272\\155\\201' | dd of=DEV bs=1 seek=4120 conv=notrunc",
	"bluestore":    "printf 'bluestore block device\\n' | dd of=DEV bs=1 conv=notrunc",
	"ISO9660":      "printf 'CD001' | dd of=DEV bs=1 seek=32769 conv=notrunc",
	"one byte":     "printf x | dd of=DEV bs=1 seek=524288 conv=notrunc",
	"renamed name": "sgdisk -n 1:0:+64M -c 1:drivebay-theirs -n 2:0:0 -c 2:data DEV",
}

// TestRootForeign has a drive that was blank, and claimed, become somebody else's
// behind our back. It is read again before the first write: the volume is refused
// and not a byte changes.
func TestRootForeign(t *testing.T) {
	for name, make := range foreign {
		t.Run(name, func(t *testing.T) {
			file, dev := loopdisk.New(t, 512<<20)
			e := engineOn(t, file)
			// Nobody is told: what we knew of the drive is that it is blank.
			if out, err := exec.Command("bash", "-c", strings.ReplaceAll(make, "DEV", dev)+"; s=$?; sync "+dev+"; exit $s").CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", make, err, out)
			}
			refuses(t, e, file)
		})
	}
}

// TestRootAnotherDrive has another drive under the name of the one that was looked
// at, as after a pull and a plug that nobody has noticed yet.
func TestRootAnotherDrive(t *testing.T) {
	file, dev := loopdisk.New(t, 512<<20)
	e := engineOn(t, file)
	other := filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(other, nil, 0o600), os.Truncate(other, 512<<20)); err != nil {
		t.Fatal(err)
	}
	shell(t, "losetup -d %s && losetup %s %s", dev, dev, other)
	refuses(t, e, other)
	refuses(t, e, file)
}

// TestRootUnreadable: what cannot be read, or does not answer, is not blank.
func TestRootUnreadable(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*fusedisk.Disk, bool)
		want  error
	}{"fails": {(*fusedisk.Disk).Fail, drivebay.ErrRefused}, "hangs": {(*fusedisk.Disk).Hang, context.DeadlineExceeded}} {
		t.Run(name, func(t *testing.T) {
			disk, err := fusedisk.New(t.TempDir(), 512<<20)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := disk.Close(); err != nil {
					t.Error(err)
				}
			})
			dev := loopdisk.Attach(t, disk.Path())
			e := engineOn(t, disk.Path())
			shell(t, "blockdev --flushbufs %s", dev)
			_, writes := disk.Asked()
			c.spoil(disk, true)
			t.Cleanup(func() { c.spoil(disk, false) })
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if _, err := e.CreateVolume(ctx, onPartition()); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if _, now := disk.Asked(); now != writes {
				t.Errorf("%d writes came to the disk", now-writes)
			}
		})
	}
}

func onPartition() drivebay.VolumeRequest {
	return drivebay.VolumeRequest{Name: "v", Size: drivebay.SizeRange{Required: 64 << 20},
		Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeZero, FSType: "ext4"}}
}

// refuses makes volumes and holds every byte of a file against what it was.
func refuses(t *testing.T, e *volume.Engine, file string) {
	t.Helper()
	before := sum(t, file)
	for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive} {
		r := onPartition()
		r.Class.Backing = b
		// No room is what it says once it has looked again.
		if v, err := e.CreateVolume(t.Context(), r); !errors.Is(err, drivebay.ErrRefused) && !errors.Is(err, drivebay.ErrNoSpace) {
			t.Errorf("%s: %+v, %v", b, v, err)
		}
	}
	if sum(t, file) != before {
		t.Error("bytes have changed")
	}
	if v, ok := e.Volumes().Find("v"); ok {
		t.Errorf("a volume is remembered: %+v", v)
	}
}

func sum(t *testing.T, file string) [32]byte {
	t.Helper()
	shell(t, "sync")
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return [32]byte(h.Sum(nil))
}

func shell(t *testing.T, format string, args ...any) string {
	t.Helper()
	line := fmt.Sprintf(format, args...)
	out, err := exec.Command("bash", "-c", line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}

// engineOn is an engine that has claimed the one loop device of a file, and looks
// at drives no more before the test is over.
func engineOn(t *testing.T, file string) *volume.Engine {
	t.Helper()
	e, _, _ := rig{files: []string{file}, deaf: true}.start(t)
	return e
}
