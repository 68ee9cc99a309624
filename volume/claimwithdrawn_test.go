package volume_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// unclaimedWrites are the writes to drives while they have no claim.
type unclaimedWrites struct {
	mu      sync.Mutex
	claimed map[string]bool // by serial number
	seen    []hostsim.Write
}

// claimAllByOperator claims all drives by command, not by configuration, and records writes to
// drives whose claim withdraw has taken back.
func (s *stand) claimAllByOperator() *unclaimedWrites {
	s.Helper()
	for _, d := range s.mgr.Snapshot().Drives {
		s.must(s.mgr.Claim(s.Context(), d.ID, true))
	}
	s.must(s.mgr.Configure(s.Context(), drivemgr.Options{}))
	u := &unclaimedWrites{claimed: map[string]bool{}}
	s.sim.Watch(func(w hostsim.Write) {
		u.mu.Lock()
		defer u.mu.Unlock()
		if on, known := u.claimed[w.Drive]; known && !on {
			u.seen = append(u.seen, w)
		}
	})
	return u
}

// withdraw takes the claim of a drive back, calls during, and reports writes to the drive meanwhile.
func (u *unclaimedWrites) withdraw(s *stand, drive string, during func()) {
	s.Helper()
	serial := s.serialOf(drive)
	set := func(on bool) {
		u.mu.Lock()
		u.claimed[serial] = on
		u.mu.Unlock()
	}
	s.must(s.mgr.Claim(s.Context(), drive, false))
	set(false)
	during()
	set(true)
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.seen) > 0 {
		s.Errorf("%d writes without a claim, the first one of %d bytes at %d", len(u.seen), u.seen[0].N, u.seen[0].Off)
	}
}

// TestClaimWithdrawnWhileCopying: an operator withdraws the claim of the source or target drive of
// a copy. Nothing more is written to that drive. The copy continues when the target is claimed
// again; an event names data that remains on the source.
func TestClaimWithdrawnWhileCopying(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"from", "to"} {
		onMachine(t, sameDrives(2), volume.Options{CopyRate: 1 << 20}, func(s *stand) {
			u := s.claimAllByOperator()
			v := s.onAPartition(drivebay.VolumeRequest{})
			drive := v.Location.Drives[0]
			if end == "to" {
				drive = s.spareFor(v)
			}
			sum := s.sum(v)
			s.lead(v, drivebay.LeaveRelease)
			s.until("copying", func() bool { done, _, ok := s.e.CopyProgress(v.ID); return ok && done > 20<<20 })
			u.withdraw(s, drive, func() { time.Sleep(5 * time.Minute) })
			if end == "to" {
				s.must(s.mgr.Claim(s.Context(), drive, true))
				s.left(v, sum)
				return
			}
			s.until("moved", func() bool { return s.of(v).Location.Drives[0] != drive && s.of(v).Work == "" })
			if told := strings.Join(s.events(drivebay.EventVolumeLeft), "\n"); s.sum(s.of(v).Volume) != sum || !strings.Contains(told, "was not wiped") {
				t.Errorf("the volume left a drive without a claim, with the events %q", told)
			}
		})
	}
}

// TestClaimKeptWhileGroupMoves: while the kernel moves a volume group, neither an operator nor the
// configuration can withdraw the claim of one of its drives. A claim that the configuration no
// longer has ends when the move ends.
func TestClaimKeptWhileGroupMoves(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"operator", "configuration"} {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			if by == "operator" {
				s.claimAllByOperator()
			}
			r := requests()["a linear volume"]
			r.Size.Required = 4 << 30
			v := s.make("v", r)
			s.must(s.stage(v))
			s.word(v, "kept")
			from, to := v.Location.Drives[0], s.spareFor(v)
			s.must(s.mgr.Operate(s.Context(), from, drivebay.LeaveRelease, ""))
			s.until("on its way", func() bool { return len(s.of(v).Location.Drives) == 2 })
			claimed := func(id string) bool { d, _ := s.mgr.Snapshot().Find(id); return d.Claim != nil }
			if by == "operator" {
				for _, id := range []string{from, to} {
					if err := s.mgr.Claim(s.Context(), id, false); !errors.Is(err, drivebay.ErrBusy) || !strings.Contains(err.Error(), "drivebay cancel") || !claimed(id) {
						t.Errorf("the claim of %s is withdrawn: %v", id, err)
					}
				}
				s.must(s.mgr.Operate(s.Context(), from, drivebay.LeaveCancel, ""))
				s.until("taken back", func() bool { return slices.Equal(s.of(v).Location.Drives, []string{from}) })
				s.until("let go", func() bool { return s.mgr.Claim(s.Context(), to, false) == nil })
			} else {
				s.must(s.mgr.Configure(s.Context(), drivemgr.Options{}), s.mgr.Refresh(s.Context()))
				if !claimed(from) || !claimed(to) {
					t.Error("the claims go while the kernel copies")
				}
				s.until("moved", func() bool { return slices.Equal(s.of(v).Location.Drives, []string{to}) })
				s.until("let go", func() bool { s.must(s.mgr.Refresh(s.Context())); return !claimed(to) })
			}
			if got := s.word(v, ""); got != "kept" {
				t.Errorf("%s: it reads %q", by, got)
			}
		})
	}
}

// TestInterruptedWorkContinues: the daemon is killed while a volume grows, and starts while the
// drive is not claimed. The growth ends after the drive is claimed again, without another restart.
func TestInterruptedWorkContinues(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "raw on a partition"} {
		k := &killer{}
		onMachine(t, twoNVMe, volume.Options{After: k.step}, func(s *stand) {
			r := unclaimedRequest(name)
			r.Block = true
			v := s.make("v", r)
			k.arm(1)
			_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size + 1<<28})
			if !k.dead() {
				t.Fatalf("%s: it was not killed: %v", name, err)
			}
			s.stop()
			s.stop = nil
			k.arm(0)
			s.claimAll(false)
			s.start()
			time.Sleep(11 * time.Minute)
			if is := s.of(v); is.CSIStatus != drivebay.CSIResizing {
				t.Errorf("%s: without a claim it is %v", name, is.CSIStatus)
			}
			s.claimAll(true)
			s.until("grown", func() bool { return s.of(v).CSIStatus == drivebay.CSICreated && s.of(v).Size == v.Size+1<<28 })
			s.must(s.stage(v), s.unstage(v))
		})
	}
}
