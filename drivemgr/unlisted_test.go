package drivemgr

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/host"
)

// TestLineBeforeTheListing: an error that the kernel logs when it attaches a disk, or after the start of the daemon, comes before the disk
// is listed. It counts once the disk is. One of long before, or about a port, is of another disk.
func TestLineBeforeTheListing(t *testing.T) {
	machine, err := host.Recorded("../testdata/lab-recording")
	if err != nil {
		t.Fatal(err)
	}
	const medium = "critical medium error, dev sda, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"
	now := machine.Now()
	for name, c := range map[string]struct {
		line    host.LogLine
		sectors uint64
		others  uint64
	}{
		"a sector":               {host.LogLine{At: now, Text: medium}, 1, 0},
		"another error":          {host.LogLine{At: now, Text: "I/O error, dev sda, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"}, 0, 1},
		"a sector, long before":  {host.LogLine{At: now.Add(-time.Hour), Text: medium}, 0, 0},
		"a device above a disk":  {host.LogLine{At: now, Text: "EXT4-fs error (device dm-3): ext4_lookup:1855: inode #2: comm ls: deleted inode referenced: 12"}, 0, 0},
		"the address of a drive": {host.LogLine{At: now, Text: "sd 0:0:0:0: rejecting I/O to dead device"}, 0, 0},
	} {
		m := New(machine, nil, state.Options{})
		for range 1000 {
			m.poll.AddLogLine(host.LogLine{At: now, Text: "critical medium error, dev sdzz, sector 0"})
		}
		m.poll.AddLogLine(c.line)
		for range 2 { // a line counts once
			m.tracking.ApplyListing(m.tracking.ListMachine(context.Background(), inventory.Options{}))
		}
		for _, tr := range m.state.Drives {
			k := &drivebay.Kernel{}
			tr.Kernlog.Count(k, now)
			want := c
			if tr.Drive.Name != "sda" {
				want.sectors, want.others = 0, 0
			}
			if k.MediaErrors24h != want.sectors || k.OtherErrors24h != want.others {
				t.Errorf("%s, %s: %d sectors, %d other errors", name, tr.Drive.Name, k.MediaErrors24h, k.OtherErrors24h)
			}
		}
	}
}

// TestLineOfAnUnlistedPath: a request to a drive that has several paths fails under the name of a path (drivers/nvme/host/multipath.c).
func TestLineOfAnUnlistedPath(t *testing.T) {
	for _, dev := range []string{"nvme0c1n1", "xvdb"} {
		m, tr := oneTracked(t, "sda")
		now := m.state.Machine.Now()
		tr.Drive.Paths = append(tr.Drive.Paths, drivebay.Path{Name: dev})
		delete(m.state.Drives, tr.Drive.ID)
		m.poll.AddLogLine(host.LogLine{At: now, Text: "I/O error, dev " + dev + ", sector 16 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2"})
		m.state.Drives[tr.Drive.ID] = tr // it is listed
		m.poll.AddUnlisted(0)
		k := &drivebay.Kernel{}
		if tr.Kernlog.Count(k, now); k.UnresolvedErrors != 1 {
			t.Errorf("%s: %d errors", dev, k.UnresolvedErrors)
		}
	}
}

// TestLineOfTheNextDisk: an error that the kernel logs of a disk which it attaches is not one of the drive that had its name, and
// was pulled right before: no listing has shown that yet.
func TestLineOfTheNextDisk(t *testing.T) {
	for name, c := range map[string]struct {
		attached     string
		exchanged    bool
		before, next int // sectors
	}{
		"exchanged":    {"sd 0:0:0:0: [sda] 4194304 512-byte logical blocks: (2.15 GB/2.00 GiB)", true, 1, 1},
		"another disk": {"sd 0:0:0:0: [sdx] 4194304 512-byte logical blocks: (2.15 GB/2.00 GiB)", true, 2, 0},
		"another size": {"sd 0:0:0:0: [sda] 4194304 512-byte logical blocks: (2.15 GB/2.00 GiB)", false, 2, 0},
	} {
		m, before := oneTracked(t, "sda")
		id, now := before.Drive.ID, m.state.Machine.Now()
		if c.exchanged { // the record of another drive has the name
			before.Drive.ID, before.Drive.Serial, before.Drive.WWN = "another", "another", ""
			before.Drive.Disks = []drivebay.DiskIdentity{{Seq: "1000"}}
			delete(m.state.Drives, id)
			m.state.Drives["another"] = before
		}
		line := func(text string) { m.poll.AddLogLine(host.LogLine{At: now, Text: text}) }
		line("critical medium error, dev sda, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2")
		line(c.attached)
		line("critical medium error, dev sda, sector 16 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2")
		for range 2 {
			m.tracking.ApplyListing(m.tracking.ListMachine(context.Background(), inventory.Options{}))
		}
		sectors := func(tr *state.Tracked) int {
			k := &drivebay.Kernel{}
			tr.Kernlog.Count(k, now)
			return int(k.MediaErrors24h)
		}
		next := 0
		if c.exchanged {
			next = sectors(m.state.Drives[id])
		}
		if is := sectors(before); is != c.before || next != c.next {
			t.Errorf("%s: the drive that had the name has %d sectors, the next one %d", name, is, next)
		}
	}
}

// TestLostLines: lines of the kernel log that were lost may have been errors of drives, which is reported as long as the lines would count.
func TestLostLines(t *testing.T) {
	for age, want := range map[time.Duration]bool{time.Minute: true, 25 * time.Hour: false} {
		m, _ := oneTracked(t, "sda")
		m.poll.AddLogLine(host.LogLine{At: m.state.Machine.Now().Add(-age), Text: "anything", Overflow: true})
		if is := strings.Contains(strings.Join(m.allProblems(), "; "), "kernel log: lines were lost"); is != want {
			t.Errorf("after %v: %q", age, m.allProblems())
		}
	}
}

// TestSuppressedLines: lines that the kernel itself left out are lost as well: of two drives that fail at once, one may be in none of those that
// it logged.
func TestSuppressedLines(t *testing.T) {
	for line, want := range map[string]bool{
		"blk_print_req_error: 37 callbacks suppressed": true,
		"buffer_io_error: 1 callbacks suppressed":      true,
		"net_ratelimit: 37 callbacks suppressed":       false,
	} {
		m, _ := oneTracked(t, "sda")
		m.poll.AddLogLine(host.LogLine{At: m.state.Machine.Now(), Text: line})
		if is := strings.Contains(strings.Join(m.allProblems(), "; "), "kernel log: lines were lost"); is != want {
			t.Errorf("%s: %q", line, m.allProblems())
		}
	}
}
