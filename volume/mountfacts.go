package volume

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// pathState is what the mount table has at a path where a volume was mounted.
type pathState uint8

const (
	pathEmpty    pathState = iota // nothing is mounted there
	pathLive                      // the volume's device of now
	pathUnproven                  // the device that was mounted; the volume's device is not listed now, and nothing says that it is gone
	pathDead                      // the device that was mounted, which is gone
	pathForeign                   // something else
)

// stateOf holds one publication against the mount table.
func (s *scene) stateOf(p drivebay.Publication, target string) (pathState, host.Mount) {
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

// renumbered says that a mount is known by the name of a device only, as those of a device
// node and of a btrfs are, and that the device had another number when it was made: a drive
// that left and came back has the same name and another number.
func renumbered(m host.Mount, is, was device) bool {
	return m.DevNum != is.num && was.num != "" && was.num != is.num
}

// deviceGone says that a device that was mounted is not the volume any more: the volume has
// another device now, or the kernel has no such device, or has it above drives that
// are gone. A mirror may stand on a leg that does not answer: that proves nothing.
func (s *scene) deviceGone(was device) bool {
	if s.d.num != "" {
		return was.num != s.d.num
	}
	dir := "sys/dev/block/" + was.num
	if _, err := s.machine.ReadFile(dir + "/dev"); err != nil {
		return true
	}
	return strings.HasPrefix(was.name, "dm-") && s.accounted() && !s.standsOn(s.v.Location, dir, s.stoodOn(&s.v))
}

// accounted says that each drive of the volume is here or known to be gone.
func (s *scene) accounted() bool {
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

// pathFacts is what the mount table says of a publication.
func (s *scene) pathFacts(p drivebay.Publication) drivebay.PathFacts {
	target := path.Clean(p.Path)
	if at, err := s.spot(p.Path); err == nil { // else the roots have changed since
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

// mountedAt is what a publication is by the mount table: a block volume that is staged
// is mounted nowhere.
func (s *scene) mountedAt(p drivebay.Publication) drivebay.PathFacts {
	if p.Staging && s.v.Mode != drivebay.ModeFS {
		return drivebay.PathFacts{Path: p.Path, Mounted: true}
	}
	return s.pathFacts(p)
}

// mountFacts are what a condition needs of the publications of a volume: of several
// targets the first that is not mounted.
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
	return out
}

// mountView is the mount facts of a volume, and what they were worked out from: while
// that is the same, so are they.
type mountView struct {
	facts *drivebay.MountFacts // nil: it is published nowhere, or no mount table was read yet
	paths []drivebay.PathFacts // of the publications of the record
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
	// mountsAgain is how old mount facts may become while nothing seems to change:
	// somebody may have removed a device by hand.
	mountsAgain = time.Minute
	// inFlux is how long a volume that is worked on keeps its last mount facts. Its
	// record and the mount table change one after the other. No mount takes longer.
	inFlux = 2 * time.Minute
)

// mountsOf are the mount facts of a volume now. Settled says that nothing is being
// done to the volume, and was not since the mount table was read.
func (e *Engine) mountsOf(was mountView, k known, index uint64, settled bool) mountView {
	v, now := &k.record.Volume, e.machine.Now()
	if len(v.Publications) == 0 || e.round == nil {
		return mountView{at: now}
	}
	of := mountInputs{k.record, e.round.mountSet, k.lvm, index, k.drives}
	age := now.Sub(was.at)
	switch {
	case of == was.of && age < mountsAgain:
		return was
	case !settled && age < inFlux:
		return was.kept(k.record)
	}
	s := e.sceneOn(*v, e.round)
	paths := make([]drivebay.PathFacts, len(v.Publications))
	for i, p := range v.Publications {
		paths[i] = s.mountedAt(p)
	}
	return was.next(paths, of, now)
}

// next has the same facts as before where they say the same.
func (was mountView) next(paths []drivebay.PathFacts, of mountInputs, at time.Time) mountView {
	if slices.Equal(paths, was.paths) && was.facts != nil {
		return mountView{was.facts, was.paths, of, at}
	}
	return mountView{mountFacts(&of.record.Volume, paths), paths, of, at}
}

// kept are the last facts for those publications that are as they were. What was
// published since was mounted by the engine itself.
func (was mountView) kept(r *drivebay.VolumeRecord) mountView {
	if was.of.record == r {
		return was
	}
	paths := make([]drivebay.PathFacts, len(r.Volume.Publications))
	for i, p := range r.Volume.Publications {
		paths[i] = drivebay.PathFacts{Path: p.Path, Mounted: true}
		if was.of.record == nil {
			continue
		}
		if j := slices.Index(was.of.record.Volume.Publications, p); j >= 0 {
			paths[i] = was.paths[j]
		}
	}
	return was.next(paths, mountInputs{record: r}, was.at)
}
