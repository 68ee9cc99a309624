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

// adopt records the volumes and snapshots that are on the drives and in no record: the store
// was lost, or the drive comes from another machine.
func (e *Engine) adopt(ctx context.Context, s *drivebay.Snapshot) error {
	e.mu.Lock()
	x := e.index
	e.mu.Unlock()
	return e.adoptFrom(ctx, s, x)
}

// adoptFrom adopts what an index shows. The index may be old: what was listed a moment ago may
// be gone. So each volume is looked up again once no other call can change it.
func (e *Engine) adoptFrom(ctx context.Context, s *drivebay.Snapshot, x index) error {
	defer func() { e.keepFound(s, x) }()
	var errs []error
	failed := map[string]error{}
	note := func(err error, drives ...string) {
		if errs = append(errs, err); err == nil {
			return
		}
		for _, id := range drives {
			failed[id] = err
		}
	}
	for i := range s.Drives {
		d := &s.Drives[i]
		e.reportUnfinishedCopies(d.ID, x.parts[d.ID])
		note(e.adoptParts(ctx, s, d, x.parts[d.ID]), d.ID)
	}
	for i := 0; x.lvm != nil && i < len(x.lvm.report.Groups); i++ {
		if g := &x.lvm.report.Groups[i]; slices.Contains(g.Tags, lvm.Tag) {
			members := placementView{index: x}.members(g)
			note(e.adoptGroup(ctx, s, g, members), slices.Collect(maps.Keys(members))...)
		}
	}
	e.mu.Lock()
	e.notAdopted = failed
	e.mu.Unlock()
	return errors.Join(errs...)
}

// unrecorded takes those volumes that are in no record, or only in one that is older than the
// drive. It skips a volume that another call holds: that call knows it better. done releases
// all.
func (e *Engine) unrecorded(ctx context.Context, found []drivebay.ForgottenVolume) (mine map[string]bool, done func(), err error) {
	mine = map[string]bool{}
	var ends []func()
	var errs []error
	for _, f := range found {
		if f.ID == "" || e.recordNames(f) || mine[f.ID] || e.replaced(f) {
			continue
		}
		end, err := e.begin(f.ID)
		if err != nil {
			continue
		}
		ends = append(ends, end)
		if e.deletedBefore(f) {
			used, err := e.instanceUsed(ctx, f)
			if err == nil && !used {
				f.Replaced = true
				err = e.markForgotten(f)
				e.replaced(f) // sends the event
			}
			if errs = append(errs, err); !used {
				continue
			}
		}
		r, err := e.record(f.ID)
		if err != nil {
			mine[f.ID] = !e.recorded(f.ID)
			continue
		}
		mine[f.ID], err = e.outdated(ctx, &r)
		if !mine[f.ID] {
			err = errors.Join(err, e.supersede(&r), e.detectConflict(&r))
		}
		errs = append(errs, err)
	}
	return mine, func() {
		for _, end := range ends {
			end()
		}
	}, errors.Join(errs...)
}

// recordNames reports whether a record names a volume as the drives have it, or that volume is
// known as a forgotten one.
func (e *Engine) recordNames(f drivebay.ForgottenVolume) bool {
	_, forgotten := e.forgottenAs(f.Key())
	e.mu.Lock()
	defer e.mu.Unlock()
	o := onDrive{ForgottenVolume: f}
	if r := e.records[f.ID]; r != nil {
		return f.Instance == "" || forgotten || slices.ContainsFunc(locationsOf(r), o.is)
	}
	return e.snapshots[f.ID] != nil
}

// replaced reports whether a new volume has the name of a forgotten one, or the volume was
// deleted without the drive that brings it back. One event reports it, and the volume is left
// as it is.
func (e *Engine) replaced(f drivebay.ForgottenVolume) bool {
	was, is := e.forgottenAs(f.Key())
	if !is || !was.Replaced {
		return false
	}
	if _, told := e.moves.reported.LoadOrStore(f.Key(), true); !told {
		e.drives.Note(drivebay.Event{At: e.machine.Now(), Kind: drivebay.EventVolumeLeft, Volume: f.ID,
			Cause: fmt.Sprintf("%s holds a volume that was deleted without this drive, or was forgotten before a new one was made under its name: it is not used, and its room is taken until it is removed by hand; `drivebay volume adopt %s` takes it in while no volume has its name", f.Instance, f.ID)})
	}
	return true
}

func (e *Engine) recorded(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.records[id] != nil || e.snapshots[id] != nil
}

func (e *Engine) adoptParts(ctx context.Context, s *drivebay.Snapshot, d *drivebay.Drive, parts []part) error {
	var found []drivebay.ForgottenVolume
	for _, p := range parts {
		if id := idOfPartition(p.title); !leftBehind(d, p) && e.mayAdopt(s, id, d.ID) {
			found = append(found, drivebay.ForgottenVolume{ID: id, Instance: strings.ToLower(p.guid)})
		}
	}
	strange := slices.ContainsFunc(found, func(f drivebay.ForgottenVolume) bool { return f.ID != "" && !e.recordNames(f) })
	if strange && (d.Content.Kind == drivebay.ContentUnknown || stuck(*d)) { // no volume is held while this waits for the drive
		return fmt.Errorf("drive %s: %w: %s", d.ID, drivebay.ErrUnavailable, notReadYet(d))
	}
	mine, done, err := e.unrecorded(ctx, found)
	defer done()
	if !slices.Contains(slices.Collect(maps.Values(mine)), true) {
		return err
	}
	if err := e.trusted([]string{d.ID}); err != nil {
		return fmt.Errorf("volumes on it are not taken in: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, tableTime)
	defer cancel()
	table, tableErr := e.readTitles(ctx, d)
	if tableErr != nil {
		return tableErr
	}
	errs := []error{err}
	for _, p := range parts {
		id := idOfPartition(p.title)
		i := slices.IndexFunc(table, func(q gpt.Partition) bool { return q.Name == p.title && q.Start == p.start })
		if i < 0 || !mine[id] || leftBehind(d, p) || !e.readable(table[i]) || e.replaced(drivebay.ForgottenVolume{ID: id, Instance: table[i].GUID}) {
			continue
		}
		err := e.adoptPart(ctx, d, p, table[i], len(parts) == 1)
		errs = append(errs, err)
		mine[id] = !e.recordNames(drivebay.ForgottenVolume{ID: id, Instance: table[i].GUID})
	}
	return errors.Join(errs...)
}

// readable reports whether the partition has one of our types.
func (e *Engine) readable(p gpt.Partition) bool {
	_, whole := types[p.Type]
	return whole || p.Type == typeMaking
}

func (e *Engine) adoptPart(ctx context.Context, d *drivebay.Drive, p part, entry gpt.Partition, alone bool) error {
	id := idOfPartition(p.title)
	v := drivebay.Volume{ID: id, Node: e.opt.Node, Size: entry.Size, Location: drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{d.ID}, Partition: entry.GUID}}
	is := types[entry.Type]
	v.Mode = is.mode
	duplicate := e.duplicateOf(ctx, d.ID, p)
	if entry.Type == typeMaking && duplicate.drive != "" { // this one is left over from a move, or both are
		return nil
	}
	if alone && len(freeSpans(d.Size, d.LogicalBlock, []span{{start: p.start, end: p.start + p.size}})) == 0 {
		v.Location.Kind = drivebay.LocationDrive
	}
	var why string
	var err error
	switch {
	case entry.Type == typeMaking:
		v.Parameters = parametersFrom(entry.TypeAttributes, &v)
		return e.adoptVolume(v, "it was being made or removed when its record was lost", true, nil)
	case is.encrypted:
		if why, err = e.adoptHeader(ctx, &v); err != nil {
			return err
		}
	case is.mode == drivebay.ModeFS:
		c, err := e.contentOf(ctx, &v)
		if err != nil {
			return fmt.Errorf("volume %s: %w", id, err)
		}
		for _, s := range c.Signatures {
			if s.Partition == "" && slices.Contains(drivebay.FSTypes, s.Format) {
				v.FSType, v.FSUUID = s.Format, s.UUID
			}
		}
		if v.FSType == "" {
			why = "no filesystem can be found on it"
		}
	}
	v.Parameters = parametersFrom(entry.TypeAttributes, &v)
	if duplicate.whole {
		why = fmt.Sprintf("drive %s has another copy of it, and which of the two is newer is not known", duplicate.drive)
		return e.adoptFailed(v, why, drivebay.RetryOperator)
	}
	return e.adoptVolume(v, why, false, nil)
}

// undecided refuses a volume that was found on two drives, and names both ways out.
func undecided(v *drivebay.Volume) error {
	why := v.Undecided()
	if why == "" {
		return nil
	}
	on := strings.Join(v.Location.Drives, ", ")
	return fmt.Errorf("%w: %s; `drivebay volume clear %s` uses the copy on drive %s; to use the other one, pull drive %[4]s and run `drivebay volume forget %[3]s`", drivebay.ErrRefused, why, v.ID, on)
}

// duplicate is another partition of the same name: a move was cut short, and its record is
// lost. Until the very end of a move only one of the two is whole by its name and type. One
// that cannot be read counts as whole.
type duplicate struct {
	drive string
	whole bool
}

func (e *Engine) duplicateOf(ctx context.Context, drive string, of part) (out duplicate) {
	s := e.drives.Snapshot()
	for i := range s.Drives {
		d := &s.Drives[i]
		for _, p := range e.partsOn(d.ID) {
			if p.title != of.title || d.ID == drive && p.number == of.number {
				continue
			}
			table, err := e.readTitles(ctx, d)
			i := slices.IndexFunc(table, func(q gpt.Partition) bool { return q.Name == p.title && q.Start == p.start })
			whole := err != nil || i >= 0 && table[i].Type != typeMaking
			if whole || out.drive == "" { // a whole one counts more than one that is being made
				out = duplicate{d.ID, out.whole || whole}
			}
		}
	}
	return out
}

// reportUnfinishedCopies sends an event for partitions to which a volume was being copied and
// which no record names. They belong to no volume, and nothing is done to them.
func (e *Engine) reportUnfinishedCopies(drive string, parts []part) {
	for _, p := range parts {
		known := slices.ContainsFunc(e.all(), func(r *drivebay.VolumeRecord) bool {
			m := moveOf(r)
			return m != nil && (m.Name == p.title && m.To.Drives[0] == drive || m.OldName == p.title && m.From.Drives[0] == drive) ||
				slices.ContainsFunc(r.Left, func(c drivebay.LeftCopy) bool { return c.Name == p.title && c.Location.Drives[0] == drive })
		})
		if known || !strings.HasPrefix(p.title, newPrefix) {
			continue
		}
		e.mu.Lock()
		_, still := named(e.index.parts[drive], p.title)
		e.mu.Unlock()
		if !still {
			continue
		}
		if _, told := e.moves.reported.LoadOrStore(drive+" "+p.title, true); !told {
			e.drives.Note(drivebay.Event{At: e.machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: drive,
				Cause: fmt.Sprintf("partition %d (%s) is an unfinished copy that belongs to no volume and is in no record; it uses space until it is removed", p.number, p.title)})
		}
	}
}

// adoptVolume records a volume that was found. half means that it is not whole; why is what is
// wrong with it.
func (e *Engine) adoptVolume(v drivebay.Volume, why string, half bool, pvs map[string]string) error {
	return e.adoptAs(v, why, half, pvs, drivebay.RetryOnCall)
}

// adoptFailed records a volume that was found with a fault that calls do not repair.
func (e *Engine) adoptFailed(v drivebay.Volume, why string, retry drivebay.RetryRule) error {
	return e.adoptAs(v, why, false, nil, retry)
}

func (e *Engine) adoptAs(v drivebay.Volume, why string, half bool, pvs map[string]string, retry drivebay.RetryRule) error {
	v.Usage, _ = drivebay.VolumeUsageUnknown.Next(drivebay.VolumeUsageMade)
	text := "a volume of ours was found that is in no record"
	e.noteOlder(&v)
	var left []drivebay.LeftCopy
	if old, err := e.record(v.ID); err == nil { // the record of an earlier volume with this id
		left = slices.DeleteFunc(slices.Clone(old.Left), func(c drivebay.LeftCopy) bool { return strings.EqualFold(c.Location.Partition, v.Location.Partition) })
		text = fmt.Sprintf("the record is older than the drive: it names %s, which is gone; what is on the drive counts", instanceOf(old.Volume.Location))
		v.Name, v.Created = cmp.Or(v.Name, old.Volume.Name), old.Volume.Created
		if v.Parameters == nil {
			v.Parameters = old.Volume.Parameters
		}
	}
	if was, is := e.wasForgotten(v.ID, v.Location); is {
		text = fmt.Sprintf("a volume that was forgotten at %s is back on its drive, with its data", was.At.UTC().Format(time.RFC3339))
	}
	rec := drivebay.VolumeRecord{Volume: v, Left: left}
	event := drivebay.CSIFound
	if half {
		event = drivebay.CSICreate
		rec.Work = &drivebay.Work{Op: drivebay.WorkCreate, Since: e.machine.Now(), Size: v.Size, PVs: pvs}
	}
	var err error
	if rec.Volume, err = v.Moved(event); err == nil && why != "" {
		rec.Volume, err = rec.Volume.Failed(drivebay.Failure[drivebay.CSIStatus]{Cause: why, Since: e.machine.Now(), Retry: retry})
	}
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.ID, err)
	}
	e.note(drivebay.EventVolumeFound, &rec.Volume, text+suffix(why))
	if half {
		return e.put(rec)
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	e.putSoon(rec)
	return nil
}

func suffix(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}
