package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestTwoSnapshots: a volume and its snapshot were made anew while the drive of the first ones was away,
// and the records are lost when it returns. No volume is made from either snapshot until an operator has
// chosen, and then from the one that belongs to the chosen volume.
func TestTwoSnapshots(t *testing.T) {
	t.Parallel()
	for _, chosen := range []string{"first", "second"} {
		t.Run(chosen, func(t *testing.T) {
			onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
				r := rawVolume(drivebay.BackingThin)
				r.Size.Required = 64 << 20
				content := map[string]string{}
				both := func(mark string) drivebay.Volume {
					v := s.make("v", r)
					s.put(v, mark)
					snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
					s.must(err)
					content[mark] = snap.ID
					return v
				}
				first := both("first")
				away := first.Location.Drives[0]
				serial := s.serialOf(away)
				s.inject(away, "vanish")
				time.Sleep(time.Minute)
				s.must(s.e.ForgetVolume(s.Context(), first.ID))
				second := both("second")
				if first.Location.VG == second.Location.VG || content["first"] != content["second"] {
					s.Fatalf("%+v\n%+v\n%v", first, second, content)
				}
				s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
				time.Sleep(time.Minute)
				s.forget()
				time.Sleep(time.Minute)

				// The newer volume counts where the records are made from it first; else an operator decides.
				copied := r
				copied.Name, copied.Source = "copy", drivebay.Source{Snapshot: content["first"]}
				v, err := s.e.CreateVolume(s.Context(), copied)
				decided := s.of(second).Condition
				switch {
				case !decided.Abnormal():
					if err != nil || !s.has(v, "second") {
						s.Errorf("a copy while the newer volume counts: %v", err)
					}
					s.must(s.e.DeleteVolume(s.Context(), v.ID))
				case !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "volume clear "+second.ID):
					s.Errorf("a copy before the operator has decided: %v", err)
				default:
					if err := s.e.DeleteSnapshot(s.Context(), content["first"]); !errors.Is(err, drivebay.ErrRefused) {
						s.Errorf("removed before the operator has decided: %v", err)
					}
				}
				t.Logf("the newer counts: %v", !decided.Abnormal())

				keep, drop := first, second
				if chosen == "second" {
					keep, drop = second, first
				}
				switch is := s.of(keep); {
				case is.Location.VG != keep.Location.VG:
					other := drop.Location.Drives[0]
					serial := s.serialOf(other)
					s.inject(other, "vanish")
					time.Sleep(time.Minute)
					s.must(s.e.ForgetVolume(s.Context(), keep.ID))
					time.Sleep(11 * time.Minute)
					s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
				case is.Condition.Abnormal():
					s.must(s.e.ClearVolume(s.Context(), keep.ID))
				}
				time.Sleep(11 * time.Minute)
				if is := s.of(keep); is.Location.VG != keep.Location.VG || is.Condition.Abnormal() {
					s.Fatalf("the chosen one: %+v, %v", is.Location, is.Condition)
				}
				copied.Name = "another copy"
				if v, err = s.e.CreateVolume(s.Context(), copied); err != nil {
					s.Fatalf("a copy of the snapshot of the chosen volume: %v", err)
				}
				if !s.has(v, chosen) {
					s.Error("the copy has the content of the other snapshot")
				}
				s.must(s.e.DeleteSnapshot(s.Context(), content["first"]))
			})
		})
	}
}
