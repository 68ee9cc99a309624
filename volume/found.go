package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/lvm"
)

// adopt takes in volumes and snapshots that are on the drives and in no record:
// the store was lost, or the drive comes from another machine.
func (e *Engine) adopt(ctx context.Context, s *drivebay.Snapshot) error {
	e.mu.Lock()
	x := e.index
	e.mu.Unlock()
	return e.adoptFrom(ctx, s, x)
}

// adoptFrom takes in what an index shows, which may be old: what was listed a moment
// ago may be gone by now. So what is taken in is looked up again, once nobody else
// can do anything to it.
func (e *Engine) adoptFrom(ctx context.Context, s *drivebay.Snapshot, x index) error {
	var errs []error
	for i := range s.Drives {
		d := &s.Drives[i]
		e.tellUnfinished(d.ID, x.parts[d.ID])
		if d.Usage == drivebay.UsageReleased || d.Usage == drivebay.UsageRemoving || d.Usage == drivebay.UsageRemoved {
			continue // what it could not wipe is older than what was moved away, and may be deleted by now
		}
		errs = append(errs, e.adoptParts(ctx, d, x.parts[d.ID]))
	}
	if x.lvm == nil {
		return errors.Join(errs...)
	}
	for i := range x.lvm.report.Groups {
		if g := &x.lvm.report.Groups[i]; slices.Contains(g.Tags, lvm.Tag) {
			errs = append(errs, e.adoptGroup(ctx, g, seen{index: x}.members(g)))
		}
	}
	return errors.Join(errs...)
}

// strange takes those of some ids that are in no record; whoever has one of them
// knows it better. Done lets go of all.
func (e *Engine) strange(ids []string) (mine map[string]bool, done func()) {
	mine = map[string]bool{}
	var ends []func()
	for _, id := range ids {
		if id == "" || e.recorded(id) {
			continue
		}
		end, err := e.begin(id)
		if err != nil {
			continue
		}
		ends = append(ends, end)
		mine[id] = !e.recorded(id)
	}
	return mine, func() {
		for _, end := range ends {
			end()
		}
	}
}

func (e *Engine) recorded(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.records[id] != nil || e.snapshots[id] != nil
}

func (e *Engine) adoptParts(ctx context.Context, d *drivebay.Drive, parts []part) error {
	var ids []string
	for _, p := range parts {
		ids = append(ids, idOfPartition(p.title))
	}
	mine, done := e.strange(ids)
	defer done()
	if len(mine) == 0 {
		return nil
	}
	if err := e.notCopied([]string{d.ID}); err != nil {
		return fmt.Errorf("volumes on it are not taken in: %w", err)
	}
	table, err := e.readTitles(ctx, d)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range parts {
		i := slices.IndexFunc(table, func(q gpt.Partition) bool { return q.Name == p.title && q.Start == p.start })
		if i >= 0 && mine[idOfPartition(p.title)] && e.readable(table[i]) {
			errs = append(errs, e.adoptPart(ctx, d, p, table[i], len(parts) == 1))
		}
	}
	return errors.Join(errs...)
}

// readable: only types of ours say what the partition is.
func (e *Engine) readable(p gpt.Partition) bool {
	_, whole := types[p.Type]
	return whole || p.Type == typeMaking
}

func (e *Engine) adoptPart(ctx context.Context, d *drivebay.Drive, p part, entry gpt.Partition, alone bool) error {
	id := idOfPartition(p.title)
	v := drivebay.Volume{ID: id, Node: e.opt.Node, Size: entry.Size, Location: drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{d.ID}, Partition: entry.GUID}}
	is := types[entry.Type]
	v.Mode = is.mode
	twin := e.twin(ctx, d.ID, p.title)
	if entry.Type == typeMaking && twin.drive != "" { // that one is what was left of a move, or both are
		return nil
	}
	if alone && len(freeSpans(d.Size, d.LogicalBlock, []span{{start: p.start, end: p.start + p.size}})) == 0 {
		v.Location.Kind = drivebay.LocationDrive
	}
	var why string
	var err error
	switch {
	case entry.Type == typeMaking:
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
	if why == "" && twin.whole {
		why = fmt.Sprintf("drive %s has another copy of it, and nobody knows which is the newer one", twin.drive)
	}
	return e.adoptVolume(v, why, false, nil)
}

// twin is another drive with a partition of the same name: a move was cut short, and
// what was written down of it is lost. Until the very end of a move only one of the
// two is whole by its name and type. One that cannot be looked at may be.
type twin struct {
	drive string
	whole bool
}

func (e *Engine) twin(ctx context.Context, but, title string) (out twin) {
	s := e.drives.Snapshot()
	for i := range s.Drives {
		d := &s.Drives[i]
		e.mu.Lock()
		p, there := named(e.index.parts[d.ID], title)
		e.mu.Unlock()
		if !there || d.ID == but {
			continue
		}
		table, err := e.readTitles(ctx, d)
		i := slices.IndexFunc(table, func(q gpt.Partition) bool { return q.Name == title && q.Start == p.start })
		out = twin{d.ID, out.whole || err != nil || i >= 0 && table[i].Type != typeMaking}
	}
	return out
}

// tellUnfinished tells of partitions that a volume was being copied to, which no
// record knows any more. They are nobody's, and nothing is done to them.
func (e *Engine) tellUnfinished(drive string, parts []part) {
	for _, p := range parts {
		known := slices.ContainsFunc(e.all(), func(r *drivebay.VolumeRecord) bool {
			m := moveOf(r)
			return m != nil && m.Name == p.title && m.To.Drives[0] == drive
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
		if _, told := e.moves.told.LoadOrStore(drive+" "+p.title, true); !told {
			e.drives.Note(drivebay.Event{At: e.machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: drive,
				Cause: fmt.Sprintf("partition %d (%s) is the unfinished copy of a volume, of which nothing is written down: it is nobody's, and its room is taken until somebody removes it", p.number, p.title)})
		}
	}
}

// adoptVolume writes down a volume that was found. Half says that it is not whole;
// why, what is wrong with it.
func (e *Engine) adoptVolume(v drivebay.Volume, why string, half bool, pvs map[string]string) error {
	v.Usage, _ = drivebay.VolumeUsageUnknown.Next(drivebay.VolumeUsageMade)
	rec := drivebay.VolumeRecord{Volume: v}
	event := drivebay.CSIFound
	if half {
		event = drivebay.CSICreate
		rec.Work = &drivebay.Work{Op: drivebay.WorkCreate, Since: e.machine.Now(), Size: v.Size, PVs: pvs}
	}
	var err error
	if rec.Volume, err = v.Moved(event); err == nil && why != "" {
		rec.Volume, err = rec.Volume.Failed(drivebay.Failure[drivebay.CSIStatus]{Cause: why, Since: e.machine.Now(), Retry: drivebay.RetryOnCall})
	}
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.ID, err)
	}
	e.note(drivebay.EventVolumeFound, &rec.Volume, "a volume of ours was found that is in no record"+suffix(why))
	return e.put(rec)
}

func suffix(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}
