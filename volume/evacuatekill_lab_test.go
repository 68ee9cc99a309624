//go:build lab

package volume_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

func init() {
	// A volume whose device stays there, whoever dies, and where it is.
	labGoals["use"] = func(ctx context.Context, e labDaemon) error {
		if err := labGoals["neighbour"](ctx, e); err != nil {
			return err
		}
		return e.tellHome()
	}
	// Its drive has to leave, and stays when it is empty.
	labGoals["move"] = func(ctx context.Context, e labDaemon) error {
		from := os.Getenv(homeKey)
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			d, _ := e.mgr.Snapshot().Find(from)
			v, _ := e.Volumes().Find("n")
			there := v.Location.Drives[0] == from || v.Location.Mirrored() && v.Location.Drives[1] == from
			switch d.Usage {
			case drivebay.UsageInUse:
				if !there {
					return e.tellHome()
				}
				if err := e.mgr.Lead(ctx, from, drivebay.LeaveRelease, "a test"); err != nil {
					return err
				}
			case drivebay.UsageReleased:
				if err := e.mgr.Lead(ctx, from, drivebay.LeaveCancel, "a test"); err != nil {
					return err
				}
			case drivebay.UsageFailed:
				return fmt.Errorf("%+v", d.Leaving)
			}
		}
		return ctx.Err()
	}
}

const homeKey = "DRIVEBAY_HOME"

func (e labDaemon) tellHome() error {
	v, _ := e.Volumes().Find("n")
	if n := len(v.Location.Drives); n != 1 && v.Location.Kind != drivebay.LocationMirror || n > 2 {
		return fmt.Errorf("it is on %v", v.Location.Drives)
	}
	return os.WriteFile(os.Getenv(dirKey)+"/home", []byte(v.Location.Drives[0]), 0o600)
}

// TestLabEvacuationKilled has the daemon killed by SIGKILL after the steps of a move on
// real drives with LVM, below a device that is there all the time, and started again:
// to and fro, until a move has fewer steps than it was to be killed after.
func TestLabEvacuationKilled(t *testing.T) {
	for name, every := range map[string]int{"some": 6, "every": 1} {
		for _, backing := range []drivebay.Backing{drivebay.BackingLVM, drivebay.BackingMirror} {
			t.Run(name+"/"+string(backing), func(t *testing.T) { killedOnTheWay(t, backing, every) })
		}
	}
}

func killedOnTheWay(t *testing.T, backing drivebay.Backing, every int) {
	at := t.TempDir()
	if step := killedAfter(t, at, backing, "use", 0); step != "" {
		t.Fatal(step)
	}
	dev := "/dev/mapper/" + strings.ReplaceAll(text(t, at+"/vg"), "-", "--") + "-" + strings.ReplaceAll(text(t, at+"/lv"), "-", "--")
	tool(t, "dd", "if=/dev/urandom", "of="+dev, "bs=1M", "oflag=direct", "count=32")
	before := tool(t, "md5sum", dev)
	var steps []string
	n, last := 1, ""
	for ; n == 1 || last != ""; n += every {
		t.Setenv(homeKey, text(t, at+"/home"))
		last = killedAfter(t, at, backing, "move", n)
		if during := tool(t, "md5sum", dev); during != before {
			t.Fatalf("killed after %q: %s, was %s", last, during, before)
		}
		if step := killedAfter(t, at, backing, "move", 0); step != "" {
			t.Fatal(step)
		}
		tool(t, "sh", "-c", "echo 3 >/proc/sys/vm/drop_caches")
		if after := tool(t, "md5sum", dev); after != before {
			t.Fatalf("after it was killed after %q and went on: %s, was %s", last, after, before)
		}
		if last != "" && text(t, at+"/home") == os.Getenv(homeKey) {
			t.Errorf("killed after %q it is where it was", last)
		}
		steps = append(steps, last)
	}
	if t.Logf("killed after each of %q", steps); n-every <= 8 { // the first that it did not come to
		t.Errorf("a move has fewer than %d steps", n-every)
	}
	if step := killedAfter(t, at, backing, "blank", 0); step != "" {
		t.Fatal(step)
	}
}
