package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestOlderCurrent: a store is restored from the time when one leg of a mirror served alone. Since then the legs were synchronized, and the other
// leg was used alone. The older leg is not used in place of the newest one, whichever of them are there.
func TestOlderCurrent(t *testing.T) {
	t.Parallel()
	for _, both := range []bool{true, false} {
		onSplit(t, func(x *split) {
			x.newer() // current serves alone
			x.must(x.unstage(x.v))
			older := x.record(x.v)
			x.putBack(x.old)
			x.must(x.stage(x.v))
			time.Sleep(20 * time.Minute)
			if m := x.record(x.v).Volume.Mirror; m == nil || m.Current != "" {
				t.Fatalf("%+v", m)
			}
			x.must(x.unstage(x.v))
			x.must(x.stage(x.v))
			x.pull(x.current)
			x.word(x.v, "third")
			x.must(x.unstage(x.v))
			time.Sleep(time.Minute)
			if older.Volume.Mirror == nil || older.Volume.Mirror.Current != x.current.ID {
				t.Fatalf("%+v", older.Volume.Mirror)
			}
			if !both {
				x.pull(x.old)
			}
			x.stop()
			x.stop = nil
			x.putBack(x.current)
			x.sim.PowerCut()
			x.sim.NextBoot()
			x.must(x.st.PutVolume(older))
			x.start()
			time.Sleep(5 * time.Minute)
			if err := x.stage(x.v); err == nil {
				if got := x.word(x.v, ""); got != "third" {
					t.Errorf("both %v: it is staged, and reads %q; %s", both, got, x.of(x.v).Condition.Message())
				}
			} else {
			}
			_ = drivebay.Volume{}
		})
	}
}
