package adopt

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
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Adopt records the volumes and snapshots that are on the drives and in no record: the store
// was lost, or the drive comes from another machine.
func (e *Adopter) Adopt(ctx context.Context, s *drivebay.Snapshot) error {
	e.Ledger.Mu.Lock()
	x := e.Partitions.Index
	e.Ledger.Mu.Unlock()
	return e.AdoptFrom(ctx, s, x)
}

// AdoptFrom adopts what an index shows. The index may be old: what was listed a moment ago may
// be gone. So each volume is looked up again once no other call can change it.
func (e *Adopter) AdoptFrom(ctx context.Context, s *drivebay.Snapshot, x partitions.Index) error {
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
		e.reportUnfinishedCopies(d.ID, x.Parts[d.ID])
		note(e.adoptParts(ctx, s, d, x.Parts[d.ID]), d.ID)
	}
	for i := 0; x.LVM != nil && i < len(x.LVM.Report.Groups); i++ {
		if g := &x.LVM.Report.Groups[i]; slices.Contains(g.Tags, lvm.Tag) {
			members := x.LVM.Members(g)
			note(e.adoptGroup(ctx, s, g, members), slices.Collect(maps.Keys(members))...)
		}
	}
	e.Ledger.Mu.Lock()
	e.Inventory.NotAdopted = failed
	e.Ledger.Mu.Unlock()
	return errors.Join(errs...)
}

// unrecorded takes those volumes that are in no record, or only in one that is older than the
// drive. It skips a volume that another call holds: that call knows it better. done releases
// all.
func (e *Adopter) unrecorded(ctx context.Context, drive string, found []drivebay.ForgottenVolume) (mine map[string]bool, done func(), err error) {
	mine = map[string]bool{}
	var ends []func()
	var errs []error
	for _, f := range found {
		if f.ID != "" {
			errs = append(errs, e.removedSince(ctx, f.ID))
		}
		if f.ID == "" || e.recordNames(f) || mine[f.ID] || e.replaced(drive, f) || e.recordOfAnother(f) != "" {
			continue
		}
		end, err := e.Ledger.Begin(f.ID)
		if err != nil {
			continue
		}
		ends = append(ends, end)
		if e.Instances.DeletedBefore(f) {
			used, err := e.Instances.InstanceUsed(ctx, f)
			if err == nil && !used {
				f.Replaced = true
				err = e.Instances.MarkForgotten(f)
				e.replaced(drive, f) // sends the event
			}
			if errs = append(errs, err); !used {
				continue
			}
		}
		r, err := e.Ledger.Record(f.ID)
		if err != nil {
			if s, is := e.Ledger.Snapshot(f.ID); is {
				errs = append(errs, e.Instances.SupersedeSnapshot(&s.Snapshot))
			}
			mine[f.ID] = !e.Instances.Recorded(f.ID)
			continue
		}
		mine[f.ID], err = e.Mounts.Outdated(ctx, &r)
		if !mine[f.ID] {
			err = errors.Join(err, e.Instances.Supersede(&r), e.Instances.DetectConflict(&r))
		}
		errs = append(errs, err)
	}
	return mine, func() {
		for _, end := range ends {
			end()
		}
	}, errors.Join(errs...)
}

// removedSince corrects a record that is older than the removal of its volume, unless another call holds the volume: that call, or the next
// listing, does it. It holds the volume only for that: a call would be refused meanwhile.
func (e *Adopter) removedSince(ctx context.Context, id string) error {
	if is, err := e.Instances.MarkedRemoved(ctx, id); err != nil || !is {
		return err
	}
	end, err := e.Ledger.Begin(id)
	if err != nil {
		return nil
	}
	defer end()
	return e.Instances.RemovedSince(ctx, id)
}

// recordNames reports whether a record names a volume as the drives have it, or that volume is
// known as a forgotten one.
func (e *Adopter) recordNames(f drivebay.ForgottenVolume) bool {
	_, forgotten := e.Instances.ForgottenAs(f.Key())
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	o := instances.OnDrive{ForgottenVolume: f}
	if r := e.Ledger.Records[f.ID]; r != nil {
		return f.Instance == "" || forgotten || slices.ContainsFunc(instances.LocationsOf(r), o.Is)
	}
	r := e.Ledger.Snapshots[f.ID]
	return r != nil && (f.Instance == "" || forgotten || o.Is(r.Snapshot.Location))
}

// recordOfAnother returns the id of another volume or snapshot whose record names what was found, or "". The name was changed then: the
// record is a claim on its bytes, and it is neither recorded under its new name nor removed.
func (e *Adopter) recordOfAnother(f drivebay.ForgottenVolume) string {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	o := instances.OnDrive{ForgottenVolume: f}
	for id, r := range e.Ledger.Records {
		if id != f.ID && f.Instance != "" && slices.ContainsFunc(instances.LocationsOf(r), o.Is) {
			return id
		}
	}
	for id, r := range e.Ledger.Snapshots {
		if id != f.ID && f.Instance != "" && o.Is(r.Snapshot.Location) {
			return id
		}
	}
	return ""
}

// replaced reports whether a new volume has the name of a forgotten one, or the volume was
// deleted without the drive that brings it back. One event reports it, and the volume is left
// as it is.
func (e *Adopter) replaced(drive string, f drivebay.ForgottenVolume) bool {
	was, is := e.Instances.ForgottenAs(f.Key())
	if !is || !was.Replaced {
		return false
	}
	if _, told := e.Moves.Moves.Reported.LoadOrStore(f.Key(), true); !told {
		e.Drives.Note(drivebay.Event{At: e.Machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: drive, Volume: f.ID,
			Cause: fmt.Sprintf("%s holds a volume that was deleted without this drive, or was forgotten before a new one was made under its name: it is not used, and its room is taken until it is removed by hand; `drivebay volume adopt %s` takes it in while no volume has its name", f.Instance, f.ID)})
	}
	return true
}

// unread returns an error if it is not known what is on a drive, or whether it is a copy of another one.
func unread(s *drivebay.Snapshot, d *drivebay.Drive) error {
	if d.Content.Kind == drivebay.ContentUnknown || partitions.Stuck(*d) {
		return fmt.Errorf("drive %s: %w: %s", d.ID, drivebay.ErrUnavailable, partitions.NotReadYet(d))
	}
	if original := partitions.UnreadOriginal(s, d); original != "" {
		return fmt.Errorf("drive %s: %w: its partition table was made for drive %s, which is not read yet: one of the two may be a copy; retry later; pull a drive that does not recover", d.ID, drivebay.ErrUnavailable, original)
	}
	return nil
}

func (e *Adopter) adoptParts(ctx context.Context, s *drivebay.Snapshot, d *drivebay.Drive, parts []partitions.Part) error {
	var found []drivebay.ForgottenVolume
	for _, p := range parts {
		id := ledger.IDOfPartition(p.Title)
		switch {
		case instances.LeftBehind(d, p) || !e.mayAdopt(s, id, d.ID):
		case e.oldCopy(d.ID, p.GUID):
			if err := e.keepOldCopies(id); err != nil {
				return err
			}
		default:
			found = append(found, drivebay.ForgottenVolume{ID: id, Instance: strings.ToLower(p.GUID)})
		}
	}
	strange := slices.ContainsFunc(found, func(f drivebay.ForgottenVolume) bool { return f.ID != "" && !e.recordNames(f) })
	if err := unread(s, d); strange && err != nil { // no volume is held while this waits for the drive
		return err
	}
	mine, done, err := e.unrecorded(ctx, d.ID, found)
	defer done()
	if !slices.Contains(slices.Collect(maps.Values(mine)), true) {
		return err
	}
	if err := e.Partitions.Trusted([]string{d.ID}); err != nil {
		return fmt.Errorf("volumes on it are not taken in: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, steps.TableTime)
	defer cancel()
	table, tableErr := e.Partitions.ReadTitles(ctx, d)
	if tableErr != nil {
		return tableErr
	}
	errs := []error{err}
	for _, p := range parts {
		id := ledger.IDOfPartition(p.Title)
		i := slices.IndexFunc(table, func(q gpt.Partition) bool { return q.Name == p.Title && q.Start == p.Start })
		if i < 0 || !mine[id] || instances.LeftBehind(d, p) || partitions.IsOldCopy(table[i]) || !readable(table[i].Type) {
			continue
		}
		if f := (drivebay.ForgottenVolume{ID: id, Instance: strings.ToLower(table[i].GUID)}); e.replaced(d.ID, f) || e.recordOfAnother(f) != "" {
			continue
		}
		err := e.adoptPart(ctx, d, p, table[i], len(parts) == 1)
		errs = append(errs, err)
		mine[id] = !e.recordNames(drivebay.ForgottenVolume{ID: id, Instance: table[i].GUID})
	}
	return errors.Join(errs...)
}

func (e *Adopter) oldCopy(drive, guid string) bool {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return e.Partitions.OldCopy(drive, guid)
}

// keepOldCopies records the old copies of a volume, unless another call holds it: the next listing does it, or its deletion.
func (e *Adopter) keepOldCopies(id string) error {
	end, err := e.Ledger.Begin(id)
	if err != nil {
		return nil
	}
	defer end()
	return e.Instances.KeepOldCopies(id)
}

// readable reports whether a type is one of our partitions of volumes.
func readable(kind string) bool {
	_, whole := ledger.Types[kind]
	return whole || kind == ledger.TypeMaking
}

func (e *Adopter) adoptPart(ctx context.Context, d *drivebay.Drive, p partitions.Part, entry gpt.Partition, alone bool) error {
	id := ledger.IDOfPartition(p.Title)
	v := drivebay.Volume{ID: id, Node: e.Opt.Node, Size: entry.Size, Location: drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{d.ID}, Partition: entry.GUID}}
	is := ledger.Types[entry.Type]
	v.Mode = is.Mode
	duplicate := e.duplicateOf(ctx, d.ID, p)
	if entry.Type == ledger.TypeMaking && duplicate.drive != "" { // this one is left over from a move, or both are
		return nil
	}
	if alone && len(place.FreeSpans(d.Size, d.LogicalBlock, []place.Span{{Start: p.Start, End: p.Start + p.Size}})) == 0 {
		v.Location.Kind = drivebay.LocationDrive
	}
	var why string
	var err error
	switch {
	case entry.Type == ledger.TypeMaking:
		v.Parameters = parametersFrom(entry.TypeAttributes, &v)
		return e.adoptVolume(v, "it was being made or removed when its record was lost", true, nil)
	case is.Encrypted:
		if why, err = e.LUKS.AdoptHeader(ctx, &v); err != nil {
			return err
		}
	case is.Mode == drivebay.ModeFS:
		c, err := e.LUKS.ContentOf(ctx, &v)
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
	if entry.TypeAttributes&partitions.AttributeReplicated != 0 { // what is on it may be a part of what the peer has
		v.Replication, why = drivebay.LostReplication(entry.Size), ""
	}
	if duplicate.whole {
		why = fmt.Sprintf("drive %s has another copy of it, and which of the two is newer is not known", duplicate.drive)
		return e.adoptFailed(v, why, drivebay.RetryOperator)
	}
	return e.adoptVolume(v, why, false, nil)
}

// duplicate is another partition of the same name: a move was cut short, and its record is
// lost. Until the very end of a move only one of the two is whole by its name and type. One
// that cannot be read counts as whole.
type duplicate struct {
	drive string
	whole bool
}

func (e *Adopter) duplicateOf(ctx context.Context, drive string, of partitions.Part) (out duplicate) {
	s := e.Drives.Snapshot()
	for i := range s.Drives {
		d := &s.Drives[i]
		for _, p := range e.Partitions.PartsOn(d.ID) {
			if p.Title != of.Title || d.ID == drive && p.Number == of.Number {
				continue
			}
			table, err := e.Partitions.ReadTitles(ctx, d)
			i := slices.IndexFunc(table, func(q gpt.Partition) bool { return q.Name == p.Title && q.Start == p.Start })
			if i >= 0 && partitions.IsOldCopy(table[i]) {
				continue
			}
			whole := err != nil || i >= 0 && table[i].Type != ledger.TypeMaking
			if whole || out.drive == "" { // a whole one counts more than one that is being made
				out = duplicate{d.ID, out.whole || whole}
			}
		}
	}
	return out
}

// reportUnfinishedCopies sends an event for partitions to which a volume was being copied and
// which no record names. They belong to no volume, and nothing is done to them.
func (e *Adopter) reportUnfinishedCopies(drive string, parts []partitions.Part) {
	for _, p := range parts {
		known := slices.ContainsFunc(e.Ledger.All(), func(r *drivebay.VolumeRecord) bool {
			m := partitions.MoveOf(r)
			return m != nil && (m.Name == p.Title && m.To.Drives[0] == drive || m.OldName == p.Title && m.From.Drives[0] == drive) ||
				slices.ContainsFunc(r.Left, func(c drivebay.LeftCopy) bool { return c.Name == p.Title && c.Location.Drives[0] == drive })
		})
		if known || !strings.HasPrefix(p.Title, ledger.NewPrefix) {
			continue
		}
		e.Ledger.Mu.Lock()
		_, still := partitions.Named(e.Partitions.Index.Parts[drive], p.Title)
		e.Ledger.Mu.Unlock()
		if !still {
			continue
		}
		if _, told := e.Moves.Moves.Reported.LoadOrStore(drive+" "+p.Title, true); !told {
			e.Drives.Note(drivebay.Event{At: e.Machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: drive,
				Cause: fmt.Sprintf("partition %d (%s) is an unfinished copy that belongs to no volume and is in no record; it uses space until it is removed", p.Number, p.Title)})
		}
	}
}

// adoptVolume records a volume that was found. half means that it is not whole; why is what is
// wrong with it.
func (e *Adopter) adoptVolume(v drivebay.Volume, why string, half bool, pvs map[string]string) error {
	return e.adoptAs(v, why, half, pvs, drivebay.RetryOnCall)
}

// adoptFailed records a volume that was found with a fault that calls do not repair.
func (e *Adopter) adoptFailed(v drivebay.Volume, why string, retry drivebay.RetryRule) error {
	return e.adoptAs(v, why, false, nil, retry)
}

func (e *Adopter) adoptAs(v drivebay.Volume, why string, half bool, pvs map[string]string, retry drivebay.RetryRule) error {
	v.Usage, _ = drivebay.VolumeUsageUnknown.Next(drivebay.VolumeUsageMade)
	text := "a volume of ours was found that is in no record"
	e.Instances.NoteOlder(&v)
	var left []drivebay.LeftCopy
	if old, err := e.Ledger.Record(v.ID); err == nil { // the record of an earlier volume with this id
		left = slices.DeleteFunc(slices.Clone(old.Left), func(c drivebay.LeftCopy) bool { return strings.EqualFold(c.Location.Partition, v.Location.Partition) })
		text = fmt.Sprintf("the record is older than the drive: it names %s, which is gone; what is on the drive counts", instances.InstanceOf(old.Volume.Location))
		v.Name, v.Created = cmp.Or(v.Name, old.Volume.Name), old.Volume.Created
		v.Lost = partitions.LostOf(&old) // a copy of the volume lacks it as well
		if v.Parameters == nil {
			v.Parameters = old.Volume.Parameters
		}
	}
	if was, is := e.Instances.WasForgotten(v.ID, v.Location); is {
		text = fmt.Sprintf("a volume that was forgotten at %s is back on its drive, with its data", was.At.UTC().Format(time.RFC3339))
	}
	rec := drivebay.VolumeRecord{Volume: v, Left: left}
	event := drivebay.CSIFound
	if half {
		event = drivebay.CSICreate
		rec.Work = &drivebay.Work{Op: drivebay.WorkCreate, Since: e.Machine.Now(), Size: v.Size, PVs: pvs, Made: []string{partitions.FoundHalf}}
	}
	var err error
	if rec.Volume, err = v.Moved(event); err == nil && why != "" {
		rec.Volume, err = rec.Volume.Failed(drivebay.Failure[drivebay.CSIStatus]{Cause: why, Since: e.Machine.Now(), Retry: retry})
	}
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.ID, err)
	}
	e.Ledger.Note(drivebay.EventVolumeFound, &rec.Volume, text+Suffix(why))
	if half {
		return e.Ledger.Put(rec)
	}
	return e.Ledger.PutSoon(rec)
}

// Suffix returns a reason as the end of a sentence; "" for none.
func Suffix(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// parametersFrom decodes AttributesOf; nil means that the partition has none.
func parametersFrom(attributes uint16, v *drivebay.Volume) map[string]string {
	attributes &^= partitions.AttributeReplicated | partitions.AttributeRemoving | partitions.AttributeMoved
	wipe, class := attributes&3, attributes>>2
	if wipe == 0 || int(class) >= len(partitions.AttributeClasses) {
		return nil
	}
	out := drivebay.Class{Backing: backingOf(v.Location.Kind), Wipe: partitions.AttributeWipes[wipe], FSType: v.FSType}.Parameters()
	if class > 0 {
		out[drivebay.ParameterClass] = partitions.AttributeClasses[class]
	}
	if v.Encrypted() {
		out[drivebay.ParameterEncryption] = drivebay.EncryptionLUKS2
	}
	return out
}
