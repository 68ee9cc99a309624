//go:build lab

package volume_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/drivebay/drivebay"
)

// The goals of hack/lab/suite, TestLabVolumeEvacuateSteps, which holds what comes of
// them against each other.
func init() {
	// A volume whose device stays there, whoever dies, and where it is.
	labGoals["use"] = func(ctx context.Context, e labDaemon) error {
		if err := labGoals["neighbour"](ctx, e); err != nil {
			return err
		}
		return e.tellHome()
	}
	// Its drive has to leave, and is used again when it is empty and still there.
	labGoals["move"] = func(ctx context.Context, e labDaemon) error {
		from := os.Getenv("DRIVEBAY_HOME")
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			d, _ := e.mgr.Snapshot().Find(from)
			v, _ := e.Volumes().Find("n")
			there := v.Location.Drives[0] == from || v.Location.Mirrored() && v.Location.Drives[1] == from
			switch {
			case d.Usage == drivebay.UsageReleased && d.Status != drivebay.StatusOnline, d.Usage == drivebay.UsageInUse && !there:
				return e.tellHome()
			case d.Usage == drivebay.UsageInUse:
				if err := e.mgr.Operate(ctx, from, drivebay.LeaveRelease, "a test"); err != nil {
					return err
				}
			case d.Usage == drivebay.UsageReleased:
				if err := e.mgr.Operate(ctx, from, drivebay.LeaveCancel, "a test"); err != nil {
					return err
				}
			case d.Usage == drivebay.UsageFailed:
				return fmt.Errorf("%+v", d.Leaving)
			}
		}
		return ctx.Err()
	}
}

func (e labDaemon) tellHome() error {
	v, _ := e.Volumes().Find("n")
	if n := len(v.Location.Drives); n != 1 && v.Location.Kind != drivebay.LocationMirror || n > 2 {
		return fmt.Errorf("it is on %v", v.Location.Drives)
	}
	d, known := e.mgr.Snapshot().Find(v.Location.Drives[0])
	if !known {
		return fmt.Errorf("nobody knows drive %s", v.Location.Drives[0])
	}
	at := os.Getenv(dirKey)
	return errors.Join(os.WriteFile(at+"/home", []byte(d.ID), 0o600), os.WriteFile(at+"/serial", []byte(d.Serial), 0o600))
}
