package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestSnapshotMadeLater: the daemon ends before it makes a snapshot, and goes on an hour later; or its store is from that moment. The snapshot
// has what the volume has then, and says so, also where its record is lost afterwards.
func TestSnapshotMadeLater(t *testing.T) {
	t.Parallel()
	var s *stand
	var half *drivebay.SnapshotRecord
	opt := volume.Options{After: func(id, step string) error {
		if step == "snapshot" && half == nil { // its removal has a step of that name as well
			all, err := s.st.VolumeSnapshots()
			r := all[id]
			s.must(err)
			half = &r
		}
		return nil
	}}
	onMachine(t, nvmeDrives(1), opt, func(st *stand) {
		s = st
		snap, err := s.e.CreateSnapshot(s.Context(), "snap", s.make("v", rawVolume(drivebay.BackingThin)).ID)
		s.must(err, s.e.DeleteSnapshot(s.Context(), snap.ID))
		s.stop()
		s.stop = nil
		s.must(s.st.PutVolumeSnapshot(*half))
		time.Sleep(time.Hour)
		began := time.Now()
		s.start()
		time.Sleep(time.Minute)
		later := func(when string) time.Time {
			s.Helper()
			is, ok := s.e.Volumes().GetSnapshot(snap.ID)
			if !ok || is.Unavailable != "" {
				s.Fatalf("%s: %+v", when, is)
			}
			if is.Created.Before(began.Truncate(time.Second)) {
				s.Errorf("%s: it was made after %v, and says %v", when, began, is.Created)
			}
			return is.Created
		}
		made := later("made")
		s.stop()
		s.stop = nil
		s.must(s.st.DeleteVolumeSnapshot(snap.ID))
		s.start()
		time.Sleep(time.Minute)
		if found := later("found"); !found.Equal(made.Truncate(time.Second)) {
			s.Errorf("made %v, and found as of %v", made, found)
		}
	})
}
