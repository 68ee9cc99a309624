package write

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// RemoveUnusedGroup is the step that removes a volume group after its last volume or snapshot was removed.
// One removal at a time does so: of several that end together, each waits for the previous one, and
// the last one finds the group empty.
func (e *Writer) RemoveUnusedGroup(l drivebay.Location, removed string) steps.Step {
	over := false
	return steps.Step{Name: "unused group", Compound: true,
		Done: func(context.Context) (bool, error) { return over, nil },
		Do: func(ctx context.Context) error {
			end, err := e.Ledger.BeginAfter(ctx, "group "+l.VG)
			if err != nil {
				return err
			}
			defer end()
			e.Ledger.Mu.Lock()
			e.Ledger.RemovedFromGroup[removed] = true
			e.Ledger.Mu.Unlock()
			err = e.Steps.Run(ctx, removed, e.dropGroup(l, removed))
			over = err == nil
			return err
		},
	}
}

// dropGroup plans to remove an empty volume group: the pool, the group, the labels, the partitions
// and the tables.
func (e *Writer) dropGroup(l drivebay.Location, but string) []steps.Step {
	unused := func(ctx context.Context) (bool, error) {
		if e.shared(l.VG, but) {
			return false, nil
		}
		r, err := e.MaybeReport(ctx, l)
		if err != nil {
			return false, err
		}
		g := r.Group(l.VG)
		if g != nil && g.AnyMove() != nil {
			return false, fmt.Errorf("volume group %s: %w: it moves, and goes when it has moved", l.VG, drivebay.ErrPending)
		}
		return g == nil || !slices.ContainsFunc(g.LVs, func(lv lvm.LV) bool {
			return lv.Name != place.PoolName && lv.Parent == "" && !isSpare(lv) && !lvm.IsLeftover(&lv, bookkeeping(g))
		}), nil
	}
	plan := []steps.Step{When(unused, steps.Step{Name: "group",
		Done: func(ctx context.Context) (bool, error) {
			r, err := e.MaybeReport(ctx, l)
			return err == nil && r.Group(l.VG) == nil && len(e.Labels(r, l)) == 0, err
		},
		Do: func(ctx context.Context) error {
			r, err := e.Groups.ReportOf(ctx, l)
			if err != nil {
				return err
			}
			var steps []lvm.Step
			if r.LV(l.VG, place.PoolName) != nil {
				steps = lvm.Remove(l.VG, place.PoolName)
			}
			if g := r.Group(l.VG); g != nil && place.GroupKind(g) == drivebay.LocationThin {
				steps = append(steps, lvm.ClearLeftovers(l.VG, place.PoolName, bookkeeping(g))...)
			}
			if err := e.LVMRun(ctx, l, steps); err != nil {
				return err
			}
			var removed []string
			for _, id := range l.Drives {
				counted := e.counted(id, but) // then the partition stays, also for the next group
				if !counted {
					if err := e.Erase.WipeAllRemains(ctx, l, id); err != nil {
						return err
					}
				}
				if !counted || e.label(r, l, id) != "" {
					removed = append(removed, id)
				}
			}
			if err := e.LVMRun(ctx, l, lvm.RemoveGroup(l.VG, e.Labels(r, l)...)); err != nil {
				return err
			}
			for _, id := range removed {
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
			r, err := e.MaybeReport(ctx, l)
			if err != nil {
				return false, err
			}
			p, there := e.Groups.PVPart(id)
			pv, _ := r.On(p.Dev)
			return !taken() && r.Group(l.VG) == nil && (!there || pv == nil), nil
		}
		for _, s := range e.DropEntry(Entry{Drive: id, Name: "physical volume of " + id, Kind: ledger.TypePV, owner: but, taken: taken}) {
			plan = append(plan, When(free, s))
		}
	}
	return plan
}

// bookkeeping returns the size of the metadata of a group's thin pool, in bytes.
func bookkeeping(g *lvm.Group) uint64 {
	return place.PoolMetadata(g.Size/lvm.ExtentSize) * lvm.ExtentSize
}

// isSpare reports whether a logical volume is the spare that LVM keeps to repair a pool; it belongs to no
// volume (lvmthin(7), "Spare metadata LV").
func isSpare(lv lvm.LV) bool { return slices.Contains(lv.Role, "spare") || lv.Name == "lvol0_pmspare" }

// shared reports whether another volume or snapshot is in a group, or will be.
func (e *Writer) shared(group, but string) bool {
	s := e.Drives.Snapshot()
	return e.others(but, func(l drivebay.Location) bool { return l.VG == group && !groups.AllTakenOut(s, l) })
}

// counted reports whether another volume or snapshot needs the physical volume of a drive: the creation of
// a group uses an existing one.
func (e *Writer) counted(drive, but string) bool {
	return e.others(but, func(l drivebay.Location) bool { return l.OnLVM() && slices.Contains(l.Drives, drive) })
}

func (e *Writer) others(but string, at func(drivebay.Location) bool) bool {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	there := func(id string, l drivebay.Location, w *drivebay.Work) bool {
		removed := w != nil && w.Op == drivebay.WorkRemove && e.Ledger.RemovedFromGroup[id]
		return id != but && at(l) && !removed
	}
	for id, r := range e.Ledger.Records {
		if there(id, r.Volume.Location, r.Work) {
			return true
		}
	}
	for id, r := range e.Ledger.Snapshots {
		if there(id, r.Snapshot.Location, r.Work) {
			return true
		}
	}
	return false
}

// Labels returns the UUIDs of the physical volumes on the partitions of a location that are in its group
// or in no group.
func (e *Writer) Labels(r *lvm.Report, l drivebay.Location) []string {
	var out []string
	for _, id := range l.Drives {
		if uuid := e.label(r, l, id); uuid != "" {
			out = append(out, uuid)
		}
	}
	return out
}

// label returns the UUID of such a physical volume on a drive. One in another group was made there since.
func (e *Writer) label(r *lvm.Report, l drivebay.Location, drive string) string {
	if p, ok := e.Groups.PVPart(drive); ok {
		if pv, g := r.On(p.Dev); pv != nil && (g == nil || g.Name == l.VG) {
			return pv.UUID
		}
	}
	return ""
}

// MaybeReport is ReportOf for a location that may have no physical volume any more: the report is empty
// then. A drive that is absent or not yet listed is an error.
func (e *Writer) MaybeReport(ctx context.Context, l drivebay.Location) (*lvm.Report, error) {
	for _, id := range l.Drives {
		if _, err := e.Partitions.Drive(id); err != nil {
			return nil, err
		}
		e.Ledger.Mu.Lock()
		_, listed := e.Partitions.Index.Parts[id]
		e.Ledger.Mu.Unlock()
		if !listed {
			return nil, fmt.Errorf("drive %s: %w: it has not been listed yet", id, drivebay.ErrUnavailable)
		}
	}
	r, err := e.Groups.ReportOf(ctx, l)
	if errors.Is(err, groups.ErrNoPV) {
		return &lvm.Report{}, nil
	}
	return r, err
}

// RemoveLostPV returns the step that removes a lost physical volume from its group, when
// nothing lies on it any more.
func (e *Writer) RemoveLostPV(l drivebay.Location) steps.Step {
	lost := func(ctx context.Context) ([]string, error) {
		r, err := e.MaybeReport(ctx, l)
		if err != nil || r.Group(l.VG) == nil {
			return nil, err
		}
		g := r.Group(l.VG)
		missing := g.Missing()
		for _, pv := range missing {
			if g.Uses(pv) {
				return nil, nil
			}
		}
		return missing, nil
	}
	return steps.Step{
		Name: "without the lost drive",
		Done: func(ctx context.Context) (bool, error) {
			missing, err := lost(ctx)
			return len(missing) == 0, err
		},
		Do: func(ctx context.Context) error {
			missing, err := lost(ctx)
			if err != nil {
				return err
			}
			return e.LVMRun(ctx, l, lvm.RemoveMissing(l.VG, missing...))
		},
	}
}
