package volume_test

import (
	"maps"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume"
)

// TestMovedSinceItsRecord: the records are from before the end of a move, and the partition table of the drive to which it went is erased. The
// few data of the volume are between the samples, so that the drive reads as blank: nothing is written to it.
func TestMovedSinceItsRecord(t *testing.T) {
	t.Parallel()
	k := &killer{}
	onMachine(t, threeDrives(), volume.Options{After: k.step, Tick: 10 * time.Second}, func(s *stand) {
		r := rawVolume(drivebay.BackingPartition)
		r.Size.Required, r.Class.Drives = 64<<20, drivebay.TypeNVMe
		v := s.make("v", r)
		s.write(v, []byte("acknowledged"), 37<<20+8192)
		old := v.Location.Drives[0]
		k.anew(1)
		s.lead(v, drivebay.LeaveRelease)
		s.until("killed", k.dead)
		older := s.copyOfStore()
		k.arm(0)
		s.start()
		s.until("moved", func() bool { return s.of(v).Location.Drives[0] != v.Location.Drives[0] && s.of(v).Work == "" })
		v = s.of(v).Volume
		s.stop()
		s.stop, s.st = nil, older
		undo := s.zap(*s.drive(v))
		s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveCancel, ""), s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
		s.withDisk(s.drive(v).Name, func(disk host.Disk) (int, error) { return 0, disk.RemovePartition(1) }) // the kernel reads the table
		s.until("read as blank", func() bool { return s.drive(v).Content.Kind == drivebay.ContentBlank })
		before := s.bytesOf(s.drive(v).Name)
		s.start()
		time.Sleep(time.Hour)
		r.Name = "next"
		if _, err := s.e.CreateVolume(s.Context(), r); err == nil {
			s.Errorf("a new volume is on %v", s.of(drivebay.Volume{ID: drivebay.VolumeID(r.Name)}).Location.Drives)
		}
		if after := s.bytesOf(s.drive(v).Name); !maps.Equal(after, before) {
			s.Errorf("%d blocks were written, now %d", len(before), len(after))
		}
		undo()
		s.partprobe(*s.drive(v))
		s.until("found where it moved to", func() bool {
			return s.of(v).Location.Drives[0] == v.Location.Drives[0] && s.of(v).Work == "" && !s.of(v).Condition.Abnormal()
		})
	})
}
