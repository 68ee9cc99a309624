package volume

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// pathState is the state of a publication's path in the mount table.
type pathState uint8

const (
	pathEmpty    pathState = iota // nothing is mounted there
	pathLive                      // the volume's current device
	pathUnproven                  // the device that was mounted; the volume's device is not listed, and nothing proves that it is gone
	pathDead                      // the device that was mounted, which is gone
	pathForeign                   // something else
)

// stateOf compares one publication with the mount table.
func (s *mountState) stateOf(p drivebay.Publication, target string) (pathState, host.Mount) {
	m, mounted := s.t.top(target)
	if !mounted {
		return pathEmpty, m
	}
	if above, hidden := s.t.above(target); hidden {
		return pathForeign, above
	}
	was := madeOf(p)
	switch {
	case carries(m, s.d) && !renumbered(m, s.d, was):
		return pathLive, m
	case !carries(m, was):
		return pathForeign, m
	case s.deviceGone(was):
		return pathDead, m
	}
	return pathUnproven, m
}

// renumbered reports whether a mount has only the name of a device, as mounts of a device node and of
// a btrfs do, and the device had another number when it was mounted: a drive that left and came back
// has the same name and another number.
func renumbered(m host.Mount, is, was device) bool {
	return m.DevNum != is.num && was.num != "" && was.num != is.num
}

// deviceGone reports whether a device that was mounted is not the volume any more: the volume has
// another device now, or the kernel has no such device, or has it above drives that are gone. A leg
// that does not answer proves nothing: a mirror may stand on it.
func (s *mountState) deviceGone(was device) bool {
	if s.d.num != "" { // the kernel reuses device numbers; a device keeps its name
		return was.num != s.d.num || was.name != "" && was.name != s.d.name
	}
	dir := "sys/dev/block/" + was.num
	if _, err := s.machine.ReadFile(dir + "/dev"); err != nil {
		return true
	}
	return strings.HasPrefix(was.name, "dm-") && s.accounted() && !s.standsOn(s.v.Location, dir, s.stoodOn(&s.v))
}

// accounted reports whether each drive of the volume is here or known to be gone.
func (s *mountState) accounted() bool {
	drives := s.drives.Snapshot()
	for _, id := range s.v.Location.Drives {
		d, ok := driveOf(drives, id)
		gone := drives.Complete && (!ok || d.Status == drivebay.StatusOffline)
		if !gone && !(driveHere(drives, id) && s.hasPart(&s.v, id)) {
			return false
		}
	}
	return true
}

// pathFacts returns the state of a publication's path in the mount table.
func (s *mountState) pathFacts(p drivebay.Publication) drivebay.PathFacts {
	target := path.Clean(p.Path)
	if at, err := s.checkPath(p.Path); err == nil { // else the roots have changed since
		target = at.target
	}
	out := drivebay.PathFacts{Path: p.Path}
	switch state, m := s.stateOf(p, target); state {
	case pathLive, pathUnproven:
		out.Mounted = true
	case pathDead:
		out.Dead = true
	case pathForeign:
		out.Other = what(m)
	}
	return out
}

// mountedAt is pathFacts, except for a staged block volume: it is mounted nowhere, and counts as
// mounted.
func (s *mountState) mountedAt(p drivebay.Publication) drivebay.PathFacts {
	if p.Staging && s.v.Mode != drivebay.ModeFS {
		return drivebay.PathFacts{Path: p.Path, Mounted: true}
	}
	return s.pathFacts(p)
}

// mountFacts returns what a condition needs of a volume's paths: of several targets the first that is
// not mounted. Paths beyond the publications are abandoned.
func mountFacts(v *drivebay.Volume, paths []drivebay.PathFacts) *drivebay.MountFacts {
	out := &drivebay.MountFacts{}
	for i, p := range v.Publications {
		at := &paths[i]
		switch {
		case p.Staging:
			out.Staging = at
		case out.Target == nil || out.Target.Mounted && !at.Mounted:
			out.Target = at
		}
	}
	if n := len(v.Publications); len(paths) > n && (out.Target == nil || out.Target.Mounted) {
		out.Target = &paths[n]
	}
	return out
}

// mountView holds the mount facts of a volume and their inputs: equal inputs give equal facts.
type mountView struct {
	facts *drivebay.MountFacts // nil: the volume is published nowhere, or no mount table was read yet
	paths []drivebay.PathFacts // of the record's publications, then abandoned ones
	of    mountInputs
	at    time.Time
}

type mountInputs struct {
	record *drivebay.VolumeRecord
	table  *mountSet
	lvm    *lvmIndex
	index  uint64 // how often the partitions of the drives have changed
	drives uint64
}

const (
	// mountsAgain is the maximum age of mount facts while their inputs are equal: a device may have
	// been removed by hand.
	mountsAgain = time.Minute
	// inFlux is how long a volume keeps its mount facts while an operation runs on it. Its record and
	// the mount table change one after the other. No mount takes longer.
	inFlux = 2 * time.Minute
)

// mountsOf returns the current mount facts of a volume. settled: no operation runs on the volume, and
// none ran since the mount table was read.
func (e *Engine) mountsOf(was mountView, k observations, index uint64, settled bool) mountView {
	v, now := &k.record.Volume, e.machine.Now()
	if e.lastMounts == nil {
		return mountView{at: now}
	}
	of := mountInputs{k.record, e.lastMounts.mountSet, k.lvm, index, k.drives}
	age := now.Sub(was.at)
	switch {
	case of == was.of && age < mountsAgain:
		return was
	case len(v.Publications) == 0 && len(e.lastMounts.namedAfter(v.ID)) == 0:
		return mountView{of: of, at: now}
	case !settled && age < inFlux && !readopted(was.of.record, k.record):
		return was.kept(k.record)
	}
	s := e.mountStateIn(*v, e.lastMounts)
	paths := make([]drivebay.PathFacts, len(v.Publications))
	for i, p := range v.Publications {
		paths[i] = s.mountedAt(p)
	}
	return was.next(append(paths, s.abandoned()...), of, now)
}

// readopted reports whether a record was replaced by that of a newer volume with its id, which was
// found on the drives. The publications of the record do not belong to that volume.
func readopted(was, is *drivebay.VolumeRecord) bool {
	return was != nil && len(is.Volume.Publications) == 0 && instanceOf(was.Volume.Location) != instanceOf(is.Volume.Location)
}

// next returns a view of new paths. It keeps the previous facts if the paths are equal.
func (was mountView) next(paths []drivebay.PathFacts, of mountInputs, at time.Time) mountView {
	switch {
	case len(paths) == 0:
		return mountView{of: of, at: at}
	case slices.Equal(paths, was.paths) && was.facts != nil:
		return mountView{was.facts, was.paths, of, at}
	}
	return mountView{mountFacts(&of.record.Volume, paths), paths, of, at}
}

// kept returns the last facts of publications that have not changed. The engine itself has mounted
// what was published since.
func (was mountView) kept(r *drivebay.VolumeRecord) mountView {
	if was.of.record == r {
		return was
	}
	var before []drivebay.Publication
	if was.of.record != nil {
		before = was.of.record.Volume.Publications
	}
	paths := make([]drivebay.PathFacts, len(r.Volume.Publications))
	for i, p := range r.Volume.Publications {
		paths[i] = drivebay.PathFacts{Path: p.Path, Mounted: true}
		if j := slices.Index(before, p); j >= 0 {
			paths[i] = was.paths[j]
		}
	}
	for _, p := range was.paths[min(len(before), len(was.paths)):] { // abandoned
		if !slices.ContainsFunc(r.Volume.Publications, func(q drivebay.Publication) bool { return q.Path == p.Path }) {
			paths = append(paths, p)
		}
	}
	return was.next(paths, mountInputs{record: r}, was.at)
}
