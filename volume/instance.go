package volume

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/lvm"
)

// The id of a volume follows from its name, so two volumes can have one id: one was
// deleted and made again, a drive was away meanwhile, or the store is an older copy.
// The instance tells them apart: the GUID of the partition, the tag of the logical
// volume, both chosen at random before the volume is made. A volume is used, changed
// and removed by its instance; its name alone proves nothing.

// instanceOf is the instance that a location names.
func instanceOf(l drivebay.Location) string {
	if l.VG == "" {
		return strings.ToLower(l.Partition)
	}
	return l.Instance
}

// createdPrefix begins the instance of a logical volume without an instance tag: an
// earlier version made it, and its time of creation is what tells it from another.
const createdPrefix = "created "

func createdInstance(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return createdPrefix + at.UTC().Format(time.RFC3339)
}

// instanceTag is the value of the tag of a logical volume that is to be made.
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

// completed is a location of a record that an earlier version wrote.
func completed(l drivebay.Location, created time.Time) drivebay.Location {
	if l.VG != "" && l.Instance == "" {
		l.Instance = createdInstance(created)
	}
	return l
}

// lvOf is the logical volume of a location; nil where the report has none, or
// another one of its name.
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

// refuseOther refuses to work on a logical volume that only has the name.
func refuseOther(r *lvm.Report, l drivebay.Location) error {
	if r.LV(l.VG, l.LV) != nil && lvOf(r, l) == nil {
		return fmt.Errorf("logical volume %s/%s: %w: it is not the one that the record names, it only has its name", l.VG, l.LV, drivebay.ErrRefused)
	}
	return nil
}

// errElsewhere: a drive has a volume of that id that the record does not name.
var errElsewhere = fmt.Errorf("%w: a drive has a volume of that name that no record names", drivebay.ErrUnavailable)

// onDrive is a volume of some id as the drives have it.
type onDrive struct {
	drivebay.ForgottenVolume
	drive string
	half  bool   // it is being made or wiped: its content is not the volume's
	at    device // if the kernel has one
}

// instancesOf are the volumes of an id that the drives have, as last listed, without
// those on drives that leave: what could not be wiped there is older than what was
// moved away.
func (e *Engine) instancesOf(id string) []onDrive {
	s := e.drives.Snapshot()
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []onDrive
	for i := range s.Drives {
		d := &s.Drives[i]
		if left(d) {
			continue
		}
		for _, p := range e.index.parts[d.ID] {
			if p.title == partitionName(id) {
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

// left says of a drive that what is on it was moved away, or is given up.
func left(d *drivebay.Drive) bool {
	return d.Usage == drivebay.UsageReleased || d.Usage == drivebay.UsageRemoving || d.Usage == drivebay.UsageRemoved
}

// othersOf are the whole volumes of an id on the drives that none of some locations
// names and that were not forgotten.
func (e *Engine) othersOf(id string, own ...drivebay.Location) []onDrive {
	return slices.DeleteFunc(e.instancesOf(id), func(o onDrive) bool {
		mine := slices.ContainsFunc(own, func(l drivebay.Location) bool { return o.is(l) })
		_, forgotten := e.forgottenAs(o.Key())
		return mine || forgotten || o.half
	})
}

// is says whether a location names it. A partition whose GUID the kernel does not tell
// is taken for the one of its name on its drive.
func (o *onDrive) is(l drivebay.Location) bool {
	if o.Instance == "" {
		return l.VG == "" && contains(l.Drives, o.drive)
	}
	return o.Instance == instanceOf(l)
}

// locationsOf are all places that a record names.
func locationsOf(r *drivebay.VolumeRecord) []drivebay.Location {
	out := []drivebay.Location{r.Volume.Location}
	if m := moveOf(r); m != nil {
		out = append(out, m.From, m.To)
	}
	return out
}

// sole refuses to make a volume while a drive has one of its id, and before all
// drives were listed: a second one would be empty, and be taken for the first.
func (e *Engine) sole(id string, own ...drivebay.Location) error {
	if err := e.unreadDrives(everyDrive); err != nil {
		return err
	}
	if others := e.othersOf(id, own...); len(others) > 0 {
		return fmt.Errorf("volume %s: %w: %s: it is taken in; retry later", id, errElsewhere, others[0].drive)
	}
	return nil
}

// soleInstance is sole for a volume that is not on its drive yet.
func (e *Engine) soleInstance(rec *drivebay.VolumeRecord) error {
	v := &rec.Volume
	own := locationsOf(rec)
	if slices.ContainsFunc(e.instancesOf(v.ID), func(o onDrive) bool { return o.is(v.Location) }) {
		return nil
	}
	return e.sole(v.ID, own...)
}

// takeInUnknown takes in a volume that a call asks for, where the drives have it and no
// record does yet.
func (e *Engine) takeInUnknown(ctx context.Context, id string) error {
	if e.recorded(id) || len(e.instancesOf(id)) == 0 {
		return nil
	}
	return e.adopt(ctx, e.drives.Snapshot())
}

// outdated says of a record that its own volume is certainly gone, nobody uses it, and
// a drive has another one of its id: the record is older than the drive.
func (e *Engine) outdated(ctx context.Context, r *drivebay.VolumeRecord) (bool, error) {
	v, others := &r.Volume, e.othersOf(r.Volume.ID, locationsOf(r)...)
	if len(v.Location.Drives) == 0 || len(others) == 0 || !e.gone(v) {
		return false, nil
	}
	if used, err := e.seenUsed(ctx, v, others); err != nil || used {
		return false, err
	}
	if v.Location.VG != "" {
		if e.groupLacks(v.Location) {
			return true, nil
		}
		return e.groupGone(ctx, v.Location)
	}
	d, err := e.drive(v.Location.Drives[0])
	if err != nil {
		return false, err
	}
	table, err := e.readTitles(ctx, d) // the kernel may lack what the table has
	return err == nil && !slices.ContainsFunc(table, func(p gpt.Partition) bool { return strings.EqualFold(p.GUID, v.Location.Partition) }), err
}

// seenUsed says whether anything is mounted at a path that a volume is published at by its
// record, but for another volume of its id. Of a volume that is gone that may be what its
// device has left behind.
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
		if at, err := e.spot(p.Path); err == nil {
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

// groupLacks says that LVM could read what is on all drives of a location, and that the
// volume is not there.
func (e *Engine) groupLacks(l drivebay.Location) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.index.lvm
	if x == nil || !x.lacks(l) {
		return false
	}
	if g := x.report.Group(l.VG); g != nil {
		return !g.Partial
	}
	for _, id := range l.Drives {
		if _, g := x.report.On(x.pvs[id]); g == nil {
			return false
		}
	}
	return true
}

// groupGone says that no drive of a location has a physical volume of its group: there is
// none in the partition table, or it is one of another group.
func (e *Engine) groupGone(ctx context.Context, l drivebay.Location) (bool, error) {
	for _, id := range l.Drives {
		d, err := e.drive(id)
		if err != nil {
			return false, err
		}
		if p, has := e.pvPart(id); has {
			if _, g := e.lvmNow().reported().On(p.dev); g == nil || g.Name == l.VG {
				return false, nil
			}
			continue
		}
		table, err := e.readTitles(ctx, d) // the kernel may lack what the table has
		if err != nil || slices.ContainsFunc(table, func(p gpt.Partition) bool { return strings.HasPrefix(p.Name, pvPrefix) }) {
			return false, err
		}
	}
	return true, nil
}

// maxForgotten bounds what is remembered of volumes that were forgotten; the oldest go
// first.
const maxForgotten = 4096

func (e *Engine) forgottenAs(key string) (drivebay.ForgottenVolume, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, is := e.forgotten[key]
	return f, is
}

// wasForgotten says that the volume or snapshot of a location was forgotten, and is back.
func (e *Engine) wasForgotten(id string, l drivebay.Location) (drivebay.ForgottenVolume, bool) {
	return e.forgottenAs(drivebay.ForgottenVolume{ID: id, Instance: instanceOf(l)}.Key())
}

// bury writes down that what a location names is not what its name stands for from now on.
func (e *Engine) bury(f drivebay.ForgottenVolume) error {
	if f.Instance == "" {
		return nil
	}
	f.At = e.machine.Now()
	if err := e.store.PutForgotten(f); err != nil {
		return fmt.Errorf("volume %s: remember that it was forgotten: %w", f.ID, notStored(err))
	}
	e.mu.Lock()
	e.forgotten[f.Key()] = f
	var oldest drivebay.ForgottenVolume
	for _, o := range e.forgotten {
		if oldest.ID == "" || o.At.Before(oldest.At) {
			oldest = o
		}
	}
	full := len(e.forgotten) > maxForgotten
	e.mu.Unlock()
	if full {
		return e.unbury(oldest.Key())
	}
	return nil
}

// unbury ends that: the volume was removed, or an operator takes it back.
func (e *Engine) unbury(key string) error {
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

// supersede writes down which volumes of a record's id are not the record's: while the
// one that it names is on its drive, another one is older, and comes from a drive that
// was away. Deleted, the record's volume is not followed by the other one.
func (e *Engine) supersede(r *drivebay.VolumeRecord) error {
	v := &r.Volume
	own := slices.ContainsFunc(e.instancesOf(v.ID), func(o onDrive) bool { return o.is(v.Location) && !o.half })
	if !own || r.Work != nil && r.Work.Op == drivebay.WorkCreate || v.CSIStatus == drivebay.CSIFailed {
		return nil
	}
	var errs []error
	for _, o := range e.othersOf(v.ID, locationsOf(r)...) {
		if o.Instance == "" {
			continue
		}
		errs = append(errs, e.bury(o.ForgottenVolume))
		e.note(drivebay.EventVolumeLeft, v, fmt.Sprintf("%s has another volume with the id of this one (%s): it comes from before, is not used, and is never what a request for volume %q gets", o.drive, o.Instance, v.Name))
	}
	return errors.Join(errs...)
}
