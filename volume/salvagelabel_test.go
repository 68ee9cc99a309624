package volume_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// filled writes text all over a volume.
func (s *stand) filled(v drivebay.Volume) {
	s.Helper()
	text := bytes.Repeat([]byte("row of a table; "), 4<<20)
	s.withDevice(v, func(dev string) {
		disk := s.open(dev[len("/dev/"):])
		defer disk.Close()
		for at := int64(0); at < int64(v.Size); at += int64(len(text)) {
			_, err := disk.WriteAt(text, at)
			s.must(err)
		}
	})
}

// rebootWithout loses a drive and, in the reboot that follows, the label of the physical volume on another one.
func (s *stand) rebootWithout(lost, unlabelled string) {
	s.Helper()
	d, _ := s.mgr.Snapshot().Find(unlabelled)
	s.inject(lost, "vanish")
	time.Sleep(5 * time.Second)
	s.stop()
	s.stop = nil
	s.sim.PowerCut()
	s.sim.NextBoot()
	s.eraseFront(d.Name + "p1")
	s.start()
	time.Sleep(2 * time.Minute)
}

// TestSalvageWithErasedLabel: in the middle of a move one drive dies and is given up, and the label of the physical volume on the other one
// is erased. That LVM shows nothing there does not mean that nothing is there: nothing is written to the drive.
func TestSalvageWithErasedLabel(t *testing.T) {
	t.Parallel()
	r := rawVolume(drivebay.BackingLVM)
	r.Size.Required = 1 << 30
	stays := func(s *stand, v drivebay.Volume, dead, drive string, giveUp func()) {
		s.Helper()
		s.rebootWithout(dead, drive)
		d, _ := s.mgr.Snapshot().Find(drive)
		n := s.writesTo(d.Serial)
		giveUp()
		time.Sleep(5 * time.Minute)
		if now, _ := s.mgr.Snapshot().Find(drive); n.Load() > 0 || now.Content.Kind == drivebay.ContentBlank {
			s.Errorf("%d writes to the drive that has volume %s, which is %v now", n.Load(), v.Name, now.Content.Kind)
		}
		if is := s.of(v); !slices.Contains(is.Location.Drives, drive) {
			s.Errorf("volume %s is on %v by its record, and not on %s", v.Name, is.Location.Drives, drive)
		}
	}
	k := &killer{}
	onMachine(t, fourSmall(), volume.Options{After: k.step}, func(s *stand) { // the old drive dies
		all := []drivebay.Volume{s.make("one", r), s.make("two", r)}
		old := all[0].Location.Drives[0]
		for _, v := range all {
			s.filled(v)
		}
		k.anew(0)
		s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
		moved := -1
		s.until("one has moved", func() bool {
			moved = slices.IndexFunc(all, func(v drivebay.Volume) bool { return slices.Contains(k.steps(), "moved "+v.Location.LV) })
			return moved >= 0
		})
		stays(s, all[moved], old, s.of(all[0]).Location.Drives[1], func() { s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveForce, "it is dead")) })
	})
	onMachine(t, fourSmall(), volume.Options{}, func(s *stand) { // the new drive dies before anything has moved
		v := s.make("v", r)
		old := v.Location.Drives[0]
		s.filled(v)
		s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
		s.until("it moves", func() bool { return len(s.of(v).Location.Drives) == 2 })
		spare := s.of(v).Location.Drives[1]
		time.Sleep(time.Second)
		stays(s, v, spare, old, func() {
			s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveCancel, ""))
			s.must(s.mgr.Operate(s.Context(), spare, drivebay.LeaveRelease, ""), s.mgr.Operate(s.Context(), spare, drivebay.LeaveForce, "it is dead"))
		})
	})
}
