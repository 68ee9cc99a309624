package volume_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestOlderRecordInMovingGroup: an older record names a logical volume of a group that has to move, and
// the volume was made again as a partition on another drive. The group moves once the drive of that
// partition is there, whether the record is from before the move, or from its beginning.
func TestOlderRecordInMovingGroup(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		k := &killer{}
		onMachine(t, sameDrives(5), volume.Options{After: k.step}, func(s *stand) {
			used, gone := s.twoOf("a mirror")
			s.word(used, "before")
			older, err := s.st.Volumes()
			s.must(err, s.e.DeleteVolume(s.Context(), gone.ID))
			v := s.make(gone.Name, requests()["a partition"])
			from := used.Location.Drives[0]
			if slices.Contains(used.Location.Drives, v.Location.Drives[0]) {
				t.Fatalf("%s is on a drive of the group", v.ID)
			}
			serial := s.serialOf(v.Location.Drives[0])
			r := older[gone.ID]
			if begun { // the partition for the physical volume is there, and blank
				k.anew(3)
				s.must(s.mgr.Operate(s.Context(), from, drivebay.LeaveRelease, ""))
				s.until("killed", k.dead)
				if got := k.steps(); got[len(got)-1][:len("kernel")] != "kernel" {
					t.Fatalf("killed after %q", got)
				}
				records, err := s.st.Volumes()
				s.must(err)
				r.Volume.Location.Drives = records[used.ID].Volume.Location.Drives
			}
			s.inject(v.Location.Drives[0], "vanish")
			k.arm(0)
			s.restart(func() { s.must(s.st.PutVolume(r)) })
			if !begun {
				s.must(s.mgr.Operate(s.Context(), from, drivebay.LeaveRelease, ""))
			}
			time.Sleep(15 * time.Minute)
			if got := s.of(used); !begun && len(got.Location.Drives) > 2 || got.Usage == drivebay.VolumeReleased {
				t.Errorf("begun %v: it moves, and its group lacks a recorded volume: %v", begun, got.Location.Drives)
			} else if text := got.Condition.Message(); !strings.Contains(text, "MoveBlocked") {
				t.Errorf("begun %v: it is not said why it does not move: %s", begun, text)
			}
			s.comesBack(serial)
			s.usage(from, drivebay.UsageReleased, 20*time.Minute)
			if is := s.of(used); is.Condition.Abnormal() || slices.Contains(is.Location.Drives, from) || s.word(used, "") != "before" {
				t.Errorf("begun %v: it is on %v: %s", begun, is.Location.Drives, is.Condition.Message())
			}
			if is := s.of(v); is.Location.Partition != v.Location.Partition || is.Condition.Abnormal() {
				t.Errorf("begun %v: the one that was made again is %+v: %s", begun, is.Location, is.Condition.Message())
			}
		})
	}
}

// TestLabelStaysWithItsPartition: an older record names a partition that is no longer on a drive, so that
// the partition table of the drive may not change. A volume group that leaves the drive keeps its physical
// volume there until the record is given up. The drive stays readable meanwhile: volumes are made on
// others.
func TestLabelStaysWithItsPartition(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(3), volume.Options{}, func(s *stand) {
		old := s.make("old", requests()["a partition"])
		older, err := s.st.Volumes()
		s.must(err, s.e.DeleteVolume(s.Context(), old.ID))
		v := s.make("v", requests()["a linear volume"])
		from := v.Location.Drives[0]
		r := older[old.ID]
		r.Volume.Location.Drives = []string{from}
		s.restart(func() { s.must(s.st.PutVolume(r)) })
		s.must(s.mgr.Operate(s.Context(), from, drivebay.LeaveRelease, ""))
		time.Sleep(15 * time.Minute)
		s.restart(func() {})
		time.Sleep(time.Minute)
		s.make("other", requests()["a partition"])
		s.must(s.e.ForgetVolume(s.Context(), old.ID))
		s.usage(from, drivebay.UsageReleased, 10*time.Minute)
		s.blankDrive(from)
	})
}
