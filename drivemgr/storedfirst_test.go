package drivemgr_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/store"
)

// fullStore is a store of drives that takes no writes while it is full.
type fullStore struct {
	*failingStore
}

func (f fullStore) PutRecords(r map[string]drivebay.Record) error {
	if err := f.Failing(); err != nil {
		return err
	}
	return f.Mem.PutRecords(r)
}

func (f fullStore) DeleteRecords(ids []string) error {
	if err := f.Failing(); err != nil {
		return err
	}
	return f.Mem.DeleteRecords(ids)
}

// TestCommandsAreStored: a command of an operator about a drive succeeds only once it is stored. If the store cannot be written, the command
// fails: the daemon that starts after a loss of power would not know of it, and would write to a drive whose claim was withdrawn.
func TestCommandsAreStored(t *testing.T) {
	operate := func(verb drivebay.LeaveVerb) func(context.Context, *drivemgr.Manager, string) error {
		return func(ctx context.Context, m *drivemgr.Manager, id string) error { return m.Operate(ctx, id, verb, "") }
	}
	claim := func(on bool) func(context.Context, *drivemgr.Manager, string) error {
		return func(ctx context.Context, m *drivemgr.Manager, id string) error { return m.Claim(ctx, id, on) }
	}
	cordon := func(on bool) func(context.Context, *drivemgr.Manager, string) error {
		return func(ctx context.Context, m *drivemgr.Manager, id string) error { return m.Cordon(ctx, id, on) }
	}
	for _, c := range []struct {
		name   string
		before func(context.Context, *drivemgr.Manager, string) error
		do     func(context.Context, *drivemgr.Manager, string) error
		is     func(drivebay.Record) bool
	}{
		{"claim withdrawn", claim(true), claim(false), func(r drivebay.Record) bool { return r.Claim == nil }},
		{"cordon", cordon(false), cordon(true), func(r drivebay.Record) bool { return r.Cordoned }},
		{"release", claim(true), operate(drivebay.LeaveRelease), func(r drivebay.Record) bool { return r.Usage == drivebay.UsageReleasing }},
		{"cancel", operate(drivebay.LeaveRelease), operate(drivebay.LeaveCancel), func(r drivebay.Record) bool { return r.Usage == drivebay.UsageInUse }},
		{"force-remove", operate(drivebay.LeaveRelease), operate(drivebay.LeaveForce), func(r drivebay.Record) bool {
			return r.Usage == drivebay.UsageRemoving || r.Usage == drivebay.UsageRemoved
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := fullStore{&failingStore{Mem: store.Memory()}}
			onRack(t, 24, st, drivemgr.Options{}, func(r *rig) {
				id := r.pick(drivebay.ProtocolATA, 1).ID
				stored := func() drivebay.Record {
					all, err := st.Records()
					r.must(err)
					return all[id]
				}
				r.must(c.before(r.Context(), r.mgr, id))
				if was := stored(); c.is(was) {
					r.Fatalf("before: %+v", was)
				}
				st.set(errors.New("no space left on device"))
				err := c.do(r.Context(), r.mgr, id)
				if err == nil {
					r.Errorf("the command succeeded, and the store does not have it: %+v", stored().Claim)
				} else if !errors.Is(err, drivebay.ErrUnavailable) {
					r.Errorf("the command: %v, want unavailable", err)
				}
				st.set(nil)
				time.Sleep(10 * time.Second)
				if is := stored(); !c.is(is) {
					r.Errorf("10 s after the store can be written, it has %v %v", is.Claim, is.Usage)
				}
				r.must(r.mgr.Cordon(r.Context(), id, true))
			})
		})
	}
}

// hungStore is a store of drives whose writes do not end while it hangs.
type hungStore struct {
	*store.Mem
	hangs chan struct{} // nil: it does not
}

func (h *hungStore) PutRecords(r map[string]drivebay.Record) error {
	if h.hangs != nil {
		<-h.hangs
	}
	return h.Mem.PutRecords(r)
}

// TestCommandDoesNotHang: a command waits for a store that hangs for a limited time, and says that it is not stored.
func TestCommandDoesNotHang(t *testing.T) {
	st := &hungStore{Mem: store.Memory()}
	onRack(t, 24, st, drivemgr.Options{}, func(r *rig) {
		id := r.pick(drivebay.ProtocolATA, 1).ID
		st.hangs = make(chan struct{})
		began := time.Now()
		if err := r.mgr.Cordon(r.Context(), id, true); !errors.Is(err, drivebay.ErrUnavailable) || time.Since(began) > 15*time.Second {
			r.Errorf("after %v: %v", time.Since(began), err)
		}
		close(st.hangs)
		time.Sleep(time.Second)
		if all, err := st.Records(); err != nil || !all[id].Cordoned {
			r.Errorf("the store has it not: %v", err)
		}
	})
}
