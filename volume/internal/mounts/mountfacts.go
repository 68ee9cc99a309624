package mounts

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// pathState is the state of a publication's path in the mount table.
type pathState uint8

const (
	PathEmpty    pathState = iota // nothing is mounted there
	PathLive                      // the volume's current device
	pathUnproven                  // the device that was mounted; the volume's device is not listed, and nothing proves that it is gone
	PathDead                      // the device that was mounted, which is gone
	PathForeign                   // something else
)

// StateOf compares one publication with the mount table.
func (s *VolumeMounts) StateOf(p drivebay.Publication, target string) (pathState, host.Mount) {
	m, mounted := s.T.Top(target)
	if !mounted {
		return PathEmpty, m
	}
	if above, hidden := s.T.Above(target); hidden {
		return PathForeign, above
	}
	was := s.madeOf(p, m)
	switch {
	case mounttable.Carries(m, s.D) && !renumbered(m, s.D, was) && !(p.ReadOnly && mounttable.IsUnlinked(m)): // a device that was made again can be written
		return PathLive, m
	case !mounttable.Carries(m, was):
		return PathForeign, m
	case mounttable.IsUnlinked(m), s.deviceGone(was): // the number may be another volume's by now
		return PathDead, m
	}
	return pathUnproven, m
}

// madeOf returns the device that a publication was made of. No mount survives a boot: one of an earlier boot says nothing of what is mounted,
// if the device of the volume is known. A btrfs shows only the name of its device, which may be that of one that is gone.
func (s *VolumeMounts) madeOf(p drivebay.Publication, m host.Mount) mounttable.Device {
	was := inventory.MadeOf(p)
	if s.D.Num == "" || was.Num == s.D.Num || m.FS == "btrfs" || p.Boot == "" {
		return was
	}
	if boot := s.Mirror.Boot(); boot != "" && p.Boot != boot {
		return mounttable.Device{}
	}
	return was
}

// renumbered reports whether a mount has only the name of a device, as mounts of a device node and of
// a btrfs do, and the device had another number when it was mounted: a drive that left and came back
// has the same name and another number.
func renumbered(m host.Mount, is, was mounttable.Device) bool {
	return m.DevNum != is.Num && was.Num != "" && was.Num != is.Num
}

// deviceGone reports whether a device that was mounted is not the volume any more: the volume has
// another device now, or the kernel has no such device, or has it above drives that are gone. A leg
// that does not answer proves nothing: a mirror may stand on it.
func (s *VolumeMounts) deviceGone(was mounttable.Device) bool {
	if s.D.Num != "" { // the kernel reuses device numbers; a device keeps its name
		return was.Num != s.D.Num || was.Name != "" && was.Name != s.D.Name
	}
	dir := "sys/dev/block/" + was.Num
	if _, err := s.Machine.ReadFile(dir + "/dev"); err != nil {
		return true
	}
	if s.V.Replicates() {
		below, _ := s.Machine.ReadDir(dir + "/slaves")
		if slices.ContainsFunc(below, func(name string) bool { return strings.HasPrefix(name, "drbd") }) {
			return false // DRBD has the data, from the peer where the drive is gone
		}
	}
	return strings.HasPrefix(was.Name, "dm-") && s.accounted() && !s.Device.StandsOn(s.V.Location, dir, s.Groups.StoodOn(&s.V))
}

// accounted reports whether each drive of the volume is here or known to be gone.
func (s *VolumeMounts) accounted() bool {
	drives := s.Drives.Snapshot()
	for _, id := range s.V.Location.Drives {
		d, ok := steps.DriveOf(drives, id)
		gone := drives.Complete && (!ok || d.Status == drivebay.StatusOffline)
		if !gone && !(mirror.DriveHere(drives, id) && s.Groups.HasPart(&s.V, id)) {
			return false
		}
	}
	return true
}

// pathFacts returns the state of a publication's path in the mount table.
func (s *VolumeMounts) pathFacts(p drivebay.Publication) drivebay.PathFacts {
	out, _ := s.factsOf(p)
	return out
}

// factsOf is pathFacts. proved is false for a mount of the device that was mounted, of which nothing says whether it is gone.
func (s *VolumeMounts) factsOf(p drivebay.Publication) (out drivebay.PathFacts, proved bool) {
	target := path.Clean(p.Path)
	if at, err := s.CheckPath(p.Path); err == nil { // else the roots have changed since
		target = at.Target
	}
	out.Path = p.Path
	state, m := s.StateOf(p, target)
	switch state {
	case PathLive, pathUnproven:
		out.Mounted = true
	case PathDead:
		out.Dead = true
	case PathForeign:
		out.Other = mounttable.What(m)
	}
	return out, state != pathUnproven
}

// MountedAt is pathFacts; a staged block volume is mounted nowhere, and counts as mounted unless it was locked since. A mount that was dead
// stays so until it is proved that its device is the volume's: a drive that is back proves nothing.
func (s *VolumeMounts) MountedAt(p drivebay.Publication, was MountView) drivebay.PathFacts {
	if s.stagedAsBlock(p) {
		locked := s.Device.Locked(&s.V) && p.Boot == s.Mirror.Boot()
		return drivebay.PathFacts{Path: p.Path, Mounted: !locked, Dead: locked}
	}
	out, proved := s.factsOf(p)
	if !proved && was.dead(p) {
		out.Mounted, out.Dead = false, true
	}
	return out
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

// MountView holds the mount facts of a volume and their inputs: equal inputs give equal facts.
type MountView struct {
	Facts *drivebay.MountFacts // nil: the volume is published nowhere, or no mount table was read yet
	paths []drivebay.PathFacts // of the record's publications, then abandoned ones
	Of    MountInputs
	At    time.Time
}

type MountInputs struct {
	Record *drivebay.VolumeRecord
	Table  *mounttable.MountSet
	LVM    *partitions.LVMIndex
	Index  uint64 // how often the partitions of the drives have changed
	Drives uint64
}

const (
	// MountsAgain is the maximum age of mount facts while their inputs are equal: a device may have
	// been removed by hand.
	MountsAgain = time.Minute
	// InFlux is how long a volume keeps its mount facts while an operation runs on it. Its record and
	// the mount table change one after the other. No mount takes longer.
	InFlux = 2 * time.Minute
)

// Readopted reports whether a record was replaced by that of a newer volume with its id, which was
// found on the drives. The publications of the record do not belong to that volume.
func Readopted(was, is *drivebay.VolumeRecord) bool {
	return was != nil && len(is.Volume.Publications) == 0 && instances.InstanceOf(was.Volume.Location) != instances.InstanceOf(is.Volume.Location)
}

// dead reports whether the mount of a publication was found dead.
func (was MountView) dead(p drivebay.Publication) bool {
	if was.Of.Record == nil {
		return false
	}
	i := slices.Index(was.Of.Record.Volume.Publications, p)
	return i >= 0 && i < len(was.paths) && was.paths[i].Dead
}

// Next returns a view of new paths. It keeps the previous facts if the paths are equal.
func (was MountView) Next(paths []drivebay.PathFacts, of MountInputs, at time.Time) MountView {
	switch {
	case len(paths) == 0:
		return MountView{Of: of, At: at}
	case slices.Equal(paths, was.paths) && was.Facts != nil:
		return MountView{was.Facts, was.paths, of, at}
	}
	return MountView{mountFacts(&of.Record.Volume, paths), paths, of, at}
}

// Kept returns the last facts of publications that have not changed. The engine itself has mounted
// what was published since.
func (was MountView) Kept(r *drivebay.VolumeRecord) MountView {
	if was.Of.Record == r {
		return was
	}
	var before []drivebay.Publication
	if was.Of.Record != nil {
		before = was.Of.Record.Volume.Publications
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
	return was.Next(paths, MountInputs{Record: r}, was.At)
}
