package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/lvm"
)

// An id without a record does not prove that there is no such volume: its record may be
// lost, and its drive not read yet. This file decides between "not found" and "not
// known yet", for every call.

// listTime is how long one drive may hold up the listing of the others.
const listTime = 5 * time.Second

// awayError is the error for an object that cannot be reached now, because its drive is
// not here or was not read. It matches ErrNotFound too: there is nothing to open.
type awayError string

func (err awayError) Error() string { return drivebay.ErrUnavailable.Error() + ": " + string(err) }

func (err awayError) Is(target error) bool {
	return target == drivebay.ErrUnavailable || target == drivebay.ErrNotFound
}

func away(format string, args ...any) error { return awayError(fmt.Sprintf(format, args...)) }

// Missing returns the error for a volume or snapshot that no record names: ErrNotFound once
// every drive that may carry it was read, ErrUnavailable before.
func (e *Engine) Missing(id string) error {
	if !isID(id) { // no drive can carry it
		return fmt.Errorf("volume %q: %w", id, drivebay.ErrNotFound)
	}
	if err := cmp.Or(e.unreadDrives(everyDrive), e.unadopted(id), e.refuseSecond(id)); err != nil {
		return fmt.Errorf("volume %q: %w", id, err)
	}
	return fmt.Errorf("volume %q: %w", id, drivebay.ErrNotFound)
}

// notHere returns the error for a volume whose device is not listed: ErrUnavailable if one of
// its drives is not here or not read, else ErrNotFound.
func (e *Engine) notHere(v *drivebay.Volume) error {
	s := e.drives.Snapshot()
	for _, id := range v.Location.Drives {
		d, known := driveOf(s, id)
		switch {
		case !known:
			continue
		case d.Status != drivebay.StatusOnline:
			return fmt.Errorf("drive %s: %w", id, away("it is %v", d.Status))
		case stuck(*d):
			return fmt.Errorf("drive %s (%s): %w", id, d.Name, away("it does not answer"))
		}
		e.mu.Lock()
		parts, listed := e.index.parts[id]
		x := e.index.lvm
		e.mu.Unlock()
		p, is := pvOn(parts)
		unseen := is && v.Location.VG != "" && (x == nil || x.pvs[id] != p.dev)
		if !listed || unseen || len(parts) == 0 && d.Content.Kind == drivebay.ContentUnknown {
			return fmt.Errorf("drive %s (%s): %w", id, d.Name, awayError(notReadYet(d)))
		}
	}
	return drivebay.ErrNotFound
}

// Listed returns nil when the records name all volumes of this machine. It ignores an
// unread drive on which the records have a volume.
func (e *Engine) Listed() error {
	recorded := map[string]bool{}
	for _, r := range e.all() {
		for _, id := range r.Volume.Location.Drives {
			recorded[id] = true
		}
	}
	if err := e.unreadDrives(func(d *drivebay.Drive) bool { return !recorded[d.ID] }); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, err := range e.notAdopted {
		return fmt.Errorf("%w: drive %s carries volumes whose records are not restored yet: %w; retry later", drivebay.ErrUnavailable, id, err)
	}
	return nil
}

func everyDrive(*drivebay.Drive) bool { return true }

// unlistedInUse reports whether a drive is ours and its partitions are not listed.
// Engine.mu is held.
func (e *Engine) unlistedInUse(d *drivebay.Drive) bool {
	_, listed := e.index.parts[d.ID]
	return !listed && (d.Claim != nil || d.Content.Kind == drivebay.ContentOurs)
}

// unreadDrives returns nil when the volumes on all drives that of selects have records,
// else an error with the drives that were not read. It calls of with Engine.mu held.
func (e *Engine) unreadDrives(of func(*drivebay.Drive) bool) error {
	unread, listed := e.unreadOf(of)
	if !listed {
		return fmt.Errorf("%w: the drives of this machine are not listed yet; retry later", drivebay.ErrUnavailable)
	}
	if len(unread) == 0 {
		return nil
	}
	next := "pull a drive that does not recover"
	if slices.ContainsFunc(unread, func(u unreadDrive) bool { return u.Content.Kind != drivebay.ContentOurs && u.Claim == nil }) { // see mayCarry
		next += ", or run `drivebay cordon` for one that is not claimed and carries no volume"
	}
	return fmt.Errorf("%w: waiting to read %s; retry later; %s", drivebay.ErrUnavailable, strings.Join(said(unread), ", "), next)
}

// unreadDrive is a drive whose volumes are not known, and why.
type unreadDrive struct {
	*drivebay.Drive
	why string
}

func said(unread []unreadDrive) (out []string) {
	for _, u := range unread {
		out = append(out, fmt.Sprintf("drive %s (%s): %s", u.ID, u.Name, u.why))
	}
	return out
}

// unreadOf returns the drives that of selects and that may carry volumes without a
// record. Listed is false until the first listing of all drives has ended.
func (e *Engine) unreadOf(of func(*drivebay.Drive) bool) (out []unreadDrive, listed bool) {
	s := e.drives.Snapshot()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range s.Drives {
		d := &s.Drives[i]
		if !mayCarry(d) || !of(d) {
			continue
		}
		why, known := e.unlisted[d.ID]
		if !known {
			why = "it is not listed yet"
		}
		if why == "" && e.claimedSince(s, d.ID) {
			why = "its volumes have no records yet"
		}
		if why != "" {
			out = append(out, unreadDrive{d, why})
		}
	}
	return out, s.Seq > 0 && e.complete
}

// claimedSince reports whether the last listing found a volume on an unclaimed drive that is
// claimed by now: the next listing adopts the volume. Engine.mu is held.
func (e *Engine) claimedSince(s *drivebay.Snapshot, id string) bool {
	return slices.ContainsFunc(e.found, func(f drivebay.FoundVolume) bool {
		return slices.Contains(f.Drives, id) && len(unclaimed(s, f.Drives)) == 0
	})
}

// mayCarry reports whether a drive may carry a volume that no record names. A drive that
// was read as blank or foreign carries none. An operator declares the same for a drive
// that was never read by cordoning it. No volume is adopted from a drive that has left
// service.
func mayCarry(d *drivebay.Drive) bool {
	switch {
	case d.Status == drivebay.StatusOffline, d.System, left(d), d.Size == 0: // of size 0: it has no medium
		return false
	case readBlank(d), d.Content.Kind == drivebay.ContentForeign:
		return false
	}
	return d.Content.Kind == drivebay.ContentOurs || d.Claim != nil || !d.Cordoned
}

// readBlank reports whether a drive was read as blank and has got no partitions since.
func readBlank(d *drivebay.Drive) bool {
	return d.Content.Kind == drivebay.ContentBlank && len(d.Uses) == 0
}

// noteRead records which drives the listing has read. A drive that was read once
// stays read while it is here: all its volumes have records.
func (e *Engine) noteRead(ctx context.Context, s *drivebay.Snapshot, failed map[string]error, reported bool) {
	next := map[string]string{}
	for i := range s.Drives {
		d := &s.Drives[i]
		if d.Status != drivebay.StatusOnline {
			continue
		}
		e.mu.Lock()
		was, before := e.unlisted[d.ID]
		e.mu.Unlock()
		if before && was == "" {
			next[d.ID] = ""
		} else {
			next[d.ID] = e.whyUnread(ctx, d, failed[d.ID])
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unlisted, e.complete = next, e.complete || s.Complete && reported
}

// whyUnread returns why the volumes on a drive are not known; "" if they are.
func (e *Engine) whyUnread(ctx context.Context, d *drivebay.Drive, err error) string {
	e.mu.Lock()
	parts, listed := e.index.parts[d.ID]
	e.mu.Unlock()
	switch {
	case errors.Is(err, drivebay.ErrUnavailable):
		return notReadYet(d)
	case err != nil:
		return err.Error()
	case !listed:
		return "it is not listed yet"
	case len(parts) == 0 && d.Content.Kind == drivebay.ContentUnknown:
		return notReadYet(d)
	case len(parts) == 0 && d.Content.Kind == drivebay.ContentOurs:
		return e.whyHidden(ctx, d)
	}
	if d.Content.Kind == drivebay.ContentUnknown && slices.ContainsFunc(parts, e.unrecordedPart) {
		return notReadYet(d) // it is not known whether it can be claimed, either
	}
	if p, ok := pvOn(parts); ok {
		return e.whyUnreadPV(d, p)
	}
	return ""
}

// neverRead is the reason for an unread drive that has no known fault.
const neverRead = "it is not read yet"

func notReadYet(d *drivebay.Drive) string {
	switch {
	case stuck(*d):
		return "it does not answer"
	case d.Content.Reason != "" && d.Content.Reason != drivebay.NotRead:
		return "it cannot be read: " + d.Content.Reason
	case d.Kernel != nil && d.Kernel.OpenError != "":
		return "it cannot be read: " + d.Kernel.OpenError
	}
	return neverRead
}

// tableBegun reports whether the first table of a drive was being written, or the last
// one erased: the drive had no volume then.
func (e *Engine) tableBegun(drive string) bool {
	return slices.ContainsFunc(e.all(), func(r *drivebay.VolumeRecord) bool {
		return r.Work != nil && (contains(r.Work.Made, firstTable+drive) || contains(r.Work.Made, noTable+drive))
	})
}

func (e *Engine) unrecordedPart(p part) bool {
	id := idOfPartition(p.title)
	return id != "" && !e.recorded(id)
}

// whyHidden returns which partition of our drive may carry an unrecorded volume, when the
// kernel has none of its partitions; "" if none. One that is being made was never used.
func (e *Engine) whyHidden(ctx context.Context, d *drivebay.Drive) string {
	table, err := e.readTitles(ctx, d)
	switch {
	case errors.Is(err, gpt.ErrDamaged) && e.tableBegun(d.ID):
		return ""
	case err != nil:
		return "its table cannot be read: " + err.Error()
	}
	for _, p := range table {
		_, whole := types[p.Type]
		if whole && !e.recorded(idOfPartition(p.Name)) || p.Type == typePV && !e.blankRange(ctx, d, p) {
			return fmt.Sprintf("the kernel does not have partition %d of its table", p.Number)
		}
	}
	return ""
}

// blankRange reports whether a range of a drive reads back blank.
func (e *Engine) blankRange(ctx context.Context, d *drivebay.Drive, p gpt.Partition) bool {
	c, err := e.contentOfRange(ctx, d, p.Start, p.Size)
	return err == nil && c.Kind == drivebay.ContentBlank
}

// whyUnreadPV is whyUnread for the logical volumes of a drive. A partition that reads
// back blank was meant for a physical volume and has none.
func (e *Engine) whyUnreadPV(d *drivebay.Drive, p part) string {
	e.mu.Lock()
	x := e.index.lvm
	e.mu.Unlock()
	if x != nil && x.pvs[d.ID] == p.dev {
		if pv, _ := x.report.On(p.dev); pv != nil {
			return ""
		}
	}
	return e.whyUnseen(d, p)
}

// whyUnseen returns why LVM does not see the physical volume in a partition; "" if it
// does.
func (e *Engine) whyUnseen(d *drivebay.Drive, p part) string {
	e.mu.Lock()
	x := e.index.lvm
	blank, is := e.blankPVs[d.ID]
	e.mu.Unlock()
	switch {
	case is && blank == p:
		return ""
	case stuck(*d):
		return "it does not answer"
	case !e.hasLVM():
		return "its logical volumes cannot be listed: this machine has no LVM"
	case x == nil || x.pvs[d.ID] != p.dev:
		return "LVM has not read it yet"
	}
	return "LVM does not see the physical volume in its partition " + p.name
}

// orForget returns the next step for a volume that cannot be wiped because it is not found.
func orForget(id string) string {
	return "bring it back and retry, or leave the data as they are with `drivebay volume forget " + id + "`"
}

// allSeen returns nil when LVM has reported the physical volumes of a location: then a
// volume that the report lacks does not exist. A physical volume that LVM does not see,
// and that is not blank, may hold it.
func (e *Engine) allSeen(r *lvm.Report, volume string, l drivebay.Location) error {
	for _, id := range l.Drives {
		d, err := e.drive(id)
		if err != nil {
			return err
		}
		p, ok := e.pvPart(id)
		if !ok {
			return fmt.Errorf("drive %s (%s): %w", id, d.Name, away("the partition of its physical volume is not there, so that nothing can be wiped; %s", orForget(volume)))
		}
		switch pv, g := r.On(p.dev); {
		case pv != nil && g != nil && g.Name == l.VG:
			continue
		case pv != nil:
			return fmt.Errorf("drive %s (%s): %w", id, d.Name, away("volume group %s is not on its physical volume, so that nothing can be wiped; %s", l.VG, orForget(volume)))
		}
		if why := e.whyUnseen(d, p); why != "" {
			return fmt.Errorf("drive %s (%s): %w", id, d.Name, away("%s; retry when it does", why))
		}
	}
	return nil
}

// listAll lists the partitions of all drives that are here, each in its own goroutine: a
// drive that hangs holds up the others for listTime at most.
func (e *Engine) listAll(ctx context.Context, s *drivebay.Snapshot) (parts map[string][]part, failed map[string]error) {
	type answer struct {
		id   string
		list []part
		err  error
	}
	online := slices.DeleteFunc(slices.Clone(s.Drives), func(d drivebay.Drive) bool { return d.Status != drivebay.StatusOnline })
	came := make(chan answer, len(online))
	for i := range online {
		e.running.Go(func() {
			var list []part
			err := safely(ctx, "drive "+online[i].ID, func(ctx context.Context) (err error) {
				list, err = e.partsNow(ctx, &online[i])
				if !errors.Is(err, drivebay.ErrTimeout) { // also if the names cannot be read: the table may be erased
					if err := e.compareLayout(ctx, &online[i], list); err != nil {
						e.log.Warn("partition table not compared", "op", "look", "drive", online[i].ID, "err", err)
					}
				}
				return err
			})
			came <- answer{online[i].ID, list, err}
		})
	}
	parts, failed = map[string][]part{}, map[string]error{}
	for range online {
		if a := <-came; a.err != nil {
			failed[a.id] = a.err
		} else {
			parts[a.id] = a.list
		}
	}
	return parts, failed
}

// listErrors returns the errors of a listing in the order of the drives' ids.
func listErrors(failed map[string]error) []error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(failed)) {
		errs = append(errs, fmt.Errorf("drive %s: partitions: %w", id, failed[id]))
	}
	return errs
}
