package volume

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/backoff"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// listVolumes lists the volumes on the drives of a snapshot, and adopts those that are in no record. It renews the report of LVM, or
// makes one only if the drives have changed.
func (e *Engine) listVolumes(ctx context.Context, s *drivebay.Snapshot, renew bool) error {
	e.ledger.Mu.Lock()
	before := maps.Clone(e.partitions.Listings)
	e.ledger.Mu.Unlock()
	parts, failed := e.write.ListAll(ctx, s)
	e.ledger.Mu.Lock()
	e.partitions.KeepParts(parts, failed, before)
	e.partitions.DropUnknown(s)
	e.ledger.Mu.Unlock()
	lvmErr := e.groups.ReadLVMReport(ctx, s, renew)
	errs := append(inventory.ListErrors(failed), lvmErr, e.inventory.FindBlankPVs(ctx, s), e.adopt.Adopt(ctx, s), e.mirror.WatchMirrors(ctx, s))
	e.inventory.NoteRead(ctx, s, failed, lvmErr == nil)
	return errors.Join(errs...)
}

// lister lists the volumes on the drives in the background: a listing takes as long as a drive takes to answer.
type lister struct {
	e       *Engine
	due     time.Time          // when a listing begins though no drive has changed
	busy    bool               // a listing is running
	failed  int                // listings in a row that failed
	said    string             // the error of the last one
	next    *drivebay.Snapshot // the newest that came meanwhile
	settled bool               // work from before a restart has been resumed
	came    chan error
	drives  []drivebay.Drive // at the last call of matters
}

// matters reports whether the drives may have other volumes than before: most changes are of counters and
// temperatures.
func (l *lister) matters(s *drivebay.Snapshot) bool {
	was := l.drives
	l.drives = s.Drives
	return !slices.EqualFunc(was, s.Drives, sameToListing)
}

// sameToListing reports whether a listing finds the same on a drive at both moments.
func sameToListing(a, b drivebay.Drive) bool {
	return a.ID == b.ID && a.Status == b.Status && a.Name == b.Name && a.Size == b.Size && a.Content.Kind == b.Content.Kind && a.Content.TableSum == b.Content.TableSum &&
		(a.Claim == nil) == (b.Claim == nil) && len(a.Paths) == len(b.Paths) && slices.Equal(a.Uses, b.Uses) && partitions.Stuck(a) == partitions.Stuck(b)
}

func (l *lister) begin(ctx context.Context, s *drivebay.Snapshot) {
	if l.busy {
		l.next = s
		return
	}
	now := l.e.env.Machine.Now()
	due := !now.Before(l.due)
	if due { // one that comes earlier does not put it off: the report of LVM would become old
		l.due = now.Add(partitions.ReportEvery)
	}
	l.busy = true
	l.e.env.Running.Go(func() {
		l.came <- ledger.Safely(ctx, "list volumes", func(ctx context.Context) error { return l.e.listVolumes(ctx, s, due) })
	})
}

// end ends a listing. After an error the listing is tried again after a tick, and then less and less often.
func (l *lister) end(ctx context.Context, err error) {
	l.busy = false
	if err == nil {
		l.failed, l.said = 0, ""
	} else {
		l.failed++
		if again := l.e.env.Machine.Now().Add(backoff.Backoff{First: l.e.env.Opt.Tick, Most: partitions.ReportEvery}.Wait(l.failed)); again.Before(l.due) {
			l.due = again
		}
		if text := err.Error(); text != l.said && ctx.Err() == nil {
			l.e.env.Log.Warn("volumes not listed", "op", "look", "err", err)
			l.said = text
		}
	}
	if !l.settled {
		l.e.mounts.SettleAll(ctx)
	}
	l.e.resume(!l.settled)
	l.settled = true
	if s := l.next; s != nil {
		l.next = nil
		l.begin(ctx, s)
	}
}

// followDrives delivers the snapshots of the drives as they come, so that a change is seen at once. A slow
// receiver misses some, never the newest.
func (e *Engine) followDrives(ctx context.Context, seq uint64) <-chan *drivebay.Snapshot {
	out := make(chan *drivebay.Snapshot)
	e.ledger.InBackground("follow drives", func() {
		for {
			s, err := e.env.Drives.Wait(ctx, seq)
			if err != nil {
				return
			}
			seq = s.Seq
			select {
			case out <- s:
			case <-ctx.Done():
				return
			}
		}
	})
	return out
}
