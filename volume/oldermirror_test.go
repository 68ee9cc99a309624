package volume_test

import (
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestOlderMirrorIsWiped: a store is from the time when a mirror had lost a drive for good. The mirror got a leg on another drive since. It is
// deleted before and after its record is corrected: no leg keeps its data.
func TestOlderMirrorIsWiped(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, time.Second, time.Minute} {
		t.Run(wait.String(), func(t *testing.T) {
			onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 3, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "6GB"}}}, volume.Options{}, func(s *stand) {
				r := requests()["a mirror"]
				r.Class.Wipe = drivebay.WipeZero
				v := s.make("v", r)
				s.must(s.stage(v))
				s.word(v, "data")
				drive, spare := v.Location.Drives[1], s.spareFor(v)
				s.must(s.mgr.Cordon(s.Context(), spare, true))
				s.inject(drive, "vanish")
				time.Sleep(10 * time.Second)
				s.giveUp(drive)
				time.Sleep(time.Minute)
				s.must(s.unstage(v))
				all, err := s.st.Volumes()
				s.must(err)
				records, err := s.st.Records()
				s.must(err, s.stage(v), s.mgr.Cordon(s.Context(), spare, false))
				time.Sleep(10 * time.Minute)
				if is := s.of(v); !slices.Contains(is.Location.Drives, spare) {
					t.Fatalf("it is on %v", is.Location.Drives)
				}
				if !s.anywhere(spare, "data") {
					t.Fatal("the new leg lacks the data")
				}
				s.must(s.unstage(v))
				s.stop()
				s.stop = nil
				s.must(s.st.PutRecords(records))
				for _, r := range all {
					s.must(s.st.PutVolume(r))
				}
				s.begin()
				time.Sleep(wait)
				for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
					if err = s.e.DeleteVolume(s.Context(), v.ID); err == nil || time.Now().After(end) {
						break
					}
				}
				s.must(err)
				for _, id := range []string{v.Location.Drives[0], spare} {
					if s.blankDrive(id); s.anywhere(id, "data") {
						t.Errorf("its data are on drive %s", id)
					}
				}
			})
		})
	}
}
