package watch

import (
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Observations holds everything but the drives that the facts of a volume are made of, in a
// form that is cheap to compare: most ticks find nothing new.
type Observations struct {
	Record   *drivebay.VolumeRecord
	drives   uint64 // the newest change of one of its drives
	complete bool
	gone     bool
	smaller  string
	lvm      *partitions.LVMIndex
	lvmLate  string            // why LVM's report is too old to trust
	Scrubbed bool              // at the moment
	Progress drivebay.Progress // of its copy or wipe; zero: neither is under way
	Mounts   *drivebay.MountFacts
	fs       observedFS
	io       observedIO
	layout   string // of its drives, where table and kernel differ
	blocked  string // why it does not move
	instead  string // what its drive has in place of its filesystem or header
	unseen   bool   // it should be mounted, and the mount table is not read

	replication drivebay.ReplicationInfo
}

type observedFS struct {
	errors             uint64
	readOnly, shutdown bool
	gaveUp             bool // while it is mounted, by the kernel's log
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

// Observe gathers what is known about a volume. It uses no drive, no file and no program: the
// kernel's counters are in the snapshot, the rest was measured before.
func (e *Watcher) Observe(r *drivebay.VolumeRecord, s *drivebay.Snapshot, staged *StagedFS, was *ShownVolume, index uint64) Observations {
	v := &r.Volume
	k := Observations{Record: r, complete: s.Complete}
	if v.Location.OnLVM() {
		k.lvm, k.lvmLate, k.blocked = e.Groups.LVMNow(), e.Groups.LVMLate(), e.Groups.BlockedMove(v.Location.VG)
	} else {
		k.blocked = e.Moves.Moves.Blocked(v.ID)
	}
	k.unseen = len(v.Publications) > 0 && e.mountsLate()
	if v.Replicates() {
		k.replication = e.Replications.now(v)
	}
	m := e.Mounts.Counters.Of(v.ID).Read()
	k.io = observedIO{frozen: m.Waiting(e.Machine.Now()), readError: m.ReadError}
	k.fs = observedFS{measured: m.Measured, usage: m.Usage, shutdown: m.Shutdown, scrub: r.Scrub, errors: max(r.FSErrors, m.FSErrors)}
	if len(v.Publications) == 0 {
		k.instead = m.Overwritten
	}
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
	}
	if e.Machine.Now().Sub(m.LostAt) <= lostFor {
		k.io.errors, k.io.logged = max(k.io.errors, m.LostWrites), max(k.io.logged, m.LostWrites)
	}
	if staged != nil {
		k.fs.gaveUp = m.Shutdown || m.GaveUp
		if n, counted := e.fsErrors(v, staged); counted {
			k.fs.errors = n
		}
	}
	if was != nil && was.Known.Record == r && was.Index == index && was.Known.drives == k.drives && was.Known.lvm == k.lvm {
		k.gone, k.smaller, k.layout = was.Known.gone, was.Known.smaller, was.Known.layout
	} else {
		k.gone, k.smaller = e.Groups.Gone(v) || e.Groups.Elsewhere(v), e.Groups.Smaller(v)
		for _, id := range v.Location.Drives {
			k.layout += e.Partitions.LayoutOf(id)
		}
	}
	if staged != nil && !staged.readOnly {
		k.fs.readOnly = m.GaveUp && !m.Shutdown || staged.turnedReadOnly(e.LastMounts)
	}
	k.io.frozen = k.io.frozen.Truncate(time.Second)
	return k
}

// mountsLate reports whether the mount table was not read for so long that mounts may have gone unnoticed.
func (e *Watcher) mountsLate() bool {
	return e.LastMounts == nil || e.Machine.Now().Sub(e.LastMounts.At()) >= mounts.InFlux
}

// Problems returns what of the volumes cannot be read at present.
func (e *Watcher) Problems() []string {
	switch {
	case !e.mountsLate():
		return nil
	case e.LastMounts == nil:
		return []string{"mount table: it cannot be read: whether the volumes are mounted is not known"}
	}
	return []string{"mount table: not read since " + e.LastMounts.At().UTC().Format(time.RFC3339) + ": whether the volumes are mounted is not known"}
}

// Operational returns the operational status of a volume whose facts have a status: whether one that should
// be mounted can be used is not known while the mount table is not read.
func (k Observations) Operational(is drivebay.OperationalStatus) drivebay.OperationalStatus {
	if k.unseen && is == drivebay.Operative {
		return drivebay.OperationalUnknown
	}
	return is
}

// badSectors counts the sectors of a volume that one of its drives cannot read.
func (e *Watcher) badSectors(v *drivebay.Volume, drive string) uint64 {
	seen := e.seenDrives[drive]
	if seen == nil || seen.drive == nil || seen.drive.Kernel == nil || len(seen.drive.Kernel.BadSectors) == 0 {
		return 0
	}
	n, ranges := uint64(0), e.RangesOn(v, drive)
	for _, sector := range seen.drive.Kernel.BadSectors {
		if slices.ContainsFunc(ranges, func(r DataRange) bool { return r.holds(sector*512, v.Location.OnLVM()) }) {
			n++
		}
	}
	return n
}

// StagedFS is the mount of a staged filesystem, computed once for each record.
type StagedFS struct {
	at       mounts.MountPath
	made     mounttable.Device
	readOnly bool // because the caller requested it
	since    time.Time
	writers  []string // targets of the pods that may write

	of     *mounttable.MountSet // the mounts that turned was computed for
	turned bool
}

// StagedFS returns the staged filesystem of a volume; nil if it is not staged.
func (e *Watcher) StagedFS(v *drivebay.Volume) *StagedFS {
	p := mirror.StagedAt(v)
	if p == nil || !v.HasFilesystem() {
		return nil
	}
	at, err := e.Mounts.CheckPath(p.Path)
	if err != nil { // the roots have changed since
		return nil
	}
	s := &StagedFS{at: at, made: inventory.MadeOf(*p), readOnly: p.ReadOnly, since: p.Since}
	for _, p := range v.Publications {
		if at, err := e.Mounts.CheckPath(p.Path); err == nil && !p.Staging && !p.ReadOnly {
			s.writers = append(s.writers, at.Target)
		}
	}
	return s
}

// turnedReadOnly reports whether a filesystem that the engine mounted for writing cannot be
// written to any more, or not at the path of a pod: the kernel made it read-only, or another program remounted it.
func (s *StagedFS) turnedReadOnly(t *mounttable.MountTable) bool {
	if t == nil {
		return false
	}
	if s.of != t.MountSet {
		m, ok := s.in(t)
		s.of, s.turned = t.MountSet, ok && (mounttable.KernelMadeReadOnly(m) || mounttable.IsReadOnly(m)) || slices.ContainsFunc(s.writers, func(target string) bool {
			m, ok := t.Top(target)
			return ok && mounttable.Carries(m, s.made) && mounttable.IsReadOnly(m)
		})
	}
	return s.turned
}

// in returns the mount in a table, if it is what is seen there.
func (s *StagedFS) in(t *mounttable.MountTable) (host.Mount, bool) {
	if t == nil {
		return host.Mount{}, false
	}
	m, ok := t.Top(s.at.Target)
	if _, hidden := t.Above(s.at.Target); hidden {
		return host.Mount{}, false
	}
	return m, ok && mounttable.Carries(m, s.made)
}

// countedAfter is how long after a mount no count of errors is believed: the newest one, which is some seconds old, may
// be of what was mounted from a device of that name before.
const countedAfter = 30 * time.Second

// fsErrors returns how many errors a volume's filesystem has counted. The kernel shows it only while the
// filesystem is mounted.
func (e *Watcher) fsErrors(v *drivebay.Volume, staged *StagedFS) (n uint64, counted bool) {
	if age := e.Machine.Now().Sub(staged.since); age >= 0 && age < countedAfter { // below 0 the clock was set back
		return 0, false
	}
	for _, id := range v.Location.Drives {
		seen := e.seenDrives[id]
		if seen == nil || seen.drive == nil || seen.drive.Kernel == nil {
			continue
		}
		for _, f := range seen.drive.Kernel.Filesystems {
			if f.Device == staged.made.Name {
				n, counted = max(n, f.Errors), true
			}
		}
	}
	return n, counted
}

// FactsOf makes the facts from observations.
func (e *Watcher) FactsOf(k Observations, s *drivebay.Snapshot) drivebay.Facts {
	v := k.Record.Volume
	f := drivebay.Facts{Volume: v, Drives: []drivebay.Drive{}, Complete: k.complete, Gone: k.gone, Smaller: k.smaller, Overwritten: k.instead, MoveBlocked: k.blocked, LV: e.Groups.LVFacts(&v), Mount: k.Mounts}
	if k.replication != (drivebay.ReplicationInfo{}) {
		f.Replication = &k.replication
	}
	for _, id := range v.Location.Drives {
		if d, ok := steps.DriveOf(s, id); ok {
			f.Drives = append(f.Drives, *d)
		}
		if issue := e.Partitions.LayoutOf(id); issue != "" {
			if f.Layouts == nil {
				f.Layouts = map[string]string{}
			}
			f.Layouts[id] = issue
		}
	}
	if k.Mounts != nil && k.Mounts.Staging != nil && k.Mounts.Staging.Dead { // what was read there was the device that is gone
		k.io.readError = ""
	}
	f.IO = &drivebay.IOFacts{Frozen: k.io.frozen, Await: k.io.await, Errors: k.io.errors, ReadError: k.io.readError,
		Unreadable: k.io.unreadable, UnreadableOn: strings.Fields(k.io.unreadableOn)}
	if v.HasFilesystem() {
		f.FS = &drivebay.FSFacts{Errors: k.fs.errors, ReadOnly: k.fs.readOnly, Shutdown: k.fs.shutdown, Scrub: k.fs.scrub, Full: e.Opt.FullPercent}
		if u := k.fs.usage; k.fs.measured {
			f.FS.Bytes, f.FS.Free, f.FS.Reserved = &u.Bytes, &u.Available, u.Free-min(u.Free, u.Available)
			if u.Inodes > 0 {
				f.FS.Inodes, f.FS.FreeInodes = &u.Inodes, &u.FreeInodes
			}
		}
	}
	return f
}

// MountsOf returns the current mount facts of a volume. settled: no operation runs on the volume, and
// none ran since the mount table was read.
func (e *Watcher) MountsOf(was mounts.MountView, k Observations, index uint64, settled bool) mounts.MountView {
	v, now := &k.Record.Volume, e.Machine.Now()
	if e.LastMounts == nil {
		return mounts.MountView{At: now}
	}
	of := mounts.MountInputs{Record: k.Record, Table: e.LastMounts.MountSet, LVM: k.lvm, Index: index, Drives: k.drives}
	age := now.Sub(was.At)
	switch {
	case of == was.Of && age < mounts.MountsAgain:
		return was
	case len(v.Publications) == 0 && len(e.LastMounts.NamedAfter(v.ID)) == 0:
		return mounts.MountView{Of: of, At: now}
	case !settled && age < mounts.InFlux && !mounts.Readopted(was.Of.Record, k.Record):
		return was.Kept(k.Record)
	}
	s := e.Mounts.MountStateIn(*v, e.LastMounts)
	paths := make([]drivebay.PathFacts, len(v.Publications))
	for i, p := range v.Publications {
		paths[i] = s.MountedAt(p, was)
	}
	return was.Next(append(paths, s.Abandoned()...), of, now)
}

// ShownVolume is a volume as it was published, and what that was computed from.
type ShownVolume struct {
	Known  Observations
	Index  uint64 // how often the partitions and layouts of drives had changed
	Mounts mounts.MountView
	Staged *StagedFS // nil: not staged
	View   *drivebay.VolumeView
}
