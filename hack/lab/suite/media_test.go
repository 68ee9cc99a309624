//go:build lab

package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabMediaErrors has drives fail at one sector and looks at what becomes of
// the kernel's words on it. Only some drives say "medium error": the others have
// an I/O error, which is held against them when there are ten.
func TestLabMediaErrors(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{
		nvme("NVR"), nvme("NVW"), nvme("NVF"), scsi("SDR", 0x5000c500b0000000), scsi("SDW", 0x5000c500b0000001),
		sata("ATR", 0x5000c500a0000000), {ID: "VDR", Kind: machine.Virtio, Serial: "VDR"}, scsi("SDGOOD", 0x5000c500b0000009),
	}})
	d := m.Daemon(quick)
	const sector = 2048
	access := map[string]string{
		"read":  "dd if=/dev/%s of=/dev/null bs=512 skip=2048 count=1 iflag=direct",
		"write": "dd if=/dev/zero of=/dev/%s bs=512 seek=2048 count=1 oflag=direct",
		"flush": "dd if=/dev/zero of=/dev/%s bs=512 seek=4096 count=1 conv=fsync",
	}
	for _, c := range []struct {
		id, op string
		medium bool // the kernel calls it a medium error
	}{
		{"NVR", "read", true}, {"NVW", "write", true}, {"NVF", "flush", true}, {"SDR", "read", true},
		{"SDW", "write", false}, {"ATR", "read", false}, {"VDR", "read", false},
	} {
		t.Run(c.id+"/"+c.op, func(t *testing.T) {
			m, d := m.For(t), d.For(t)
			where := int64(sector)
			if c.op == "flush" {
				where = machine.Everywhere
			}
			m.Must(m.FailIO(t.Context(), c.id, machine.IOError{Op: c.op, Sector: where}))
			name := m.Name(c.id)
			if out := m.Sh(access[c.op]+" 2>&1 || true", name); !strings.Contains(out, "error") && !strings.Contains(out, "failed") {
				t.Fatalf("the %s went well: %s", c.op, out)
			}
			m.Must(m.Heal(t.Context(), c.id))
			m.Sh(access[c.op], name) // a healed drive works
			x, _ := d.UntilDrive(c.id, "error seen", soon, func(x *drivebay.Drive) error {
				if k := x.Kernel; c.medium && k.MediaErrors24h != 1 || !c.medium && k.OtherErrors24h != 1 {
					return fmt.Errorf("%d medium errors, %d others", k.MediaErrors24h, k.OtherErrors24h)
				}
				return nil
			})
			if !strings.Contains(x.Kernel.LastLog, "dev "+name+", sector") {
				t.Errorf("the kernel's line is %q", x.Kernel.LastLog)
			}
			if c.medium {
				d.UntilDrive(c.id, "judged", soon, judged(drivebay.HealthSuspect, "KernelMediaErrors"))
			}
		})
	}
	// libata runs every failed command through the timeout handler: the tries of
	// one read are enough.
	d.UntilDrive("ATR", "judged", soon, judged(drivebay.HealthSuspect, "KernelTimeouts"))
	m.Must(m.FailIO(t.Context(), "VDR", machine.IOError{Op: "read", Sector: machine.Everywhere}))
	// The kernel prints ten such lines in five seconds and suppresses the rest
	// (lib/ratelimit.c, printk_ratelimited in blk_print_req_error): take time.
	m.Sh("for i in $(seq 12); do dd if=/dev/%s of=/dev/null bs=512 skip=${i}000 count=1 iflag=direct 2>/dev/null || true; sleep 0.8; done", m.Name("VDR"))
	d.UntilDrive("VDR", "judged", soon, judged(drivebay.HealthSuspect, "KernelErrors"))
	if x := d.BySerial("SDGOOD"); x.Health != drivebay.HealthGood {
		t.Errorf("the drive that nothing was done to is %s: %s", x.Health, findings(x))
	}
}

// TestLabFilesystemErrors: what ext4 counts against its disk is held against the
// drive, whatever the drive says of itself. The inodes of some files are
// overwritten behind its back, as by a write that went astray.
func TestLabFilesystemErrors(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("NVFS"), nvme("NVOTHER")}})
	name := m.Name("NVFS")
	m.Sh("mkfs.ext4 -q -b 4096 /dev/%[1]s && mkdir -p /mnt/fs && mount /dev/%[1]s /mnt/fs && touch /mnt/fs/{1..100} && umount /mnt/fs", name)
	d := m.Daemon(quick)
	m.Sh(`table=$(dumpe2fs /dev/%[1]s 2>/dev/null | sed -n 's/.*Inode table at \([0-9]*\)-.*/\1/p' | head -1)
dd if=/dev/urandom of=/dev/%[1]s bs=4096 seek=$((table+2)) count=4 oflag=direct status=none
mount -o errors=remount-ro /dev/%[1]s /mnt/fs; ls -l /mnt/fs >/dev/null 2>&1 || true`, name)
	x, _ := d.UntilDrive("NVFS", "filesystem errors counted", 30*time.Second, judged(drivebay.HealthSuspect, "FilesystemErrors"))
	if fs := x.Kernel.Filesystems; len(fs) != 1 || fs[0].Device != name || fs[0].FS != "ext4" || fs[0].Errors == 0 {
		t.Errorf("filesystems %+v", fs)
	}
	if x := d.BySerial("NVOTHER"); x.Health != drivebay.HealthGood {
		t.Errorf("the drive beside it is %s: %s", x.Health, findings(x))
	}
}

// TestLabDeviceMapperErrors: what dm does above a drive is not the drive's fault.
func TestLabDeviceMapperErrors(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{scsi("SDDM", 0x5000c500b0000000)}})
	d := m.Daemon(quick)
	name := m.Name("SDDM")
	m.Sh("modprobe dm-flakey; echo 0 65536 flakey /dev/%s 0 0 1 1 error_writes | dmsetup create flaky", name)
	m.Must(m.Settle(t.Context()))
	d.UntilDrive("SDDM", "in use by dm", soon, func(x *drivebay.Drive) error {
		for _, u := range x.Uses {
			if u.Kind == "dm" && strings.Contains(u.What, "flaky") {
				return nil
			}
		}
		return fmt.Errorf("uses %+v", x.Uses)
	})
	out := m.Sh("sleep 1; for i in $(seq 20); do dd if=/dev/zero of=/dev/mapper/flaky bs=4096 seek=$i count=1 oflag=direct 2>&1 || true; done; dmesg | tail -3")
	if !strings.Contains(out, "error") {
		t.Fatalf("dm-flakey let the writes pass: %s", out)
	}
	m.Sh("echo 0 65536 linear /dev/%s 0 | dmsetup reload flaky; dmsetup suspend --nolockfs --noflush flaky; (dd if=/dev/zero of=/dev/mapper/flaky bs=4096 count=1 oflag=direct 2>/dev/null &) ; sleep 8", name)
	x := d.BySerial("SDDM")
	if x.Health != drivebay.HealthGood || x.Kernel.MediaErrors24h != 0 || x.Kernel.Frozen != 0 {
		t.Errorf("the drive below is %s: %s; kernel %+v", x.Health, findings(x), x.Kernel)
	}
	m.Sh("dmsetup resume flaky; dd if=/dev/zero of=/dev/mapper/flaky bs=4096 count=1 oflag=direct; dmsetup remove --retry flaky")
}
