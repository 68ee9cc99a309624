package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// removeUnusedGroup is the step that removes a volume group after its last volume or snapshot was removed.
// One removal at a time does so: of several that end together, each waits for the previous one, and
// the last one finds the group empty.
func (e *Engine) removeUnusedGroup(l drivebay.Location, removed string) step {
	over := false
	return step{name: "unused group", compound: true,
		done: func(context.Context) (bool, error) { return over, nil },
		do: func(ctx context.Context) error {
			end, err := e.beginAfter(ctx, "group "+l.VG)
			if err != nil {
				return err
			}
			defer end()
			e.mu.Lock()
			e.removedFromGroup[removed] = true
			e.mu.Unlock()
			err = e.run(ctx, removed, e.dropGroup(l, removed))
			over = err == nil
			return err
		},
	}
}

// dropGroup plans to remove an empty volume group: the pool, the group, the labels, the partitions
// and the tables.
func (e *Engine) dropGroup(l drivebay.Location, but string) []step {
	unused := func(ctx context.Context) (bool, error) {
		if e.shared(l.VG, but) {
			return false, nil
		}
		r, err := e.maybeReport(ctx, l)
		if err != nil {
			return false, err
		}
		g := r.Group(l.VG)
		if g != nil && g.AnyMove() != nil {
			return false, fmt.Errorf("volume group %s: %w: it moves, and goes when it has moved", l.VG, drivebay.ErrPending)
		}
		return g == nil || !slices.ContainsFunc(g.LVs, func(lv lvm.LV) bool {
			return lv.Name != poolName && lv.Parent == "" && !isSpare(lv) && !lvm.IsLeftover(&lv, bookkeeping(g))
		}), nil
	}
	plan := []step{when(unused, step{name: "group",
		done: func(ctx context.Context) (bool, error) {
			r, err := e.maybeReport(ctx, l)
			return err == nil && r.Group(l.VG) == nil && len(e.labels(r, l)) == 0, err
		},
		do: func(ctx context.Context) error {
			r, err := e.reportOf(ctx, l)
			if err != nil {
				return err
			}
			var steps []lvm.Step
			if r.LV(l.VG, poolName) != nil {
				steps = lvm.Remove(l.VG, poolName)
			}
			if g := r.Group(l.VG); g != nil && groupKind(g) == drivebay.LocationThin {
				steps = append(steps, lvm.ClearLeftovers(l.VG, poolName, bookkeeping(g))...)
			}
			if err := e.lvmRun(ctx, l, steps); err != nil {
				return err
			}
			for _, id := range l.Drives {
				if err := e.wipeAllRemains(ctx, l, id); err != nil {
					return err
				}
			}
			if err := e.lvmRun(ctx, l, lvm.RemoveGroup(l.VG, e.labels(r, l)...)); err != nil {
				return err
			}
			for _, id := range l.Drives {
				if err := e.clearRemoved(ctx, id); err != nil {
					return err
				}
			}
			return nil
		},
	})}
	for _, id := range l.Drives {
		taken := func() bool { return e.shared(l.VG, but) || e.counted(id, but) }
		free := func(ctx context.Context) (bool, error) {
			r, err := e.maybeReport(ctx, l)
			if err != nil {
				return false, err
			}
			p, there := e.pvPart(id)
			pv, _ := r.On(p.dev)
			return !taken() && r.Group(l.VG) == nil && (!there || pv == nil), nil
		}
		for _, s := range e.dropEntry(entry{drive: id, name: "physical volume of " + id, kind: typePV, owner: but, taken: taken}) {
			plan = append(plan, when(free, s))
		}
	}
	return plan
}

// bookkeeping returns the size of the metadata of a group's thin pool, in bytes.
func bookkeeping(g *lvm.Group) uint64 {
	return poolMetadata(g.Size/lvm.ExtentSize) * lvm.ExtentSize
}

// isSpare reports whether a logical volume is the spare that LVM keeps to repair a pool; it belongs to no
// volume (lvmthin(7), "Spare metadata LV").
func isSpare(lv lvm.LV) bool { return slices.Contains(lv.Role, "spare") || lv.Name == "lvol0_pmspare" }

// shared reports whether another volume or snapshot is in a group, or will be.
func (e *Engine) shared(group, but string) bool {
	s := e.drives.Snapshot()
	return e.others(but, func(l drivebay.Location) bool { return l.VG == group && !allTakenOut(s, l) })
}

// counted reports whether another volume or snapshot needs the physical volume of a drive: the creation of
// a group uses an existing one.
func (e *Engine) counted(drive, but string) bool {
	return e.others(but, func(l drivebay.Location) bool { return l.VG != "" && slices.Contains(l.Drives, drive) })
}

func (e *Engine) others(but string, at func(drivebay.Location) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	there := func(id string, l drivebay.Location, w *drivebay.Work) bool {
		removed := w != nil && w.Op == drivebay.WorkRemove && e.removedFromGroup[id]
		return id != but && at(l) && !removed
	}
	for id, r := range e.records {
		if there(id, r.Volume.Location, r.Work) {
			return true
		}
	}
	for id, r := range e.snapshots {
		if there(id, r.Snapshot.Location, r.Work) {
			return true
		}
	}
	return false
}

// labels returns the UUIDs of the physical volumes on the partitions of a location that are in its group
// or in no group. One in another group was made there since.
func (e *Engine) labels(r *lvm.Report, l drivebay.Location) []string {
	var out []string
	for _, id := range l.Drives {
		if p, ok := e.pvPart(id); ok {
			if pv, g := r.On(p.dev); pv != nil && (g == nil || g.Name == l.VG) {
				out = append(out, pv.UUID)
			}
		}
	}
	return out
}

// maybeReport is reportOf for a location that may have no physical volume any more: the report is empty
// then. A drive that is absent or not yet listed is an error.
func (e *Engine) maybeReport(ctx context.Context, l drivebay.Location) (*lvm.Report, error) {
	for _, id := range l.Drives {
		if _, err := e.drive(id); err != nil {
			return nil, err
		}
		e.mu.Lock()
		_, listed := e.index.parts[id]
		e.mu.Unlock()
		if !listed {
			return nil, fmt.Errorf("drive %s: %w: it has not been listed yet", id, drivebay.ErrBusy)
		}
	}
	r, err := e.reportOf(ctx, l)
	if errors.Is(err, errNoPV) {
		return &lvm.Report{}, nil
	}
	return r, err
}

var errNoPV = fmt.Errorf("no physical volume of ours: %w", drivebay.ErrNotFound)
