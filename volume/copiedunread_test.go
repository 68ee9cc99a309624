package volume_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// lateReading is a manager of drives that has read some of them later than all others.
type lateReading struct {
	*drivemgr.Manager
	drives []string
	until  time.Time
}

func (m lateReading) seen(s *drivebay.Snapshot) *drivebay.Snapshot {
	if s == nil || time.Now().After(m.until) {
		return s
	}
	out := *s
	out.Drives = slices.Clone(s.Drives)
	for i := range out.Drives {
		if d := &out.Drives[i]; slices.Contains(m.drives, d.ID) {
			d.Content, d.Evidence, d.Health = drivebay.Content{}, nil, drivebay.HealthUnknown
		}
		out.Drives[i].Copy = ""
	}
	return &out
}

func (m lateReading) Snapshot() *drivebay.Snapshot { return m.seen(m.Manager.Snapshot()) }

func (m lateReading) Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error) {
	s, err := m.Manager.Wait(ctx, after)
	return m.seen(s), err
}

// TestCopyReadBeforeItsOriginal: with the records lost, the copy of a drive is read before the drive that it was made from, or neither is read while
// LVM shows one of them. Its volume is not recorded there: once the copy is wiped, it is used from its own drive.
func TestCopyReadBeforeItsOriginal(t *testing.T) {
	t.Parallel()
	for _, b := range backings {
		for _, neither := range []bool{false, true} {
			t.Run(fmt.Sprint(b, ", neither ", neither), func(t *testing.T) {
				onMachine(t, tinyDrives(2), volume.Options{}, func(s *stand) {
					v := s.make("precious", rawVolume(b))
					s.mark(v)
					from, to := s.driveOf(v), s.other(v)
					s.clone(from.Name, to.Name)
					s.stop()
					s.stop = nil
					s.must(s.st.DeleteVolume(v.ID))
					time.Sleep(5 * time.Minute) // the manager reads the copy
					late := []string{from.ID}
					if neither {
						late = append(late, to.ID)
					}
					s.drives = lateReading{s.mgr, late, time.Now().Add(time.Minute)}
					s.start()
					time.Sleep(10 * time.Minute)
					if is, recorded := s.e.Volumes().Get(v.ID); recorded {
						t.Errorf("it is recorded, with a copy here: %+v", is.Location)
					}
					s.must(s.sim.Blank(to.Serial, "hand"))
					s.must(s.sim.Inject(hostsim.Fault{Drive: to.Serial, Fault: "vanish"}))
					s.must(s.sim.Inject(hostsim.Fault{Drive: to.Serial, Fault: "return"}))
					time.Sleep(20 * time.Minute)
					s.must(s.retried(func() error { return s.stage(v) }), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
				})
			})
		}
	}
}

// TestRecordedElsewhere: a record names a drive that has nothing, or something else, and the volume group is on another one: the volume is missing
// where it should be.
func TestRecordedElsewhere(t *testing.T) {
	t.Parallel()
	for _, b := range []drivebay.Backing{drivebay.BackingLVM, drivebay.BackingThin} {
		for _, claimed := range []bool{true, false} {
			for _, blank := range []bool{true, false} {
				t.Run(fmt.Sprint(b, ", claimed ", claimed, ", blank ", blank), func(t *testing.T) {
					onMachine(t, tinyDrives(2), volume.Options{}, func(s *stand) {
						v := s.make("precious", rawVolume(b))
						s.mark(v)
						to := s.other(v)
						if !blank {
							s.writeAt(to.Name, "something else", 1<<20)
						}
						s.stop()
						s.stop = nil
						all, err := s.st.Volumes()
						s.must(err)
						r := all[v.ID]
						r.Volume.Location.Drives = []string{to.ID}
						s.must(s.st.PutVolume(r))
						s.claimAll(claimed)
						s.start()
						time.Sleep(20 * time.Minute)
						if c := s.conditions(v.ID); c.Severity() < drivebay.SeverityInaccessible || c[0].Reason != "VolumeNotFound" {
							t.Errorf("it cannot be used: %+v", c)
						}
						if s.stage(v) == nil {
							t.Error("staged from a drive that its record does not name")
						}
					})
				})
			}
		}
	}
}
