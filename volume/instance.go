package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
)

// The id of a volume follows from its name, so two volumes can have one id: one was deleted and made
// again, a drive was away meanwhile, or the store is an older copy. The instance tells them apart: the
// GUID of the partition or the tag of the logical volume, both chosen before the volume is made. A volume
// is used, changed and removed by its instance; its name alone proves nothing.

// instanceOf returns the instance that a location names.
func instanceOf(l drivebay.Location) string {
	if l.VG == "" {
		return strings.ToLower(l.Partition)
	}
	return l.Instance
}

// createdPrefix starts the instance of a logical volume that has no instance tag. An earlier version made
// that volume; its time of creation tells it from another.
const createdPrefix = "created "

func createdInstance(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return createdPrefix + at.UTC().Format(time.RFC3339)
}

// instanceTag returns the value of the instance tag of a new logical volume.
func instanceTag(l drivebay.Location) string {
	if strings.HasPrefix(l.Instance, createdPrefix) {
		return ""
	}
	return l.Instance
}

func instanceOfLV(lv *lvm.LV) string {
	if is := tagOf(lv, keyInst); is != "" {
		return is
	}
	if created := tagOf(lv, keyCreated); created != "" {
		return createdPrefix + created
	}
	return ""
}

// completed adds the instance to a location that an earlier version recorded.
func completed(l drivebay.Location, created time.Time) drivebay.Location {
	if l.VG != "" && l.Instance == "" {
		l.Instance = createdInstance(created)
	}
	return l
}

// lvOf returns the logical volume of a location; nil if the report has none, or another one of its name.
func lvOf(r *lvm.Report, l drivebay.Location) *lvm.LV { return lvIn(r.Group(l.VG), l) }

func lvIn(g *lvm.Group, l drivebay.Location) *lvm.LV {
	if g == nil {
		return nil
	}
	if lv := g.LV(l.LV); lv != nil && (l.Instance == "" || instanceOfLV(lv) == l.Instance) {
		return lv
	}
	return nil
}

// refuseOther refuses to work on a logical volume that has only the name of the recorded one.
func refuseOther(r *lvm.Report, l drivebay.Location) error {
	if r.LV(l.VG, l.LV) != nil && lvOf(r, l) == nil {
		return fmt.Errorf("logical volume %s/%s: %w: it is not the one that the record names, it only has its name", l.VG, l.LV, drivebay.ErrRefused)
	}
	return nil
}

// errElsewhere says that a drive has a volume of that id that no record names.
var errElsewhere = fmt.Errorf("%w: a drive has a volume of that name that no record names", drivebay.ErrUnavailable)

// onDrive is a volume of some id on the drives.
type onDrive struct {
	drivebay.ForgottenVolume
	drive string
	half  bool   // it is being made or wiped: its content is not the volume's
	at    device // if the kernel has one
}

// instancesOf returns the volumes of an id on the drives, as last listed, without what was left behind on
// drives that leave.
func (e *Engine) instancesOf(id string) []onDrive {
	s := e.drives.Snapshot()
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []onDrive
	for i := range s.Drives {
		d := &s.Drives[i]
		for _, p := range e.index.parts[d.ID] {
			if p.title == partitionName(id) && !leftBehind(d, p) {
				out = append(out, onDrive{drivebay.ForgottenVolume{ID: id, Instance: strings.ToLower(p.guid)}, d.ID, p.kind == typeMaking, p.device})
			}
		}
	}
	if e.index.lvm == nil {
		return out
	}
	for i := range e.index.lvm.report.Groups {
		g := &e.index.lvm.report.Groups[i]
		if !slices.Contains(g.Tags, lvm.Tag) {
			continue
		}
		for j := range g.LVs {
			if lv := &g.LVs[j]; idOfLV(lv) == id {
				o := onDrive{ForgottenVolume: drivebay.ForgottenVolume{ID: id, Instance: instanceOfLV(lv)}, drive: "volume group " + g.Name, half: tagOf(lv, keyState) == halfMade}
				if lv.Active && lv.Major >= 0 {
					o.at = device{num: numOf(lv), name: fmt.Sprintf("dm-%d", lv.Minor)} // Linux, drivers/md/dm.c, alloc_dev
				}
				out = append(out, o)
			}
		}
	}
	return out
}

// leftBehind reports whether a partition on a released or removed drive could not be wiped after its
// volume was moved away. A partition that was made after the drive was released is a volume: the record of
// the drive is older than the drive.
func leftBehind(d *drivebay.Drive, p part) bool {
	made, known := instanceTime(strings.ToLower(p.guid))
	return left(d) && (!known || d.Leaving == nil || !made.After(d.Leaving.Since))
}

// left reports whether what was on a drive was moved away or given up.
func left(d *drivebay.Drive) bool {
	return d.Usage == drivebay.UsageReleased || d.Usage == drivebay.UsageRemoving || d.Usage == drivebay.UsageRemoved
}

// othersOf returns the complete volumes of an id on the drives that none of the locations names and that
// were not forgotten.
func (e *Engine) othersOf(id string, own ...drivebay.Location) []onDrive {
	return slices.DeleteFunc(e.instancesOf(id), func(o onDrive) bool {
		mine := slices.ContainsFunc(own, func(l drivebay.Location) bool { return o.is(l) })
		_, forgotten := e.forgottenAs(o.Key())
		return mine || forgotten || o.half
	})
}

// is reports whether a location names the volume. A partition whose GUID the kernel does not report is
// matched by name and drive.
func (o *onDrive) is(l drivebay.Location) bool {
	if o.Instance == "" {
		return l.VG == "" && contains(l.Drives, o.drive)
	}
	return o.Instance == instanceOf(l)
}

// locationsOf returns all locations that a record names.
func locationsOf(r *drivebay.VolumeRecord) []drivebay.Location {
	out := []drivebay.Location{r.Volume.Location}
	if m := moveOf(r); m != nil {
		out = append(out, m.From, m.To)
	}
	for _, c := range r.Left {
		out = append(out, c.Location)
	}
	return out
}

// recordedLocations returns all locations in the record of an id, if there is one.
func (e *Engine) recordedLocations(id string) []drivebay.Location {
	r, err := e.record(id)
	if err != nil {
		return nil
	}
	return locationsOf(&r)
}

// notInRecord returns the volumes of an id on the drives that its record does not name.
func (e *Engine) notInRecord(id string) []onDrive {
	recorded := e.recordedLocations(id)
	return slices.DeleteFunc(e.instancesOf(id), func(o onDrive) bool { return slices.ContainsFunc(recorded, o.is) })
}

// refuseSecond returns an error while a drive has a volume of the id, and before all drives were listed: a
// second volume would be empty, and be taken for the first.
func (e *Engine) refuseSecond(id string, own ...drivebay.Location) error {
	if err := e.unreadDrives(everyDrive); err != nil {
		return err
	}
	if others := e.othersOf(id, own...); len(others) > 0 {
		return fmt.Errorf("volume %s: %w: %s: it is taken in; retry later", id, errElsewhere, others[0].drive)
	}
	return nil
}

// refuseSecondInstance is refuseSecond for a volume that may be on its drive already.
func (e *Engine) refuseSecondInstance(rec *drivebay.VolumeRecord) error {
	v := &rec.Volume
	own := locationsOf(rec)
	if slices.ContainsFunc(e.instancesOf(v.ID), func(o onDrive) bool { return o.is(v.Location) }) {
		return nil
	}
	return e.refuseSecond(v.ID, own...)
}

// takeInUnknown adopts a volume that a call asks for, if the drives have it and it has no record yet.
func (e *Engine) takeInUnknown(ctx context.Context, id string) error {
	if e.recorded(id) || len(e.instancesOf(id)) == 0 {
		return nil
	}
	return e.adopt(ctx, e.drives.Snapshot())
}

// outdated reports whether a record is older than a drive: its own volume is certainly gone and not in
// use, and a drive has another one of its id.
func (e *Engine) outdated(ctx context.Context, r *drivebay.VolumeRecord) (bool, error) {
	v, others := &r.Volume, e.othersOf(r.Volume.ID, locationsOf(r)...)
	if len(v.Location.Drives) == 0 || len(others) == 0 || !e.gone(v) {
		return false, nil
	}
	if used, err := e.seenUsed(ctx, v, others); err != nil || used {
		return false, err
	}
	if v.Location.VG != "" {
		return e.logicalVolumeGone(ctx, v.Location)
	}
	d, err := e.drive(v.Location.Drives[0])
	if err != nil {
		return false, err
	}
	table, err := e.readTitles(ctx, d) // the kernel may lack what the table has
	return err == nil && !slices.ContainsFunc(table, func(p gpt.Partition) bool { return strings.EqualFold(p.GUID, v.Location.Partition) }), err
}

// seenUsed reports whether anything but another volume of the id is mounted where a record says that its
// volume is published. After a volume has gone, that may be what its device left behind.
func (e *Engine) seenUsed(ctx context.Context, v *drivebay.Volume, others []onDrive) (bool, error) {
	if len(v.Publications) == 0 {
		return false, nil
	}
	t, err := e.recentTable(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range v.Publications {
		target := path.Clean(p.Path) // the roots may have changed since
		if at, err := e.checkPath(p.Path); err == nil {
			target = at.target
		}
		was := madeOf(p)
		for _, m := range t.on[target] {
			if !slices.ContainsFunc(others, func(o onDrive) bool { return carries(m, o.at) && !(was.name == o.at.name && renumbered(m, o.at, was)) }) {
				return true, nil
			}
		}
	}
	return false, nil
}

// logicalVolumeGone reports whether the logical volume of a location is gone from each of its
// drives: LVM reads the physical volume there and reports another volume group, or this one
// complete and without the volume; or the partition table has no physical volume.
func (e *Engine) logicalVolumeGone(ctx context.Context, l drivebay.Location) (bool, error) {
	x := e.lvmNow()
	r := x.reported()
	if g := r.Group(l.VG); g != nil && (g.Partial || lvIn(g, l) != nil) {
		return false, nil
	}
	for _, id := range l.Drives {
		if p, has := e.pvPart(id); has {
			if _, g := r.On(p.dev); g == nil || x.unreadable(id) != "" {
				return false, nil
			}
			continue
		}
		d, err := e.drive(id)
		if err != nil {
			return false, err
		}
		table, err := e.readTitles(ctx, d) // the kernel may lack what the table has
		if err != nil || slices.ContainsFunc(table, func(p gpt.Partition) bool { return strings.HasPrefix(p.Name, pvPrefix) }) {
			return false, err
		}
	}
	return true, nil
}

// maxForgotten bounds the records of forgotten volumes, and those of deletions by id: the oldest of its
// kind is dropped first. The kinds have a bound each, because deletions are far more frequent and the
// other records would soon be dropped for them.
const maxForgotten = 4096

func (e *Engine) forgottenAs(key string) (drivebay.ForgottenVolume, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, is := e.forgotten[key]
	return f, is
}

// wasForgotten reports whether the volume or snapshot of a location was forgotten, and when.
func (e *Engine) wasForgotten(id string, l drivebay.Location) (drivebay.ForgottenVolume, bool) {
	return e.forgottenAs(drivebay.ForgottenVolume{ID: id, Instance: instanceOf(l)}.Key())
}

// markForgotten records that a volume or snapshot is no longer what its name stands for.
func (e *Engine) markForgotten(f drivebay.ForgottenVolume) error {
	if f.Instance == "" {
		return nil
	}
	return e.storeForgotten(f)
}

// recordDeletion stores that an id was deleted. After a loss of the records an absent drive may
// still have a volume or snapshot with that id; it must not come back.
func (e *Engine) recordDeletion(id string) error {
	if !isID(id) {
		return nil
	}
	return e.storeForgotten(drivebay.ForgottenVolume{ID: id, Replaced: true})
}

// deletedBefore reports whether a volume or snapshot on a drive is older than the deletion of its
// id.
func (e *Engine) deletedBefore(f drivebay.ForgottenVolume) bool {
	if _, forgotten := e.forgottenAs(f.Key()); forgotten { // an operator gave up this one, which may return
		return false
	}
	deletion, is := e.forgottenAs(drivebay.ForgottenVolume{ID: f.ID}.Key())
	at, known := instanceTime(f.Instance)
	return is && known && at.Before(deletion.At)
}

// instanceUsed reports whether something uses a volume that no record names. Such a volume was not
// deleted, whatever the times say: the records are older than the drives, and the clock was set
// back in between.
func (e *Engine) instanceUsed(ctx context.Context, f drivebay.ForgottenVolume) (bool, error) {
	t, err := e.recentTable(ctx)
	if err != nil {
		return false, err
	}
	for _, o := range e.instancesOf(f.ID) {
		if o.Instance != f.Instance || o.at.num == "" {
			continue
		}
		holders, err := e.machine.ReadDir("sys/dev/block/" + o.at.num + "/holders")
		switch {
		case slices.ContainsFunc(t.of(o.at), func(m host.Mount) bool { return !isUnlinked(m) }) || len(holders) > 0:
			return true, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return false, fmt.Errorf("volume %s: what holds %s: %w", f.ID, o.at.name, err)
		}
	}
	return false, nil
}

func (e *Engine) storeForgotten(f drivebay.ForgottenVolume) error {
	if f.At = e.machine.Now(); f.Instance == "" { // later than each recorded instance of the id
		if last := e.latestInstanceTime(); last.After(f.At) {
			f.At = last
		}
	}
	if err := e.store.PutForgotten(f); err != nil {
		return fmt.Errorf("volume %s: remember that it was forgotten: %w", f.ID, notStored(err))
	}
	e.mu.Lock()
	e.forgotten[f.Key()] = f
	oldest, n := drivebay.ForgottenVolume{}, 0
	for key, o := range e.forgotten {
		if (o.Instance == "") != (f.Instance == "") {
			continue
		}
		n++
		if key != f.Key() && (oldest.ID == "" || o.At.Before(oldest.At)) { // after the clock was set back, f may have the earliest time
			oldest = o
		}
	}
	full := n > maxForgotten
	e.mu.Unlock()
	if full {
		return e.unmarkForgotten(oldest.Key())
	}
	return nil
}

// unmarkForgotten deletes that record: the volume was removed, or an operator takes it back.
func (e *Engine) unmarkForgotten(key string) error {
	if _, is := e.forgottenAs(key); !is {
		return nil
	}
	if err := e.store.DeleteForgotten(key); err != nil {
		return fmt.Errorf("volume %s: %w", key, notStored(err))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.forgotten, key)
	return nil
}

// ownIsThere reports whether the volume that a record names is complete on its drive.
func (e *Engine) ownIsThere(v *drivebay.Volume) bool {
	return slices.ContainsFunc(e.instancesOf(v.ID), func(o onDrive) bool { return o.is(v.Location) && !o.half })
}

// supersede marks the other volumes with a record's id as forgotten that are older than the volume which
// the record names. After that volume is deleted, an older one does not take its place.
func (e *Engine) supersede(r *drivebay.VolumeRecord) error {
	v := &r.Volume
	if !e.ownIsThere(v) || r.Work != nil && r.Work.Op == drivebay.WorkCreate || v.CSIStatus == drivebay.CSIFailed {
		return nil
	}
	return e.markOthersForgotten(r, func(o onDrive) bool { return isOlderInstance(o.Instance, instanceOf(v.Location)) })
}

// markOthersForgotten marks the selected other volumes with a record's id as forgotten: they are never
// used.
func (e *Engine) markOthersForgotten(r *drivebay.VolumeRecord, which func(onDrive) bool) error {
	var errs []error
	for _, o := range e.othersOf(r.Volume.ID, locationsOf(r)...) {
		if o.Instance == "" || !which(o) {
			continue
		}
		errs = append(errs, e.markForgotten(o.ForgottenVolume))
		e.note(drivebay.EventVolumeLeft, &r.Volume, fmt.Sprintf("%s has another volume with the id of this one (%s): it comes from before, is not used, and is never what a request for volume %q gets", o.drive, o.Instance, r.Volume.Name))
	}
	return errors.Join(errs...)
}
