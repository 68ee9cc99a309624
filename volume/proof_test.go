package volume_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestErrorsOfAPullEnd: what the kernel logged as a drive was pulled is a finding until the
// drive is back and can be read, and no longer; what it logged of bad sectors stays as
// long as they cannot be read.
func TestErrorsOfAPullEnd(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		for _, bad := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", a bad sector: ", bad), func(t *testing.T) {
				onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
					v := s.make("v", r)
					s.must(s.stage(v))
					id := v.Location.Drives[0]
					serial := s.serialOf(id)
					if bad {
						s.spoil(v)
					}
					s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "eio", Args: hostsim.Args{"lines": "12", "write": "true"}}))
					time.Sleep(20 * time.Second)
					s.inject(id, "vanish")
					time.Sleep(time.Minute)
					s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "heal"}))
					time.Sleep(5 * time.Second)
					if bad { // what was healed is the drive, and not its sectors
						s.spoil(v)
					}
					s.must(s.unstage(v), s.stage(v))
					time.Sleep(15 * time.Minute)
					got := s.of(v).Condition
					if has := strings.Contains(reasons(got), "RWIOError"); has != bad {
						s.Errorf("it says %v", got)
					}
					if lost := got.Severity() == drivebay.SeverityDataLoss; lost != (bad && !v.Location.Mirrored()) {
						s.Errorf("data is lost: %v, %v", lost, got)
					}
					d, _ := s.mgr.Snapshot().Find(id)
					if i := slices.IndexFunc(d.Findings, func(f drivebay.Finding) bool { return f.Code == "KernelErrors" }); i >= 0 {
						s.Errorf("the drive says %v", d.Findings[i])
					}
				})
			})
		}
	}
}

// spoil makes sectors in the middle of a volume unreadable, and reads them.
func (s *stand) spoil(v drivebay.Volume) {
	s.Helper()
	disk, at := s.middle(v)
	defer disk.Close()
	s.must(s.sim.Inject(hostsim.Fault{Drive: s.drive(v).Serial, Fault: "unreadable", Args: hostsim.Args{"sector": fmt.Sprint(at / 512), "n": "8"}}))
	if _, err := disk.ReadMedium(make([]byte, 4096), at); err == nil {
		s.Error("bad sectors can be read")
	}
}

// middle is a place of a volume on its first drive.
func (s *stand) middle(v drivebay.Volume) (host.Disk, int64) {
	s.Helper()
	name := s.drive(v).Name
	part, skip := s.partName(v), uint64(0)
	if v.Location.VG != "" {
		skip = 17 << 20
	}
	if v.Location.Pool != "" { // its metadata come first
		skip = 1 << 30
	}
	text, err := s.sim.ReadFile("sys/class/block/" + part + "/start")
	s.must(err)
	var start uint64
	fmt.Sscan(string(text), &start)
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+name, false)
	s.must(err)
	return disk, int64(start*512 + skip + 4<<20)
}

// partName is the partition that a volume, or its physical volume, is on.
func (s *stand) partName(v drivebay.Volume) string {
	s.Helper()
	if v.Location.VG == "" {
		return s.device(v)
	}
	return s.drive(v).Name + "p1"
}

// TestBadSectorOfAVolume: a sector that cannot be read is a loss of data in the volume that
// it is in, and in no other, until it was written and read again.
func TestBadSectorOfAVolume(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		t.Run(name, func(t *testing.T) {
			onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
				v := s.make("v", r)
				s.must(s.stage(v))
				var other *drivebay.Volume
				if r.Class.Backing == drivebay.BackingPartition {
					o := s.make("other", r)
					other = &o
				}
				s.spoil(v)
				for _, wait := range []time.Duration{10 * time.Second, 3 * time.Minute} { // it is read again meanwhile
					time.Sleep(wait)
					is := s.of(v)
					if lost := is.Condition.Severity() == drivebay.SeverityDataLoss; lost == v.Location.Mirrored() || !strings.Contains(reasons(is.Condition), "RWIOError") {
						s.Errorf("data is lost: %v, %v", lost, is.Condition)
					}
					if is.OperationalStatus != drivebay.Operative {
						s.Errorf("it is %v", is.OperationalStatus)
					}
				}
				if other != nil && other.Location.Drives[0] == v.Location.Drives[0] && s.of(*other).Condition.Severity() == drivebay.SeverityDataLoss {
					s.Errorf("the other volume says %v", s.of(*other).Condition)
				}
				disk, at := s.middle(v)
				_, err := disk.WriteAt(make([]byte, 4096), at)
				s.must(err, disk.Close())
				time.Sleep(12 * time.Minute)
				if got := s.of(v).Condition; strings.Contains(reasons(got), "RWIOError") {
					s.Errorf("written anew: %v", got)
				}
			})
		})
	}
}
