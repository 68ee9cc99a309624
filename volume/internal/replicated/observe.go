package replicated

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/replication"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/provision"
	"github.com/drivebay/drivebay/volume/internal/watch"
)

// Observer observes the replications of all volumes, and records what has to be known of them later.
type Observer struct {
	*Devices
	Inventory *inventory.Inventory
	Watch     *watch.Watcher
	Provision *provision.Provisioner

	observing atomic.Bool
	began     atomic.Pointer[time.Time] // when the kernel was asked last
}

// answerTime is how long what the kernel said last counts while it does not answer.
const answerTime = 2 * time.Minute

// Heard remembers that the kernel refused a peer, which it says in its log only, or that it accepted one: a connection may be over before
// anything looks. It reports whether a line says that.
func (e *Observer) Heard(line string) bool {
	if minor, ok := drbd.MetIn(line); ok {
		e.seen.Hear(minor, "")
		return true
	}
	r, ok := drbd.RefusedIn(line)
	if !ok {
		return false
	}
	if r.Resource != "" {
		rec, err := e.Ledger.Record(strings.TrimPrefix(r.Resource, content.OursPrefix))
		if err != nil || !rec.Volume.Replicates() {
			return false
		}
		r.Minor = rec.Volume.Replication.Minor
	}
	e.seen.Hear(r.Minor, conflicts[r.Why])
	return true
}

var conflicts = map[drbd.Refusal]drivebay.ReplicationConflict{drbd.SplitBrain: drivebay.SplitBrain, drbd.Unrelated: drivebay.UnrelatedData,
	drbd.PeerTooSmall: drivebay.PeerTooSmall, drbd.ByPeer: drivebay.RefusedByPeer}

// ObserveSoon asks the kernel for the state of every replicated volume. It does not wait: the kernel may wait for a disk.
func (e *Observer) ObserveSoon() {
	var ids []string
	for _, r := range e.Ledger.All() {
		if r.Volume.Replicates() {
			ids = append(ids, r.Volume.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	if !e.observing.CompareAndSwap(false, true) {
		if e.Machine.Now().Sub(*e.began.Load()) > answerTime && e.unanswered(ids) {
			e.Inventory.ChangedNow()
		}
		return
	}
	began := e.Machine.Now() // with its monotonic reading: the clock may be set before the kernel answers
	e.began.Store(&began)
	e.Running.Go(func() {
		defer e.observing.Store(false)
		if e.observe(e.Ctx, ids) {
			e.Inventory.ChangedNow()
		}
	})
}

// unanswered says of every volume that its replication is not known, and reports whether that is new.
func (e *Observer) unanswered(ids []string) (news bool) {
	all := map[string]drivebay.ReplicationInfo{}
	for _, id := range ids {
		if rec, err := e.Ledger.Record(id); err == nil && rec.Volume.Replicates() {
			all[id] = e.unknown(&rec.Volume, "not known", "the kernel's DRBD does not answer")
		}
	}
	return e.Watch.Replications.Set(all)
}

// observe records what has changed, and reports whether anything is new.
func (e *Observer) observe(ctx context.Context, ids []string) (news bool) {
	all := map[string]drivebay.ReplicationInfo{}
	k, err := e.loaded()
	if err == nil {
		defer k.Close()
	}
	for _, id := range ids {
		rec, gone := e.Ledger.Record(id)
		if gone != nil || !rec.Volume.Replicates() {
			continue
		}
		info := e.ask(ctx, k, err, &rec.Volume)
		if e.due(&rec.Volume) {
			e.Provision.ResumeWork(false, id, e.connectAgain, func() bool { return true })
		}
		if info.Status == drivebay.ReplicationHealthy {
			info.LastSync = time.Time{} // it is now, at each look
		}
		all[id] = info
	}
	return e.Watch.Replications.Set(all)
}

// ask asks the kernel for the state of a volume, and attaches nothing. why: the kernel cannot be asked.
func (e *Observer) ask(ctx context.Context, k drbd.Kernel, why error, v *drivebay.Volume) drivebay.ReplicationInfo {
	var st drbd.Status
	if why == nil {
		st, why = statusOf(ctx, k, v)
	}
	switch {
	case errors.Is(why, drbd.ErrNotFound):
		text := "the kernel has no device of it: its drive was not attached to DRBD"
		if e.Watch.Moves.Moves.Of(v.ID) != nil {
			text = "it is being copied to another drive, and is connected again after that"
		}
		info := e.unknown(v, "not attached", text)
		info.NoDisk = true
		return info
	case why != nil:
		return e.unknown(v, "not attached", why.Error())
	}
	return e.see(v, st)
}

// see judges the state of a volume, and records what is to be known of it later: a conflict, and when both sides had the same
// data. While they have, nothing is recorded.
func (e *Observer) see(v *drivebay.Volume, st drbd.Status) drivebay.ReplicationInfo {
	e.seen.Works(v.ID, remoteIn(st, v))
	view := replication.View{Status: st, Conflict: e.seen.Conflict(st, v.Replication.Conflict)}
	verdict, why := replication.Judge(view)
	now := e.seen.Look(v, view, e.Machine.Now())
	e.seen.Stand(v.ID, view, e.Machine.Now())
	recorded := v.Replication.Past
	behind := v.Replication.Behind && verdict != replication.Ready || view.Remote()
	parted := verdict != replication.Ready && now.LastSync != recorded.LastSync
	if parted || now.Bytes != recorded.Bytes || now.Duration != recorded.Duration || view.Conflict != v.Replication.Conflict || behind != v.Replication.Behind {
		err := e.change(v, func(r *drivebay.Replication) {
			r.Past, r.Conflict = now, view.Conflict
			if behind != v.Replication.Behind { // else a deed since this look counts
				r.Behind = behind
			}
		})
		if err != nil && !errors.Is(err, drivebay.ErrNotFound) { // it was disabled meanwhile
			e.Log.Warn("the state of a replication was not recorded", "op", "replication", "volume", v.ID, "err", err)
		}
	}
	info := drivebay.ReplicationInfo{Status: drivebay.ReplicationDegraded, Primary: st.State.Role == drbd.RolePrimary, State: verdict.String(), Message: why,
		Connected: st.State.Connection >= drbd.Connected, NoDisk: st.State.Disk <= drbd.Failed, Remote: view.Remote(), OutOfSync: st.OutOfSync, Conflict: view.Conflict, ReplicationPast: now}
	switch verdict {
	case replication.Ready:
		info.Status = drivebay.ReplicationHealthy
	case replication.SplitBrain:
		info.Status = drivebay.ReplicationError
	}
	return info
}

// AttachAgain attaches the disk of a volume that the kernel has detached, and looks at the state again.
func (e *Observer) AttachAgain(ctx context.Context, id string) error {
	if err := e.Restore(ctx, id); err != nil {
		return err
	}
	rec, err := e.Ledger.Record(id)
	if err != nil {
		return err
	}
	info, err := e.Info(ctx, rec.Volume)
	if err == nil {
		e.Watch.Replications.Put(id, info)
	}
	return err
}

// Info returns how well a volume is replicated. ErrRefused: it is not.
func (e *Observer) Info(ctx context.Context, v drivebay.Volume) (drivebay.ReplicationInfo, error) {
	if !v.Replicates() {
		return drivebay.ReplicationInfo{}, fmt.Errorf("volume %s: replication: %w: it is not enabled", v.ID, drivebay.ErrRefused)
	}
	k, err := e.loaded()
	if err == nil {
		defer k.Close()
	}
	return e.ask(ctx, k, err, &v), nil
}

func (e *Observer) unknown(v *drivebay.Volume, state, why string) drivebay.ReplicationInfo {
	return drivebay.ReplicationInfo{Status: drivebay.ReplicationDegraded, Primary: v.Replication.Primary, State: state, Message: why, ReplicationPast: replication.Known(v.Replication.Past, e.Machine.Now())}
}
