package volume_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestFsckOfTwins: of two complete copies of a volume, neither is repaired before an operator decides.
func TestFsckOfTwins(t *testing.T) {
	t.Parallel()
	for _, fs := range []string{"ext4", "xfs"} {
		onMachine(t, tinyDrives(2), volume.Options{}, func(s *stand) {
			r := drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: fs}}
			v := s.make("precious", r)
			old, other := s.driveOf(v), s.other(v)
			s.twin(v, other)
			s.forget()
			if s.of(v).CSIStatus != drivebay.CSIFailed {
				t.Fatal(s.of(v).CSIStatus)
			}
			s.must(s.sim.Inject(hostsim.Fault{Drive: old.Serial, Fault: "fs-corrupt"}), s.sim.Inject(hostsim.Fault{Drive: other.Serial, Fault: "fs-corrupt"}))
			before := []map[int64]string{s.bytesOf(old.Name), s.bytesOf(other.Name)}
			report, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID, Fsck: true})
			if after := []map[int64]string{s.bytesOf(old.Name), s.bytesOf(other.Name)}; !reflect.DeepEqual(before, after) {
				t.Errorf("%s: a copy has changed: %v, %+v", fs, err, report.Steps)
			}
			if err == nil && (len(report.Steps) != 1 || !strings.Contains(report.Steps[0].Failed, "volume clear")) {
				t.Errorf("%s: %+v", fs, report.Steps)
			}
		})
	}
}

// TestBadSectorWhileMoving: a sector of a volume cannot be read. That its data are lost stays a finding while its group moves.
func TestBadSectorWhileMoving(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "a thin volume", "a partition"} {
		onMachine(t, sameDrives(3), volume.Options{CopyRate: 1 << 20}, func(s *stand) {
			v := s.make("v", requests()[name])
			s.must(s.stage(v))
			s.spoil(v)
			s.must(s.unstage(v))
			time.Sleep(time.Minute)
			if is := s.of(v); is.Condition.Severity() != drivebay.SeverityDataLoss {
				t.Fatalf("%s: %s", name, is.Condition.Message())
			}
			s.must(s.mgr.Operate(s.Context(), v.Location.Drives[0], drivebay.LeaveRelease, ""))
			for range 600 {
				time.Sleep(time.Second)
				is := s.of(v)
				if is.Condition.Severity() != drivebay.SeverityDataLoss {
					t.Errorf("%s: it is on %v and says %v: %s", name, is.Location.Drives, is.OperationalStatus, is.Condition.Message())
					break
				}
			}
		})
	}
}
