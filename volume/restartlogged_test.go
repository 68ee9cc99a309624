package volume_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestLoggedOutlastsARestart: the kernel says once that a request has failed, that a sector cannot be read and that a filesystem has lost
// a write. It holds after a restart of the daemon.
func TestLoggedOutlastsARestart(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		line string
		bad  bool
		want drivebay.Severity
	}{
		{"I/O error, dev %[1]s, sector %[2]d op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2", false, drivebay.SeverityDegraded},
		{"critical medium error, dev %[1]s, sector %[2]d op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", true, drivebay.SeverityDataLoss},
		{"EXT4-fs warning (device %[3]s): ext4_end_bio:343: I/O error 3 writing to inode 131 starting block 34816)", false, drivebay.SeverityDegraded},
	} {
		onMachine(t, threeDrives(), volume.Options{}, func(s *stand) {
			v := s.onAPartition(drivebay.VolumeRequest{})
			s.must(s.stage(v))
			d, _ := s.mgr.Snapshot().Find(v.Location.Drives[0])
			const at = 8 << 20
			if c.bad {
				s.badSectors(v, at, 512)
			}
			text, err := s.sim.ReadFile("sys/class/block/" + s.device(v) + "/start")
			s.must(err)
			var start uint64 // in sectors
			fmt.Sscan(string(text), &start)
			s.sim.WriteKernelLog(strings.TrimSpace(fmt.Sprintf(c.line+"%.0[1]s%.0[2]d%.0[3]s", d.Name, start+at/512, s.device(v))))
			expect := func(when string) {
				s.Helper()
				for _, f := range s.of(v).Condition {
					if f.Reason == "RWIOError" && f.Severity == c.want {
						return
					}
				}
				s.Errorf("%s: %s: %q", c.line, when, s.of(v).Condition.Message())
			}
			time.Sleep(3 * time.Minute)
			expect("logged")
			s.restart(func() {})
			time.Sleep(3 * time.Minute)
			expect("after a restart")
			if i > 0 {
				return
			}
			s.restart(func() { time.Sleep(20 * time.Hour) })
			time.Sleep(3 * time.Minute)
			expect("after a long one")
			s.restart(func() { time.Sleep(5 * time.Hour) })
			time.Sleep(3 * time.Minute)
			if s.of(v).Condition.Abnormal() {
				s.Errorf("%s: a day later: %q", c.line, s.of(v).Condition.Message())
			}
		})
	}
}
