package volume_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// atReport is LVM that calls do at the nth report from now on: a report waits for a drive that spins up. A report beside
// another command is one of the listing in the background: a command that has begun is not held back any more.
type atReport struct {
	lvm.Runner
	left, others atomic.Int32
	do           func()
}

func (r *atReport) Run(ctx context.Context, argv ...string) ([]byte, error) {
	report := argv[1] == "fullreport"
	if !report {
		r.others.Add(1)
		defer r.others.Add(-1)
	}
	out, err := r.Runner.Run(ctx, argv...)
	if report && r.others.Load() == 0 && r.left.Add(-1) == 0 {
		r.do()
	}
	return out, err
}

// TestClaimWithdrawnBeforeLVM: an operator withdraws the claim of a drive while a change of its volume group waits: for another one, or
// for the report of LVM before its first command. Nothing is written to the drive then, whatever was allowed when the call began.
func TestClaimWithdrawnBeforeLVM(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"create", "expand", "delete"} {
		for n, over := int32(1), false; !over; n++ {
			t.Run(fmt.Sprint(what, " report ", n), func(t *testing.T) {
				onMachine(t, sameDrives(1), volume.Options{}, func(s *stand) {
					r := &atReport{Runner: s.sim}
					s.lvm = r
					s.start()
					u := s.claimAllByOperator()
					q := requests()["a linear volume"]
					v := s.make("v", q)
					drive := v.Location.Drives[0]
					serial := s.serialOf(drive)
					r.do = func() {
						if err := s.mgr.Claim(context.Background(), drive, false); err != nil {
							t.Error(err)
						}
						u.mu.Lock()
						defer u.mu.Unlock()
						u.claimed[serial] = false
					}
					time.Sleep(time.Minute) // what was made is listed
					r.left.Store(n)
					switch what {
					case "create":
						q.Name, q.Size.Required = "w", 1<<30
						_, _ = s.e.CreateVolume(s.Context(), q)
					case "expand":
						_, _, _ = s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
					case "delete":
						_ = s.e.DeleteVolume(s.Context(), v.ID)
					}
					over = r.left.Load() > 0
					u.mu.Lock()
					defer u.mu.Unlock()
					if len(u.seen) > 0 {
						t.Errorf("%d writes without a claim, the first one of %d bytes at %d", len(u.seen), u.seen[0].N, u.seen[0].Off)
					}
				})
			})
		}
	}
}
