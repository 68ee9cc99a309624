package lvm

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/drivebay/drivebay"
)

// Sizes in groups that we make. The default metadata area of 1 MiB is full at about
// 1,700 volumes; data begins at a whole MiB, as partitions do.
const (
	metadataSize  = "16m"
	dataAlignment = "1m"
	ExtentSize    = 4 << 20
)

// NewPV is a physical volume to be made: its UUID (NewPVUUID) and the device node of its
// drive ("/dev/sdb").
type NewPV struct{ UUID, Device string }

// CreateGroup plans a group on blank drives.
func CreateGroup(name string, tags []string, pvs ...NewPV) ([]Step, error) {
	if err := checkName("volume group", name); err != nil {
		return nil, err
	}
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	if len(pvs) == 0 {
		return nil, fmt.Errorf("volume group %s: %w: a drive is required", name, drivebay.ErrInvalid)
	}
	steps, uuids := makePVs(name, pvs)
	return append(steps, Step{
		Name: "create volume group " + name,
		Argv: command([]string{"vgcreate", "--setautoactivation", "n", "--physicalextentsize", strconv.Itoa(ExtentSize) + "b"},
			tagArgs(slices.Concat([]string{Tag}, tags)...), []string{name}, pvArgs(uuids)),
		Done:   func(r *Report) bool { return hasPhysicalVolumes(r, name, uuids) },
		Labels: pvArgs(uuids),
	}), nil
}

// ExtendGroup plans to add blank drives to a group.
func ExtendGroup(name string, pvs ...NewPV) []Step {
	steps, _ := makePVs(name, pvs)
	for _, p := range pvs {
		steps = append(steps, Step{
			Name:   fmt.Sprintf("add %s to volume group %s", p.Device, name),
			Argv:   []string{"vgextend", name, pvArg(p.UUID)},
			Done:   func(r *Report) bool { return hasPhysicalVolumes(r, name, []string{p.UUID}) },
			Labels: pvArgs([]string{p.UUID}),
		})
	}
	return steps
}

// makePVs plans the physical volumes. It does not use --yes: LVM then asks before it removes
// a signature, gets no answer and stops.
func makePVs(group string, pvs []NewPV) (steps []Step, uuids []string) {
	for _, p := range pvs {
		uuids = append(uuids, p.UUID)
		steps = append(steps, Step{
			Name:   "label " + p.Device + " for volume group " + group,
			Argv:   []string{"pvcreate", "--uuid", p.UUID, "--norestorefile", "--metadatasize", metadataSize, "--dataalignment", dataAlignment, p.Device},
			Done:   func(r *Report) bool { pv, _ := r.PV(p.UUID); return pv != nil },
			Labels: []string{p.Device},
			May: func(r *Report) error {
				if there, _ := r.On(p.Device); there != nil {
					return fmt.Errorf("%s: %w: the device is already physical volume %s", p.Device, ErrForeign, there.UUID)
				}
				return nil
			},
		})
	}
	return steps, uuids
}

// hasPhysicalVolumes reports whether a group has these physical volumes.
func hasPhysicalVolumes(r *Report, group string, uuids []string) bool {
	return !slices.ContainsFunc(uuids, func(u string) bool {
		_, g := r.PV(u)
		return g == nil || g.Name != group
	})
}

// RemoveGroup plans to remove an empty group and the labels of its drives. LVM
// asks before it removes a group with volumes, gets no answer and refuses.
func RemoveGroup(name string, pvs ...string) []Step {
	steps := []Step{{
		Name: "remove volume group " + name,
		Argv: []string{"vgremove", name},
		Done: func(r *Report) bool { return r.Group(name) == nil },
	}}
	return append(steps, removePVs(pvs)...)
}

// ReduceGroup plans to remove empty physical volumes from a group.
func ReduceGroup(name string, pvs ...string) []Step {
	var steps []Step
	for _, u := range pvs {
		steps = append(steps, Step{
			Name: fmt.Sprintf("take physical volume %s out of volume group %s", u, name),
			Argv: []string{"vgreduce", name, pvArg(u)},
			Done: func(r *Report) bool { return !hasPhysicalVolumes(r, name, []string{u}) },
		})
	}
	return append(steps, removePVs(pvs)...)
}

func removePVs(pvs []string) []Step {
	var steps []Step
	for _, u := range pvs {
		steps = append(steps, Step{
			Name: "remove the label of physical volume " + u,
			Argv: []string{"pvremove", pvArg(u)},
			Done: func(r *Report) bool { p, _ := r.PV(u); return p == nil },

			Unlabels: u,
		})
	}
	return steps
}

// RemoveMissing plans to remove lost physical volumes without data from a group. The
// caller names them, so that one that is only left out of the list is kept.
func RemoveMissing(name string, pvs ...string) []Step {
	return []Step{{
		Name: "forget the lost drives of volume group " + name,
		Argv: []string{"vgreduce", "--removemissing", name},
		Done: func(r *Report) bool {
			g := r.Group(name)
			return g != nil && len(g.Missing()) == 0
		},
		May: func(r *Report) error {
			g := r.Group(name)
			if g == nil {
				return fmt.Errorf("volume group %s: %w", name, ErrNotFound)
			}
			for _, u := range g.Missing() {
				if !slices.Contains(pvs, u) {
					return fmt.Errorf("physical volume %s: %w: the caller did not name it as lost", u, ErrMissingPV)
				}
				if g.Uses(u) {
					return fmt.Errorf("physical volume %s: %w: volumes have data on it", u, ErrMissingPV)
				}
			}
			return nil
		},
	}}
}

// RestoreMissing plans to use a physical volume again that is back and that LVM has marked
// as missing.
func RestoreMissing(name, pv string) []Step {
	return []Step{{
		Name: fmt.Sprintf("take physical volume %s back into volume group %s", pv, name),
		Argv: []string{"vgextend", "--restoremissing", name, pvArg(pv)},
		Done: func(r *Report) bool {
			p, g := r.PV(pv)
			return p != nil && g != nil && g.Name == name && !p.Missing
		},
	}}
}

// TagGroup plans to change a group's tags.
func TagGroup(name string, add, del []string) ([]Step, error) {
	return retag("vgchange", name, add, del, func(r *Report) ([]string, bool) {
		if g := r.Group(name); g != nil {
			return g.Tags, true
		}
		return nil, false
	})
}

// retag changes tags in one command; it may add a tag that is set or delete one that is not.
func retag(program, what string, add, del []string, tags func(*Report) ([]string, bool)) ([]Step, error) {
	if err := checkTags(slices.Concat(add, del)); err != nil {
		return nil, err
	}
	if slices.Contains(del, Tag) || len(add)+len(del) == 0 {
		return nil, fmt.Errorf("tags of %s: %w: no tag to change, or tag %q to delete", what, drivebay.ErrInvalid, Tag)
	}
	argv := command([]string{program}, tagArgs(add...))
	for _, t := range del {
		argv = append(argv, "--deltag", t)
	}
	return []Step{{
		Name: "tag " + what,
		Argv: append(argv, what),
		Done: func(r *Report) bool {
			have, there := tags(r)
			return there && !slices.ContainsFunc(add, func(t string) bool { return !slices.Contains(have, t) }) &&
				!slices.ContainsFunc(del, func(t string) bool { return slices.Contains(have, t) })
		},
	}}, nil
}
