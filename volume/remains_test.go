package volume_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// holds says whether a text is written on a drive where these tests write it.
func (s *stand) holds(id, text string) (is bool) {
	s.Helper()
	d, _ := s.mgr.Snapshot().Find(id)
	s.read(*d, func(r io.ReaderAt) {
		for _, at := range []int64{96 << 20, 704 << 20} {
			b := make([]byte, 32<<20)
			_, err := r.ReadAt(b, at)
			s.must(err)
			is = is || bytes.Contains(b, []byte(text))
		}
	})
	return is
}

func fourSmall() hostsim.Spec {
	return hostsim.Spec{Drives: []hostsim.Group{{Count: 4, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "4GB"}}}
}

// TestMoveLeavesNothing: when a drive is released, nothing is left on it of volumes that a
// group has moved off it, but where their class says so; wherever the daemon is killed.
func TestMoveLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "a thin volume", "a mirror"} {
		for _, wipe := range []drivebay.Wipe{drivebay.WipeNone, drivebay.WipeDiscard, drivebay.WipeZero} {
			k := &killer{}
			for after := 0; after <= len(k.steps()) && !t.Failed(); after += everyNth {
				if after > 0 && (wipe != drivebay.WipeZero || testing.Short()) {
					break
				}
				onMachine(t, fourSmall(), volume.Options{After: k.step}, func(s *stand) {
					r := requests()[name]
					r.Class.Wipe = wipe
					r.Size.Required = 1 << 30
					v := s.make("v", r)
					s.must(s.stage(v))
					s.word(v, "remains!")
					s.must(s.unstage(v))
					id := v.Location.Drives[0]
					if v.Location.Pool != "" { // where the simulated pool has its data is not seen on its drive
						d := s.open(s.driveOf(v).Name + "p1")
						_, err := d.WriteAt([]byte("remains!"), 100<<20)
						s.must(err, d.Close())
					}
					if !s.holds(id, "remains!") {
						s.Fatalf("%s: its data is not found", name)
					}
					k.anew(after)
					s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
					released := func() bool {
						if k.dead() {
							k.arm(0)
							s.start()
						}
						d, _ := s.mgr.Snapshot().Find(id)
						return d.Usage == drivebay.UsageReleased
					}
					s.until("released", released)
					if is := s.holds(id, "remains!"); is != (wipe == drivebay.WipeNone) {
						s.Errorf("%s, wipe %s, killed after step %d: its data is on the drive that was released: %v", name, wipe, after, is)
					}
					k.anew(0)
					s.must(s.e.DeleteVolume(s.Context(), v.ID))
				})
			}
		}
	}
}

// TestRemainsStay: a drive that went before it was wiped holds up nothing, and what is left
// on it is said.
func TestRemainsStay(t *testing.T) {
	t.Parallel()
	var moved func(step string)
	after := func(_, step string) error {
		moved(step)
		return nil
	}
	onMachine(t, fourSmall(), volume.Options{After: after}, func(s *stand) {
		var serial string
		moved = func(step string) {
			if strings.HasPrefix(step, "moved ") {
				_ = s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "vanish"})
			}
		}
		r := requests()["a linear volume"]
		r.Class.Wipe = drivebay.WipeZero
		r.Size.Required = 1 << 30
		v := s.make("v", r)
		id := v.Location.Drives[0]
		serial = s.serialOf(id)
		s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
		s.until("it waits", func() bool {
			d, _ := s.mgr.Snapshot().Find(id)
			return d.Leaving != nil && strings.Contains(d.Leaving.Cause, "put it back")
		})
		s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveForce, "it is dead"))
		s.until("it is said", func() bool {
			return strings.Contains(strings.Join(s.events(drivebay.EventVolumeLeft), "\n"), "was not wiped")
		})
		s.until("it is where it moved to", func() bool { d := s.of(v).Location.Drives; return len(d) == 1 && d[0] != id })
	})
}
