package volume

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// observations holds everything but the drives that the facts of a volume are made of, in a
// form that is cheap to compare: most ticks find nothing new.
type observations struct {
	record   *drivebay.VolumeRecord
	drives   uint64 // the newest change of one of its drives
	complete bool
	gone     bool
	lvm      *lvmIndex
	lvmLate  string // why LVM's report is too old to trust
	scrubbed bool   // at the moment
	mounts   *drivebay.MountFacts
	fs       observedFS
	io       observedIO
	layout   string // of its drives, where table and kernel differ
}

type observedFS struct {
	errors             uint64
	readOnly, shutdown bool
	measured           bool
	usage              host.FSUsage
	scrub              *drivebay.Scrub
}

type observedIO struct {
	frozen, await time.Duration
	errors        uint64 // whose cause is not proved gone
	logged        uint64 // within a day
	unreadable    uint64 // sectors of the volume with a medium error
	unreadableOn  string // the drives of those
	readError     string
}

// observe gathers what is known about a volume. It uses no drive, no file and no program: the
// kernel's counters are in the snapshot, the rest was measured before.
func (e *Engine) observe(r *drivebay.VolumeRecord, s *drivebay.Snapshot, staged *stagedFS, was *shownVolume, index uint64) observations {
	v := &r.Volume
	k := observations{record: r, complete: s.Complete}
	if v.Location.VG != "" {
		k.lvm, k.lvmLate = e.lvmNow(), e.lvmLate()
	}
	m := e.counters.of(v.ID).read()
	k.io = observedIO{frozen: m.waiting(e.machine.Now()), readError: m.readError}
	k.fs = observedFS{measured: m.measured, usage: m.usage, shutdown: m.shutdown, scrub: r.Scrub}
	for _, id := range v.Location.Drives {
		seen := e.seenDrives[id]
		if seen == nil {
			continue
		}
		k.drives = max(k.drives, seen.changed)
		k.io.frozen, k.io.await = max(k.io.frozen, seen.io.frozen), max(k.io.await, seen.io.await)
		k.io.errors, k.io.logged = k.io.errors+seen.io.errors, k.io.logged+seen.io.logged
		if n := e.badSectors(v, id); n > 0 {
			k.io.unreadable += n
			k.io.unreadableOn = strings.TrimSpace(k.io.unreadableOn + " " + id)
		}
		if staged != nil && seen.drive != nil && seen.drive.Kernel != nil {
			k.fs.errors = max(k.fs.errors, fsErrors(seen.drive.Kernel, staged.made.name))
		}
	}
	if was != nil && was.known.record == r && was.index == index && was.known.drives == k.drives && was.known.lvm == k.lvm {
		k.gone, k.layout = was.known.gone, was.known.layout
	} else {
		k.gone = e.gone(v)
		for _, id := range v.Location.Drives {
			k.layout += e.layoutOf(id)
		}
	}
	if staged != nil && !staged.readOnly {
		k.fs.readOnly = m.gaveUp || staged.turnedReadOnly(e.lastMounts)
	}
	k.io.frozen = k.io.frozen.Truncate(time.Second)
	return k
}

// badSectors counts the sectors of a volume that one of its drives cannot read.
func (e *Engine) badSectors(v *drivebay.Volume, drive string) uint64 {
	seen := e.seenDrives[drive]
	if seen == nil || seen.drive == nil || seen.drive.Kernel == nil || len(seen.drive.Kernel.BadSectors) == 0 {
		return 0
	}
	n, ranges := uint64(0), e.rangesOn(v, drive)
	for _, sector := range seen.drive.Kernel.BadSectors {
		if slices.ContainsFunc(ranges, func(r dataRange) bool { return r.holds(sector*512, v.Location.VG != "") }) {
			n++
		}
	}
	return n
}

// stagedFS is the mount of a staged filesystem, computed once for each record.
type stagedFS struct {
	at       mountPath
	made     device
	readOnly bool // because the caller requested it

	of     *mountSet // the mounts that turned was computed for
	turned bool
}

func (e *Engine) stagedFS(v *drivebay.Volume) *stagedFS {
	p := stagedAt(v)
	if p == nil || v.Mode != drivebay.ModeFS {
		return nil
	}
	at, err := e.checkPath(p.Path)
	if err != nil { // the roots have changed since
		return nil
	}
	return &stagedFS{at: at, made: madeOf(*p), readOnly: p.ReadOnly}
}

// turnedReadOnly reports whether a filesystem that the engine mounted for writing cannot be
// written to any more: the kernel made it read-only, or another program remounted it.
func (s *stagedFS) turnedReadOnly(t *mountTable) bool {
	if t == nil {
		return false
	}
	if s.of != t.mountSet {
		m, ok := s.in(t)
		s.of, s.turned = t.mountSet, ok && (kernelMadeReadOnly(m) || isReadOnly(m))
	}
	return s.turned
}

// in returns the mount in a table, if it is what is seen there.
func (s *stagedFS) in(t *mountTable) (host.Mount, bool) {
	if t == nil {
		return host.Mount{}, false
	}
	m, ok := t.top(s.at.target)
	if _, hidden := t.above(s.at.target); hidden {
		return host.Mount{}, false
	}
	return m, ok && carries(m, s.made)
}

func stagedAt(v *drivebay.Volume) *drivebay.Publication {
	i := slices.IndexFunc(v.Publications, func(p drivebay.Publication) bool { return p.Staging })
	if i < 0 {
		return nil
	}
	return &v.Publications[i]
}

// fsErrors returns a filesystem's error count of a device.
func fsErrors(k *drivebay.Kernel, name string) uint64 {
	for _, f := range k.Filesystems {
		if f.Device == name {
			return f.Errors
		}
	}
	return 0
}

func (e *Engine) lvmNow() *lvmIndex {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.index.lvm
}

// lvmLate returns since when LVM has made no report; "" while the newest is new enough.
func (e *Engine) lvmLate() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.index.lvm.unknownSince(e.machine.Now(), e.index.lvmError)
}

// factsOf makes the facts from observations.
func (e *Engine) factsOf(k observations, s *drivebay.Snapshot) drivebay.Facts {
	v := k.record.Volume
	f := drivebay.Facts{Volume: v, Drives: []drivebay.Drive{}, Complete: k.complete, Gone: k.gone, LV: e.lvFacts(&v), Mount: k.mounts}
	for _, id := range v.Location.Drives {
		if d, ok := driveOf(s, id); ok {
			f.Drives = append(f.Drives, *d)
		}
		if issue := e.layoutOf(id); issue != "" {
			if f.Layouts == nil {
				f.Layouts = map[string]string{}
			}
			f.Layouts[id] = issue
		}
	}
	f.IO = &drivebay.IOFacts{Frozen: k.io.frozen, Await: k.io.await, Errors: k.io.errors, ReadError: k.io.readError,
		Unreadable: k.io.unreadable, UnreadableOn: strings.Fields(k.io.unreadableOn)}
	if v.Mode == drivebay.ModeFS {
		f.FS = &drivebay.FSFacts{Errors: k.fs.errors, ReadOnly: k.fs.readOnly, Shutdown: k.fs.shutdown, Scrub: k.fs.scrub, Full: e.opt.FullPercent}
		if u := k.fs.usage; k.fs.measured {
			f.FS.Bytes, f.FS.Free, f.FS.Reserved = &u.Bytes, &u.Available, u.Free-min(u.Free, u.Available)
			if u.Inodes > 0 {
				f.FS.Inodes, f.FS.FreeInodes = &u.Inodes, &u.FreeInodes
			}
		}
	}
	return f
}

// driveOf finds a drive by its id; a snapshot has its drives in the order of their ids.
func driveOf(s *drivebay.Snapshot, id string) (*drivebay.Drive, bool) {
	i := sort.Search(len(s.Drives), func(i int) bool { return s.Drives[i].ID >= id })
	if i == len(s.Drives) || s.Drives[i].ID != id {
		return nil, false
	}
	return &s.Drives[i], true
}
