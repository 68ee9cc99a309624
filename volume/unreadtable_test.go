package volume_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// notKnown wants calls for a volume without a record to wait for its drive: nothing is deleted, and no second volume is made.
func (s *stand) notKnown(v drivebay.Volume, r drivebay.VolumeRequest) {
	s.Helper()
	if err := s.e.DeleteVolume(s.Context(), v.ID); !askedAgain(err) {
		s.Errorf("deleted: %v", err)
	}
	r.Name, r.Size.Required = "v", 1<<30
	if second, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrUnavailable) {
		s.Errorf("made a second time: %+v, %v", second.Location, err)
	}
}

// TestErasedFrontWithoutRecords: the records are lost, and the front of a drive is erased. The backup of its table names a volume, so the drive
// may carry it.
func TestErasedFrontWithoutRecords(t *testing.T) {
	t.Parallel()
	onMachine(t, nvmeDrives(2), volume.Options{}, func(s *stand) {
		r := rawVolume(drivebay.BackingPartition)
		v := s.make("v", r)
		d := s.driveOf(v)
		disk := s.open(d.Name)
		s.must(disk.RemovePartition(1), disk.Zero(s.Context(), 0, 1<<20), disk.Sync(), disk.Close())
		s.must(s.mgr.Refresh(s.Context()))
		time.Sleep(time.Minute)
		s.reborn()
		time.Sleep(2 * time.Minute)
		s.notKnown(v, r)
	})
}

// TestDeadDriveWithoutRecords: the records are lost, and the kernel has given up the drive of a volume, which has no size then. It is no drive
// without a medium.
func TestDeadDriveWithoutRecords(t *testing.T) {
	t.Parallel()
	for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM} {
		onMachine(t, fourDrives, volume.Options{}, func(s *stand) {
			r := rawVolume(b)
			r.Class.Drives = drivebay.TypeNVMe
			v := s.make("v", r)
			s.must(s.sim.Inject(hostsim.Fault{Drive: s.driveOf(v).Serial, Fault: "nvme-dead"}))
			time.Sleep(time.Minute)
			s.reborn()
			time.Sleep(2 * time.Minute)
			s.notKnown(v, r)
		})
	}
}

// TestOtherBlocksWithoutRecords: the records are lost, and a drive shows blocks of another size than its table was written for, as behind a
// bridge. The kernel finds no partition, and the drive may carry volumes all the same.
func TestOtherBlocksWithoutRecords(t *testing.T) {
	t.Parallel()
	for _, blocks := range []int{512, 4096} {
		of := func(serial string, block int) hostsim.Group {
			return hostsim.Group{Count: 1, Kind: hostsim.KindNVMe, Serial: serial, Size: "10GB", Block: block}
		}
		onMachine(t, hostsim.Spec{Drives: []hostsim.Group{of("FIRST", blocks), of("OTHER", 4608-blocks)}}, volume.Options{}, func(s *stand) {
			name := map[string]string{}
			for _, d := range s.mgr.Snapshot().Drives {
				name[d.Serial] = d.Name
				s.must(s.mgr.Cordon(s.Context(), d.ID, d.Serial == "OTHER"))
			}
			r := rawVolume(drivebay.BackingPartition)
			v := s.make("v", r)
			from, to := s.open(name["FIRST"]), s.open(name["OTHER"])
			for _, at := range []int64{0, int64(from.Size()) - 1<<20} {
				b := make([]byte, 1<<20)
				_, err := from.ReadAt(b, at)
				s.must(err)
				_, err = to.WriteAt(b, at)
				s.must(err)
			}
			s.must(to.Sync(), from.Close(), to.Close(), s.sim.Inject(hostsim.Fault{Drive: "FIRST", Fault: "vanish"}), s.mgr.Refresh(s.Context()))
			time.Sleep(time.Minute)
			s.reborn()
			time.Sleep(2 * time.Minute)
			s.notKnown(v, r)
		})
	}
}

// TestRemainsWithoutGUID: after a boot of a kernel that does not report the GUIDs of partitions (before Linux 6.13), without the database of udev, what a
// move that was taken back has left is wiped.
func TestRemainsWithoutGUID(t *testing.T) {
	t.Parallel()
	var killed atomic.Bool
	opt := volume.Options{After: func(_, step string) error {
		if step == "move taken back" {
			killed.Store(true)
		}
		if killed.Load() {
			return errKilled
		}
		return nil
	}}
	spec := fourSmall()
	spec.Drives[0].Count = 2
	spec.Without = []string{"udev"}
	onMachine(t, spec, opt, func(s *stand) {
		r := requests()["a linear volume"]
		r.Class.Wipe = drivebay.WipeZero
		v := s.make("v", r)
		id := v.Location.Drives[0]
		s.must(s.stage(v))
		s.word(v, "remains!")
		drives, other := s.mgr.Snapshot().Drives, ""
		for _, d := range drives {
			if d.ID != id {
				other = d.ID
			}
		}
		s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
		s.until("copied", func() bool { return s.holds(other, "remains!") })
		s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveCancel, ""))
		s.until("killed", killed.Load)
		s.stop()
		s.stop = nil
		s.sim.PowerCut()
		for _, fault := range []string{"vanish", "return"} { // the kernel finds them again
			for _, d := range drives {
				s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: fault}))
			}
			time.Sleep(time.Minute)
		}
		s.sim.NextBoot()
		killed.Store(false)
		s.opt.After = nil
		s.start()
		time.Sleep(30 * time.Minute)
		if s.holds(other, "remains!") {
			s.Errorf("the copy is there still: %v", s.events(drivebay.EventVolumeLeft))
		}
	})
}
