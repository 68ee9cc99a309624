package volume

import (
	"context"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
)

// lister has the volumes on the drives listed, which can take as long as a drive
// takes to answer.
type lister struct {
	e       *Engine
	at      time.Time          // when the last listing began
	busy    bool               // it has not come to its end
	wait    time.Duration      // from one to the next
	said    string             // what was wrong with the last one
	next    *drivebay.Snapshot // that came meanwhile
	settled bool               // what an earlier life left is taken up
	came    chan error
	drives  []drivebay.Drive // as they were when somebody last said that they had changed
}

// matters says whether there may be other volumes on the drives than before: most
// news are of counters and temperatures.
func (l *lister) matters(s *drivebay.Snapshot) bool {
	was := l.drives
	l.drives = s.Drives
	return !slices.EqualFunc(was, s.Drives, sameToListing)
}

// sameToListing says whether a listing finds the same on a drive at both moments.
func sameToListing(a, b drivebay.Drive) bool {
	return a.ID == b.ID && a.Status == b.Status && a.Name == b.Name && a.Size == b.Size && a.Content.Kind == b.Content.Kind && a.Content.TableSum == b.Content.TableSum &&
		(a.Claim == nil) == (b.Claim == nil) && len(a.Paths) == len(b.Paths) && slices.Equal(a.Uses, b.Uses) && stuck(a) == stuck(b)
}

func stuck(d drivebay.Drive) bool { return d.Kernel != nil && d.Kernel.LaneStuck > 0 }

func (l *lister) begin(ctx context.Context, s *drivebay.Snapshot) {
	if l.busy {
		l.next = s
		return
	}
	l.busy, l.at = true, l.e.machine.Now()
	l.e.running.Go(func() {
		l.came <- l.e.look(ctx, s)
	})
}

// end is told what could not be listed: that is tried again with the next tick, and
// then less and less often.
func (l *lister) end(ctx context.Context, err error) {
	l.busy = false
	if err == nil {
		l.wait, l.said = reportEvery, ""
	} else {
		if l.wait *= 2; l.said == "" {
			l.wait = l.e.opt.Tick
		}
		l.wait = min(l.wait, reportEvery)
		if text := err.Error(); text != l.said && ctx.Err() == nil {
			l.e.log.Warn("volumes not listed", "op", "look", "err", err)
			l.said = text
		}
	}
	if !l.settled {
		l.settled = true
		l.e.settleAll(ctx)
		l.e.resume()
	}
	if s := l.next; s != nil {
		l.next = nil
		l.begin(ctx, s)
	}
}

// news delivers the snapshots of the drives as they come, so that what happens to
// one is seen at once. Who is slow misses some, never the newest.
func (e *Engine) news(ctx context.Context, seq uint64) <-chan *drivebay.Snapshot {
	out := make(chan *drivebay.Snapshot)
	e.running.Go(func() {
		for {
			s, err := e.drives.Wait(ctx, seq)
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
