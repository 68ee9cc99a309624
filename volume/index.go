package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// device is a block device, such as that of a volume.
type device struct {
	dev  string // "/dev/sda1", "/dev/dm-3"
	num  string // "8:1"
	name string // in sysfs
	size uint64 // bytes
}

// part is a partition as the kernel has it.
type part struct {
	device
	number int
	start  uint64 // bytes
	title  string // in the GPT; "" while the kernel does not know it
	guid   string // likewise
	kind   string // its type; "" while the table was not read
}

// index holds what the last listing found on the drives, by drive id. Its maps are replaced, never
// changed.
type index struct {
	parts   map[string][]part // in order of their start; a drive that could not be listed is not in it
	changes uint64            // of parts
	lvm     *lvmIndex
	// lvmError is why the newest report of LVM could not be made; lvm is an older one.
	lvmError string
}

// listVolumes lists the volumes on the drives of a snapshot, and adopts those that are in no record.
func (e *Engine) listVolumes(ctx context.Context, s *drivebay.Snapshot) error {
	e.mu.Lock()
	before := maps.Clone(e.listings)
	e.mu.Unlock()
	parts, failed := e.listAll(ctx, s)
	e.mu.Lock()
	for id, n := range e.listings { // what was listed since we began is newer
		if list, there := e.index.parts[id]; there && n != before[id] {
			parts[id] = list
			delete(failed, id)
		}
	}
	if !maps.EqualFunc(e.index.parts, parts, slices.Equal) {
		e.index.changes++
	}
	e.index.parts = parts
	e.dropUnknown(s)
	e.mu.Unlock()
	lvmErr := e.readLVMReport(ctx, s)
	errs := append(listErrors(failed), lvmErr, e.findBlankPVs(ctx, s), e.adopt(ctx, s), e.watchMirrors(ctx, s))
	e.noteRead(ctx, s, failed, lvmErr == nil)
	return errors.Join(errs...)
}

// dropUnknown drops what is kept of drives that the snapshot does not have. Engine.mu is held.
func (e *Engine) dropUnknown(s *drivebay.Snapshot) {
	known := map[string]bool{}
	for _, d := range s.Drives {
		known[d.ID] = true
	}
	dropOthers(e.tables, known)
	before := len(e.layouts)
	if dropOthers(e.layouts, known); len(e.layouts) != before {
		e.index.changes++
	}
	dropOthers(e.listings, known)
	dropOthers(e.summaries, known)
}

func dropOthers[T any](m map[string]T, known map[string]bool) {
	maps.DeleteFunc(m, func(id string, _ T) bool { return !known[id] })
}

// relistDrive lists one drive again, after a change to it.
func (e *Engine) relistDrive(ctx context.Context, d *drivebay.Drive) error {
	list, err := e.partsOf(ctx, d)
	if err != nil {
		return fmt.Errorf("drive %s: partitions: %w", d.ID, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	parts := make(map[string][]part, len(e.index.parts)+1)
	for id, p := range e.index.parts {
		parts[id] = p
	}
	parts[d.ID] = list
	e.index.parts = parts
	e.index.changes++
	e.listings[d.ID]++
	delete(e.summaries, d.ID)
	return nil
}

// device returns the device of a volume; it touches no drive. It compares the index with sysfs: a drive
// may have gone and another have its name.
func (e *Engine) device(v *drivebay.Volume) (device, error) {
	if v.Location.VG != "" {
		return e.lvDevice(v)
	}
	p, ok := e.partition(v)
	if !ok {
		return device{}, fmt.Errorf("volume %s: partition %s: %w", v.ID, v.Location.Partition, e.notHere(v))
	}
	if ambiguous(e.partsOn(v.Location.Drives[0]), p) {
		return device{}, fmt.Errorf("volume %s: drive %s: %w", v.ID, v.Location.Drives[0], away("it has two partitions named %s, and which one is meant is not read yet", p.title))
	}
	at := "sys/dev/block/" + p.num
	start, err := readNumber(e.machine, at+"/start")
	size, err2 := readNumber(e.machine, at+"/size")
	title, guid := labelOf(e.machine, at, p.num)
	if errors.Join(err, err2) != nil || start*512 != p.start || size*512 < p.size || (title != "" && title != p.title) || !sameGUID(guid, p.guid) {
		return device{}, fmt.Errorf("volume %s: partition %s: %w: device %s is another now", v.ID, v.Location.Partition, drivebay.ErrNotFound, p.num)
	}
	p.size = size * 512
	return p.device, nil
}

// partsOn returns the partitions of a drive, as last listed.
func (e *Engine) partsOn(drive string) []part {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.index.parts[drive]
}

// partition returns the partition of a volume, as last listed.
func (e *Engine) partition(v *drivebay.Volume) (part, bool) {
	if len(v.Location.Drives) == 0 {
		return part{}, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.listed(v)
}

// listed is partition for a caller that holds Engine.mu. A partition that is being copied to has another
// name.
func (e *Engine) listed(v *drivebay.Volume) (part, bool) {
	parts := e.index.parts[v.Location.Drives[0]]
	if r := e.records[v.ID]; r != nil && r.Work != nil && r.Work.Move != nil && v.Location.Partition == r.Work.Move.To.Partition {
		if p, ok := instanced(parts, r.Work.Move.Name, v.Location.Partition); ok {
			return p, true
		}
		if r.Volume.Location.Partition != v.Location.Partition {
			return part{}, false // a partition with the volume's name there is not the target
		}
	}
	title := partitionName(v.ID)
	if r := e.records[v.ID]; r != nil && moveOf(r) != nil && v.Location.Partition == moveOf(r).From.Partition {
		title = cmp.Or(moveOf(r).OldName, title)
	}
	return instanced(parts, title, v.Location.Partition)
}

// instanced returns the partition of a name and a GUID. One whose GUID is not known is found by its name,
// only to be read: the table is read before anything is written.
func instanced(parts []part, title, guid string) (part, bool) {
	if i := slices.IndexFunc(parts, func(p part) bool { return p.title == title && p.guid != "" && strings.EqualFold(p.guid, guid) }); i >= 0 {
		return parts[i], true
	}
	if i := slices.IndexFunc(parts, func(p part) bool { return p.title == title && sameGUID(p.guid, guid) }); i >= 0 {
		return parts[i], true
	}
	return part{}, false
}

// ambiguous reports whether a partition was found by its name alone, and another one of its drive has that
// name: a move within the drive leaves two for a while.
func ambiguous(parts []part, p part) bool {
	return p.guid == "" && slices.ContainsFunc(parts, func(q part) bool { return q.title == p.title && q.number != p.number })
}

func sameGUID(a, b string) bool { return a == "" || b == "" || strings.EqualFold(a, b) }

func named(parts []part, title string) (part, bool) {
	if i := slices.IndexFunc(parts, func(p part) bool { return p.title == title }); i >= 0 {
		return parts[i], true
	}
	return part{}, false
}

// activate makes the device of a volume appear.
func (e *Engine) activate(ctx context.Context, v *drivebay.Volume) (device, error) {
	if err := e.trusted(v.Location.Drives); err != nil {
		if d, err := e.device(v); err == nil && stagedAt(v) != nil && !e.untrusted(v.Location.Drives) { // a volume in use stays usable
			return d, nil
		}
		return device{}, fmt.Errorf("volume %s: %w", v.ID, err)
	}
	if v.Location.VG == "" {
		return e.device(v)
	}
	if e.activeLately(v.Location) {
		if d, err := e.device(v); err == nil {
			return d, nil
		}
	}
	appear := func() error { return e.lvmActivate(ctx, v.Location, e.appearing(v)) }
	if v.Location.Kind == drivebay.LocationMirror {
		appear = func() error { return e.activateMirror(ctx, v) }
	}
	if err := appear(); err != nil {
		return device{}, fmt.Errorf("volume %s: %w", v.ID, err)
	}
	return e.device(v)
}

// deactivateUnused deactivates a volume that is mounted nowhere. After the records are lost a pod may
// still use it; while the device is bound to the path of the pod and not open, LVM would deactivate it.
func (e *Engine) deactivateUnused(ctx context.Context, v *drivebay.Volume) error {
	mounts, err := e.mounted(ctx, v)
	switch {
	case err != nil && !errors.Is(err, drivebay.ErrNotFound):
		return err
	case len(mounts) > 0:
		return nil
	}
	return e.deactivate(ctx, v)
}

// deactivate removes the device of a volume that is a logical volume.
func (e *Engine) deactivate(ctx context.Context, v *drivebay.Volume) error {
	if v.Location.VG == "" {
		return nil
	}
	mirror := v.Location.Kind == drivebay.LocationMirror
	if mirror {
		x := e.lvmNow()
		if _, _, err := e.live(ctx, v, e.mirrorLegs(v.Location, x.group(v.Location.VG), x.reported())); err != nil {
			return fmt.Errorf("volume %s: %w", v.ID, err)
		}
	}
	if err := e.lvmActivate(ctx, v.Location, lvm.Deactivate(v.Location.VG, v.Location.LV)); err != nil {
		return fmt.Errorf("volume %s: %w", v.ID, err)
	}
	if mirror {
		return e.closed(v)
	}
	return nil
}

// gone reports whether a complete listing of the volume's drives lacks it.
func (e *Engine) gone(v *drivebay.Volume) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range v.Location.Drives {
		if _, listed := e.index.parts[id]; !listed || e.layouts[id].issue != "" {
			return false
		}
	}
	if e.shrank(v.Location.Drives) { // the kernel may reject a sound table
		return false
	}
	if v.Location.VG != "" {
		return e.lvGone(v.Location)
	}
	if len(v.Location.Drives) == 0 {
		return false
	}
	_, there := e.listed(v)
	return !there
}

// lvGone reports whether LVM's report lacks a logical volume. Each of its drives is in the report and can
// be read, for damage hides a volume and removes none, or has no partition of a physical volume any more.
// Engine.mu is held.
func (e *Engine) lvGone(l drivebay.Location) bool {
	x := e.index.lvm
	if len(l.Drives) == 0 || x != nil && lvOf(x.report, l) != nil {
		return false
	}
	return !slices.ContainsFunc(l.Drives, func(id string) bool {
		_, has := pvOn(e.index.parts[id])
		return has && (x == nil || x.pvs[id] == "" || x.unreadable(id) != "")
	})
}
