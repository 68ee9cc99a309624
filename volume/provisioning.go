package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
)

// provisioning holds the state of the part of the engine that makes and removes volumes.
type provisioning struct {
	index     index                       // guarded by Engine.mu, like tables
	tables    map[string][]gpt.Partition  // by drive, as last read
	layouts   map[string]layout           // by drive, guarded by Engine.mu
	listings  map[string]uint64           // how often a drive was listed alone
	summaries map[string]partitionSummary // by drive, from its last listing
	found     []drivebay.FoundVolume      // volumes on unclaimed drives without a record
	adopting  map[string]int              // how many calls adopt a volume, by its id
	// blankPVs are partitions for a physical volume that read back blank, by drive.
	blankPVs         map[string]part
	unlisted         map[string]string     // by drive that is here: why its volumes are not known; "": they are known
	complete         bool                  // all drives of the machine and LVM's report of them were listed once
	notAdopted       map[string]error      // by drive: why volumes on it have no record yet
	lvmChanges       atomic.Uint64         // grows with each change of logical volumes
	reports          sync.Map              // name of a group -> reported
	groupMoves       map[string]*groupMove // of groups that move, by name; guarded by Engine.mu
	removedFromGroup map[string]bool       // ids of volumes being removed whose logical volume is gone; guarded by Engine.mu

	readErrorsLogged, writeErrorsLogged atomic.Uint64 // copy errors in the kernel's log
	kernelLogClosed                     atomic.Bool   // the kernel's log cannot be read
	kernelLogGaps                       atomic.Uint64 // how often lines of the log were lost
	movesLV                             chan struct{} // one volume moves at a time
	placing                             sync.Mutex    // one place is chosen at a time
	capabilitiesMu                      sync.Mutex    // held while the capabilities are determined
	capabilitiesKnown                   bool          // the capabilities are known
	capabilities                        drivebay.VolumeCapabilities
	mayLUKS                             atomic.Bool // true once encryption was found to work here
}

// placementView returns everything that the choice of a place depends on.
func (e *Engine) placementView() placementView {
	records := e.all()
	e.mu.Lock()
	defer e.mu.Unlock()
	s := placementView{drives: e.drives.Snapshot(), index: e.index, blankPVs: e.blankPVs, moving: map[string]string{}, volumes: records, unmoved: e.moves.unmoved(e.machine.Now())}
	for _, r := range records {
		if l := r.Volume.Location; isMoving(l) {
			for _, id := range l.Drives {
				s.moving[id] = l.VG
			}
		}
		if r.Work != nil {
			s.records = append(s.records, r)
		}
	}
	for _, r := range e.snapshots {
		s.snaps = append(s.snaps, r)
		if l := r.Snapshot.Location; isMoving(l) {
			for _, id := range l.Drives {
				s.moving[id] = l.VG
			}
		}
	}
	s.uses, s.layouts = recordedUses(records, s.snaps), map[string]string{}
	for id, l := range e.layouts {
		s.layouts[id] = l.issue
	}
	return s
}

// Capacity returns the space for new volumes of a class.
func (e *Engine) Capacity(ctx context.Context, c drivebay.Class) (drivebay.Capacity, error) {
	if err := errors.Join(e.can(ctx, c), e.canFormat(c.FSType)); err != nil {
		return drivebay.Capacity{}, err
	}
	e.awaitReread(ctx)
	has := e.placementView().capacity(c)
	if has.Largest == 0 { // drives that are not read yet may have space
		if err := e.unreadDrives(everyDrive); err != nil {
			return drivebay.Capacity{}, err
		}
	}
	return has, nil
}

// rereadTime is how long an answer that a place is lacking waits for drives whose tables have just
// changed. One of them may have become blank by a deletion that has been answered.
const rereadTime = 5 * time.Second

// awaitReread waits for these drives for at most rereadTime, and reports whether there was one.
func (e *Engine) awaitReread(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, rereadTime)
	defer cancel()
	waited, _ := e.drives.AwaitReread(ctx)
	return waited
}

// can returns why volumes of a class cannot be made on this machine.
func (e *Engine) can(ctx context.Context, c drivebay.Class) error {
	switch {
	case c.Encryption != "" && c.Encryption != drivebay.EncryptionLUKS2:
		return fmt.Errorf("encryption %q: %w", c.Encryption, drivebay.ErrNoSupport)
	case kindOf(c.Backing) == drivebay.LocationUnknown || !slices.Contains(drivebay.FSTypes, c.FSType):
		return fmt.Errorf("class: %w: backing %q, filesystem %q", drivebay.ErrInvalid, c.Backing, c.FSType)
	case unit(c.Backing) != mib && !e.hasLVM():
		return fmt.Errorf("backing %s: %w: this machine has no LVM", c.Backing, drivebay.ErrNoSupport)
	case c.Encryption != "":
		return e.canEncrypt(ctx)
	}
	return nil
}

// failed records that the work on a volume failed. Work that was interrupted by the end of the engine
// has not failed: it is continued later.
func (e *Engine) failed(ctx context.Context, id string, cause error) error {
	if ctx.Err() != nil || errors.Is(cause, errStopped) {
		return cause
	}
	r, err := e.change(id, func(r *drivebay.VolumeRecord) error {
		v, err := r.Volume.Failed(drivebay.Failure[drivebay.CSIStatus]{Cause: cause.Error(), Since: e.machine.Now(), Retry: drivebay.RetryOnCall})
		r.Volume = v
		return err
	})
	if err != nil {
		return errors.Join(cause, err)
	}
	e.note(drivebay.EventVolumeFailed, &r.Volume, cause.Error())
	return cause
}

func (e *Engine) note(kind drivebay.EventKind, v *drivebay.Volume, cause string) {
	ev := drivebay.Event{At: e.machine.Now(), Kind: kind, Volume: v.ID, To: v.CSIStatus.String(), Cause: cause}
	if len(v.Location.Drives) > 0 {
		ev.Drive = v.Location.Drives[0]
	}
	e.drives.Note(ev)
}

// resume continues interrupted work after a listing. After the first listing that is the work
// of the last run of the daemon. Later it is growth that could not continue then, for example
// because the claim or the partition table of a drive was missing: every other call for the
// volume waits for it. Creation and removal continue with the next call for them.
func (e *Engine) resume(first bool) {
	for _, r := range e.all() {
		var again func(context.Context, string) error
		switch {
		case r.Work == nil || !first && r.Volume.CSIStatus != drivebay.CSIResizing:
		case r.Volume.CSIStatus == drivebay.CSICreating:
			again = e.makeKeyless
		case r.Volume.CSIStatus == drivebay.CSIResizing:
			again = e.enlarge
		case r.Volume.CSIStatus == drivebay.CSIRemoving:
			again = e.remove
		}
		if again == nil {
			continue
		}
		id := r.Volume.ID
		if err := e.mayChange(id); err != nil {
			if first {
				e.log.Warn("interrupted work waits for its drives", "op", "resume", "volume", id, "err", err)
			}
			continue
		}
		was := *r.Work
		e.resumeWork(first, id, again, func() bool { r, err := e.record(id); return err == nil && sameWork(r.Work, &was) })
	}
	if first {
		e.resumeSnapshots()
	}
}

// sameWork reports whether a record has the work that was interrupted. While resumeWork waited, the
// work may have ended, and a new volume with the id may have work of its own.
func sameWork(is, was *drivebay.Work) bool {
	return is != nil && is.Op == was.Op && is.Since.Equal(was.Since)
}

// resumeWork continues the interrupted work of a volume or snapshot in a goroutine. After the first
// listing it waits for a caller that holds the volume: that caller may have completed the work. Later
// such a caller is the one that does the work.
func (e *Engine) resumeWork(first bool, id string, again func(context.Context, string) error, due func() bool) {
	end, err := e.begin(id)
	if err != nil && !first {
		return
	}
	e.running.Go(func() {
		if err != nil {
			if end, err = e.beginAfter(e.ctx, id); err != nil {
				return
			}
		}
		defer end()
		if !due() {
			return
		}
		if err := safely(e.ctx, "volume "+id, func(ctx context.Context) error { return again(ctx, id) }); err != nil {
			e.log.Warn("work that was cut short has failed again", "op", "resume", "volume", id, "err", err)
		}
	})
}

func contains(all []string, one string) bool { return slices.Contains(all, one) }
