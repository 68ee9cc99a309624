package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
)

// making is what the half that makes and removes volumes remembers.
type making struct {
	index    index                      // guarded by Engine.mu, as the tables are
	tables   map[string][]gpt.Partition // of drives, as they were last read
	layouts  map[string]layout          // by drive, guarded by Engine.mu
	lists    map[string]uint64          // how often a drive was listed by itself
	glances  map[string]glance          // at drives, when they were last listed
	found    []drivebay.FoundVolume     // on drives that are not claimed, in no record
	adopting map[string]bool            // ids of those that an operator has asked to take in
	// blankPVs are partitions for a physical volume that read back blank, by drive.
	blankPVs   map[string]part
	unlisted   map[string]string // drives that are here: why their volumes are not known; "": they are
	complete   bool              // all drives of the machine, and what LVM has on them, were listed once
	notAdopted map[string]error  // drives with volumes that have no record yet, and why
	works      atomic.Uint64     // grows with all that is done to logical volumes
	reports    sync.Map          // name of a group -> reported
	trips      map[string]*trip  // of groups that move, by name; guarded by Engine.mu

	unread, unwritten atomic.Uint64 // what the kernel says that it could not copy
	deaf              atomic.Bool   // it cannot be heard
	unheard           atomic.Uint64 // how often some of it was lost
	carrying          chan struct{} // one volume moves at a time
	placed            sync.Mutex    // one place is chosen at a time
	asking            sync.Mutex    // held while the machine is asked what it can do
	asked             bool          // it has answered
	powers            drivebay.VolumePowers
	mayLUKS           atomic.Bool // once it was seen that volumes can be encrypted here
}

// seen is everything that a place is chosen by.
func (e *Engine) seen() seen {
	records := e.all()
	e.mu.Lock()
	defer e.mu.Unlock()
	s := seen{drives: e.drives.Snapshot(), index: e.index, blankPVs: e.blankPVs, moving: map[string]string{}, volumes: records, unmoved: e.moves.unmoved(e.machine.Now())}
	for _, r := range records {
		if l := r.Volume.Location; travels(l) {
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
		if l := r.Snapshot.Location; travels(l) {
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

// Capacity is what can be made of a class.
func (e *Engine) Capacity(ctx context.Context, c drivebay.Class) (drivebay.Capacity, error) {
	if err := errors.Join(e.can(ctx, c), e.canFormat(c.FSType)); err != nil {
		return drivebay.Capacity{}, err
	}
	has := e.seen().capacity(c)
	if has.Largest == 0 { // the drives that are read have none, the others may have
		if err := e.unreadDrives(everyDrive); err != nil {
			return drivebay.Capacity{}, err
		}
	}
	return has, nil
}

// can says whether volumes of a class can be made here at all.
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

// failed writes down that the work on a volume came to nothing. Work that was cut
// short by our own end is not failed: it is taken up again.
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

// resume takes up work that was cut short.
func (e *Engine) resume() {
	for _, r := range e.all() {
		var again func(context.Context, string) error
		switch {
		case r.Work == nil:
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
			e.log.Warn("work that was cut short waits for a claim", "op", "resume", "volume", id, "err", err)
			continue
		}
		e.takeUp(id, again, func() bool { r, err := e.record(id); return err == nil && r.Work != nil })
	}
	e.resumeSnapshots()
}

// takeUp goes on with what was cut short of a volume or snapshot, in a goroutine of
// its own. It is taken before anybody else can ask for the same; who came first is
// waited for: he may have done it, or was told that it is under way.
func (e *Engine) takeUp(id string, again func(context.Context, string) error, due func() bool) {
	end, err := e.begin(id)
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
		if err := safely(e.ctx, id, func(ctx context.Context) error { return again(ctx, id) }); err != nil {
			e.log.Warn("work that was cut short has failed again", "op", "resume", "volume", id, "err", err)
		}
	})
}

func contains(all []string, one string) bool { return slices.Contains(all, one) }
