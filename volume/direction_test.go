package volume_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestDirectionAfterLostStore: the records and the usage of drives are lost in the middle
// of a move. Data go to the drive that is well and never back to the BAD one; where both
// are well they stay until an operator says which is to be left.
func TestDirectionAfterLostStore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "a mirror"} {
		for _, bad := range []bool{true, false} {
			for after := 2; after <= 8; after += 2 * everyNth {
				k := &killer{}
				onMachine(t, sameDrives(3), volume.Options{After: k.step}, func(s *stand) {
					v := s.make("v", requests()[name])
					s.must(s.stage(v))
					s.word(v, "data")
					old := v.Location.Drives[0]
					if bad {
						s.inject(old, "critical-warning")
						time.Sleep(20 * time.Minute)
					}
					k.anew(after)
					s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
					for n := 0; n < 3000 && !k.dead(); n++ {
						time.Sleep(200 * time.Millisecond)
					}
					s.stop()
					s.stop = nil
					s.must(s.st.DeleteVolume(v.ID))
					if d, _ := s.mgr.Snapshot().Find(old); d.Usage == drivebay.UsageReleasing {
						s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveCancel, "lost"))
					}
					k.arm(0)
					s.start()
					time.Sleep(30 * time.Minute)
					is := s.of(v)
					at := is.Location.Drives
					undecided := strings.Contains(reasons(is.Condition), "MoveUndecided")
					switch {
					case bad && (slices.Contains(at, old) && after > 2 || undecided):
						s.Errorf("%s, after %q: it is on %v, the BAD drive is %s: %s", name, k.steps(), at, old, reasons(is.Condition))
					case !bad && undecided:
						s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
						s.usage(old, drivebay.UsageReleased, 10*time.Minute)
						time.Sleep(10 * time.Second)
						if is := s.of(v); slices.Contains(is.Location.Drives, old) || is.Condition.Abnormal() {
							s.Errorf("%s: released, it is on %v: %s", name, is.Location.Drives, is.Condition.Message())
						}
					case !bad && len(at) != len(v.Location.Drives):
						s.Errorf("%s, after %q: it stays on %v, and does not say what it waits for: %s", name, k.steps(), at, is.Condition.Message())
					}
					s.must(s.stage(v))
					if got := s.word(v, ""); got != "data" {
						s.Errorf("%s, after %q: it reads %q", name, k.steps(), got)
					}
				})
			}
		}
	}
}
