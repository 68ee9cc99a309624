package instances

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// The id of a volume follows from its name, so two volumes can have one id: one was deleted and made
// again, a drive was away meanwhile, or the store is an older copy. The instance tells them apart: the
// GUID of the partition or the tag of the logical volume, both chosen before the volume is made. A volume
// is used, changed and removed by its instance; its name alone proves nothing.

// InstanceOf returns the instance that a location names.
func InstanceOf(l drivebay.Location) string {
	if !l.OnLVM() {
		return strings.ToLower(l.Partition)
	}
	return l.Instance
}

func createdInstance(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return partitions.CreatedPrefix + at.UTC().Format(time.RFC3339)
}

// InstanceTag returns the value of the instance tag of a new logical volume.
func InstanceTag(l drivebay.Location) string {
	if strings.HasPrefix(l.Instance, partitions.CreatedPrefix) {
		return ""
	}
	return l.Instance
}

// Completed adds the instance to a location that an earlier version recorded.
func Completed(l drivebay.Location, created time.Time) drivebay.Location {
	if l.OnLVM() && l.Instance == "" {
		l.Instance = createdInstance(created)
	}
	return l
}

// RefuseOther refuses to work on a logical volume that has only the name of the recorded one.
func RefuseOther(r *lvm.Report, l drivebay.Location) error {
	if r.LV(l.VG, l.LV) != nil && partitions.LVOf(r, l) == nil {
		return fmt.Errorf("logical volume %s/%s: %w: it is not the one that the record names, it only has its name", l.VG, l.LV, drivebay.ErrRefused)
	}
	return nil
}

// ErrElsewhere says that a drive has a volume of that id that no record names.
var ErrElsewhere = fmt.Errorf("%w: a drive has a volume of that name that no record names", drivebay.ErrUnavailable)

// OnDrive is a volume of some id on the drives.
type OnDrive struct {
	drivebay.ForgottenVolume
	Drive string            // or its volume group, for people
	On    []string          // the ids of its drives
	Half  bool              // it is being made or wiped: its content is not the volume's
	At    mounttable.Device // if the kernel has one
}

// InstancesOf returns the volumes of an id on the drives, as last listed, without what was left behind on
// drives that leave.
func (e *Finder) InstancesOf(id string) []OnDrive {
	s, title := e.Drives.Snapshot(), ledger.PartitionName(id)
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	var out []OnDrive
	for i := range s.Drives {
		d := &s.Drives[i]
		for _, p := range e.Partitions.Index.Parts[d.ID] {
			if p.Title == title && !LeftBehind(d, p) && !e.Partitions.OldCopy(d.ID, p.GUID) {
				out = append(out, OnDrive{drivebay.ForgottenVolume{ID: id, Instance: strings.ToLower(p.GUID)}, d.ID, []string{d.ID}, e.Partitions.TypeOf(d.ID, p) == ledger.TypeMaking, p.Device})
			}
		}
	}
	if e.Partitions.Index.LVM == nil {
		return out
	}
	for i := range e.Partitions.Index.LVM.Report.Groups {
		g := &e.Partitions.Index.LVM.Report.Groups[i]
		if !slices.Contains(g.Tags, lvm.Tag) {
			continue
		}
		for j := range g.LVs {
			if lv := &g.LVs[j]; groups.IDOfLV(lv) == id {
				o := OnDrive{ForgottenVolume: drivebay.ForgottenVolume{ID: id, Instance: partitions.InstanceOfLV(lv)}, Drive: inGroup(g), On: slices.Sorted(maps.Keys(e.Partitions.Index.LVM.Members(g))), Half: partitions.TagOf(lv, groups.KeyState) == groups.HalfMade}
				if lv.Active && lv.Major >= 0 {
					o.At = mounttable.Device{Num: groups.NumOf(lv), Name: fmt.Sprintf("dm-%d", lv.Minor)} // Linux, drivers/md/dm.c, alloc_dev
				}
				out = append(out, o)
			}
		}
	}
	return out
}

// inGroup returns what OnDrive.Drive is for a logical volume.
func inGroup(g *lvm.Group) string { return "volume group " + g.Name }

// LeftBehind reports whether a partition on a released or removed drive could not be wiped after its
// volume was moved away. A partition that was made after the drive was released is a volume: the record of
// the drive is older than the drive.
func LeftBehind(d *drivebay.Drive, p partitions.Part) bool {
	made, known := instanceTime(strings.ToLower(p.GUID))
	return Left(d) && (!known || d.Leaving == nil || !made.After(d.Leaving.Since))
}

// Left reports whether what was on a drive was moved away or given up.
func Left(d *drivebay.Drive) bool {
	return d.Usage == drivebay.UsageReleased || d.Usage == drivebay.UsageRemoving || d.Usage == drivebay.UsageRemoved
}

// OthersOf returns the complete volumes of an id on the drives that none of the locations names and that
// were not forgotten.
func (e *Finder) OthersOf(id string, own ...drivebay.Location) []OnDrive {
	return slices.DeleteFunc(e.InstancesOf(id), func(o OnDrive) bool {
		mine := slices.ContainsFunc(own, func(l drivebay.Location) bool { return o.Is(l) })
		_, forgotten := e.ForgottenAs(o.Key())
		return mine || forgotten || o.Half
	})
}

// Is reports whether a location names the volume. A partition whose GUID the kernel does not report is
// matched by name and drive.
func (o *OnDrive) Is(l drivebay.Location) bool {
	if o.Instance == "" {
		return !l.OnLVM() && slices.Contains(l.Drives, o.Drive)
	}
	return o.Instance == InstanceOf(l)
}

// LocationsOf returns all locations that a record names.
func LocationsOf(r *drivebay.VolumeRecord) []drivebay.Location {
	out := []drivebay.Location{r.Volume.Location}
	if m := partitions.MoveOf(r); m != nil {
		out = append(out, m.From, m.To)
	}
	for _, c := range r.Left {
		out = append(out, c.Location)
	}
	return out
}

// UnrecordedOn returns a complete volume on a drive that no record names and that was not forgotten: it
// waits for a claim, or for the decision of an operator.
func (e *Finder) UnrecordedOn(drive string) (OnDrive, bool) {
	e.Ledger.Mu.Lock()
	x, group := e.Partitions.Index, ""
	e.Ledger.Mu.Unlock()
	var ids []string
	for _, p := range x.Parts[drive] {
		ids = append(ids, ledger.IDOfPartition(p.Title))
	}
	if x.LVM != nil {
		if _, g := x.LVM.Report.On(x.LVM.PVs[drive]); g != nil && slices.Contains(g.Tags, lvm.Tag) {
			group = inGroup(g)
			for i := range g.LVs {
				if groups.TagsOf(&g.LVs[i])[groups.KeyWhat] == "volume" {
					ids = append(ids, groups.IDOfLV(&g.LVs[i]))
				}
			}
		}
	}
	for _, id := range ids {
		for _, o := range e.OthersOf(id, e.RecordedLocations(id)...) {
			if o.Drive == drive || o.Drive == group && o.Instance != "" {
				return o, true
			}
		}
	}
	return OnDrive{}, false
}

// RecordedLocations returns all locations in the record of an id, if there is one.
func (e *Finder) RecordedLocations(id string) []drivebay.Location {
	r, err := e.Ledger.Record(id)
	if err != nil {
		return nil
	}
	return LocationsOf(&r)
}

// NotInRecord returns the volumes of an id on the drives that its record does not name.
func (e *Finder) NotInRecord(id string) []OnDrive {
	recorded := e.RecordedLocations(id)
	return slices.DeleteFunc(e.InstancesOf(id), func(o OnDrive) bool { return slices.ContainsFunc(recorded, o.Is) })
}

// LogicalVolumeGone reports whether the logical volume of a location is gone from each of its
// drives: LVM reads the physical volume there and reports another volume group, or this one
// complete and without the volume; or the drive has no physical volume (Groups.MayHavePV, also for made).
func (e *Finder) LogicalVolumeGone(ctx context.Context, l drivebay.Location, made bool) (bool, error) {
	x := e.Groups.LVMNow()
	r := x.Reported()
	if g := r.Group(l.VG); g != nil && (g.Partial || partitions.LVIn(g, l) != nil) {
		return false, nil
	}
	for _, id := range l.Drives {
		if p, has := e.Groups.PVPart(id); has {
			if _, g := r.On(p.Dev); (g == nil || x.Unreadable(id) != "") && e.Groups.MayHavePV(l.VG, id, made) {
				return false, nil
			}
			continue
		}
		d, err := e.Partitions.Drive(id)
		if err != nil {
			return false, err
		}
		table, err := e.Partitions.ReadTitles(ctx, d) // the kernel may lack what the table has
		if err != nil || slices.ContainsFunc(table, func(p gpt.Partition) bool { return strings.HasPrefix(p.Name, ledger.PVPrefix) }) {
			return false, err
		}
	}
	return true, nil
}

// maxForgotten bounds the records of forgotten volumes, and those of deletions by id: the oldest of its
// kind is dropped first. The kinds have a bound each, because deletions are far more frequent and the
// other records would soon be dropped for them.
const maxForgotten = 4096

// ForgottenAs returns the deleted or forgotten volume with that key.
func (e *Finder) ForgottenAs(key string) (drivebay.ForgottenVolume, bool) {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	f, is := e.Forgotten[key]
	return f, is
}

// WasForgotten reports whether the volume or snapshot of a location was forgotten, and when.
func (e *Finder) WasForgotten(id string, l drivebay.Location) (drivebay.ForgottenVolume, bool) {
	return e.ForgottenAs(drivebay.ForgottenVolume{ID: id, Instance: InstanceOf(l)}.Key())
}

// MarkForgotten records that a volume or snapshot is no longer what its name stands for.
func (e *Finder) MarkForgotten(f drivebay.ForgottenVolume) error {
	if f.Instance == "" {
		return nil
	}
	return e.storeForgotten(f)
}

// RecordDeletion stores that an id was deleted. After a loss of the records an absent drive may
// still have a volume or snapshot with that id; it must not come back.
func (e *Finder) RecordDeletion(id string) error {
	if !ledger.IsID(id) || e.Recorded(id) { // a snapshot has the id that was given for a volume, or the other way round
		return nil
	}
	return e.storeForgotten(drivebay.ForgottenVolume{ID: id, Replaced: true})
}

// RecordDeletionAt is RecordDeletion for one that was requested earlier. A volume that was made since may be on a drive that is away, where the
// record is older than the drives: it was not deleted. A later deletion stays.
func (e *Finder) RecordDeletionAt(id string, at time.Time) error {
	f := drivebay.ForgottenVolume{ID: id, At: at, Replaced: true}
	if later, is := e.ForgottenAs(f.Key()); is && later.At.After(at) {
		return nil
	}
	return e.storeForgotten(f)
}

// DeletedBefore reports whether a volume or snapshot on a drive is older than the deletion of its
// id.
func (e *Finder) DeletedBefore(f drivebay.ForgottenVolume) bool {
	if _, forgotten := e.ForgottenAs(f.Key()); forgotten { // an operator gave up this one, which may return
		return false
	}
	deletion, is := e.ForgottenAs(drivebay.ForgottenVolume{ID: f.ID}.Key())
	at, known := instanceTime(f.Instance)
	return is && known && at.Before(deletion.At)
}

// InstanceUsed reports whether something uses a volume that no record names. Such a volume was not
// deleted, whatever the times say: the records are older than the drives, and the clock was set
// back in between.
func (e *Finder) InstanceUsed(ctx context.Context, f drivebay.ForgottenVolume) (bool, error) {
	t, err := e.MountTable.RecentTable(ctx)
	if err != nil {
		return false, err
	}
	for _, o := range e.InstancesOf(f.ID) {
		if o.Instance != f.Instance || o.At.Num == "" {
			continue
		}
		holders, err := e.Machine.ReadDir("sys/dev/block/" + o.At.Num + "/holders")
		switch {
		case slices.ContainsFunc(t.Of(o.At), func(m host.Mount) bool { return !mounttable.IsUnlinked(m) }) || len(holders) > 0:
			return true, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return false, fmt.Errorf("volume %s: what holds %s: %w", f.ID, o.At.Name, err)
		}
	}
	return false, nil
}

func (e *Finder) storeForgotten(f drivebay.ForgottenVolume) error {
	switch last := e.latestInstanceTime(); {
	case f.Instance != "":
		f.At = e.Machine.Now()
	case f.At.IsZero(): // later than each recorded instance of the id
		if f.At = e.Machine.Now(); last.After(f.At) {
			f.At = last
		}
	}
	if err := e.Store.PutForgotten(f); err != nil {
		return fmt.Errorf("volume %s: remember that it was forgotten: %w", f.ID, ledger.NotStored(err))
	}
	e.Ledger.Mu.Lock()
	e.Forgotten[f.Key()] = f
	oldest, n := drivebay.ForgottenVolume{}, 0
	for key, o := range e.Forgotten {
		if (o.Instance == "") != (f.Instance == "") {
			continue
		}
		n++
		if key != f.Key() && (oldest.ID == "" || o.At.Before(oldest.At)) { // after the clock was set back, f may have the earliest time
			oldest = o
		}
	}
	full := n > maxForgotten
	e.Ledger.Mu.Unlock()
	if full {
		return e.UnmarkForgotten(oldest.Key())
	}
	return nil
}

// UnmarkForgotten deletes that record: the volume was removed, or an operator takes it back.
func (e *Finder) UnmarkForgotten(key string) error {
	if _, is := e.ForgottenAs(key); !is {
		return nil
	}
	if err := e.Store.DeleteForgotten(key); err != nil {
		return fmt.Errorf("volume %s: %w", key, ledger.NotStored(err))
	}
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	delete(e.Forgotten, key)
	return nil
}

// OwnIsThere reports whether the volume that a record names is complete on its drive, or awaits its
// passphrase there.
func (e *Finder) OwnIsThere(v *drivebay.Volume) bool {
	return slices.ContainsFunc(e.InstancesOf(v.ID), func(o OnDrive) bool { return o.Is(v.Location) && (!o.Half || v.AwaitsKey) })
}

// Supersede marks the other volumes with a record's id as forgotten that are older than the volume which
// the record names. After that volume is deleted, an older one does not take its place.
func (e *Finder) Supersede(r *drivebay.VolumeRecord) error {
	v := &r.Volume
	if !e.OwnIsThere(v) || r.Work != nil && r.Work.Op == drivebay.WorkCreate || v.CSIStatus == drivebay.CSIFailed {
		return nil
	}
	return e.MarkOthersForgotten(r, func(o OnDrive) bool { return isOlderInstance(o.Instance, InstanceOf(v.Location)) })
}

// MarkOthersForgotten marks the selected other volumes with a record's id as forgotten: they are never
// used.
func (e *Finder) MarkOthersForgotten(r *drivebay.VolumeRecord, which func(OnDrive) bool) error {
	return e.markOthers(e.OthersOf(r.Volume.ID, LocationsOf(r)...), which, &r.Volume, fmt.Sprintf("another volume %q", r.Volume.Name))
}

// markOthers marks the selected ones as forgotten; an event of each of their drives reports it.
func (e *Finder) markOthers(others []OnDrive, which func(OnDrive) bool, v *drivebay.Volume, what string) error {
	var errs []error
	for _, o := range others {
		if o.Instance == "" || !which(o) {
			continue
		}
		errs = append(errs, e.MarkForgotten(o.ForgottenVolume))
		for _, id := range o.On {
			e.Drives.Note(drivebay.Event{At: e.Machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: id, Volume: v.ID, To: v.CSIStatus.String(),
				Cause: fmt.Sprintf("%s has %s (%s): it comes from before, is not used, and is never what a request for that name gets", o.Drive, what, o.Instance)})
		}
	}
	return errors.Join(errs...)
}

// VolumeTags returns the LVM tags that identify a volume.
func VolumeTags(v *drivebay.Volume) ([]string, error) {
	source := ""
	if v.Source.Snapshot != "" {
		source = "snapshot:" + v.Source.Snapshot
	} else if v.Source.Volume != "" {
		source = "volume:" + v.Source.Volume
	}
	return groups.Tags(map[string]string{
		groups.KeyWhat: "volume", groups.KeyID: v.ID, groups.KeyName: v.Name, groups.KeyMode: v.Mode.String(), groups.KeyFS: v.FSType, groups.KeyUUID: v.FSUUID, groups.KeyLUKS: v.LUKSUUID,
		groups.KeyWipe: v.Parameters[drivebay.ParameterWipe], groups.KeyClass: v.Parameters[drivebay.ParameterClass],
		groups.KeySource: source, partitions.KeyCreated: v.Created.UTC().Format(time.RFC3339), groups.KeyState: groups.HalfMade,
		partitions.KeyInst: InstanceTag(v.Location),
	})
}
