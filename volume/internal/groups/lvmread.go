package groups

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drivebay/drivebay/internal/lane"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// readLVM makes the report of the physical volumes of some drives, by drive id, and returns the drives of
// which none could be made, with the reason. The drives in spoiling failed the last time: they are read
// alone first.
func (e *Groups) readLVM(ctx context.Context, pvs, spoiling map[string]string) (*lvm.Report, map[string]string, error) {
	suspects := maps.Clone(pvs)
	maps.DeleteFunc(suspects, func(id, _ string) bool { return spoiling[id] == "" })
	_, unread := e.readAlone(ctx, suspects)
	rest := maps.Clone(pvs)
	maps.DeleteFunc(rest, func(id, _ string) bool { return unread[id] != "" })
	r, err := e.readTogether(ctx, "", partitions.ReportTime, rest)
	if err == nil || len(pvs) == 1 && !errors.Is(err, lane.ErrHeld) { // the command that is held may be about a drive that is not read any more
		return r, unread, err
	}
	alone, failed := e.readAlone(ctx, rest)
	maps.Copy(unread, failed)
	if len(unread) == len(pvs) { // not the fault of one drive
		return nil, nil, err
	}
	return e.readGroups(ctx, pvs, alone, unread), unread, nil
}

// readTogether reads some drives with one command, in the lane of a name.
func (e *Groups) readTogether(ctx context.Context, name string, limit time.Duration, pvs map[string]string) (*lvm.Report, error) {
	way := e.Steps.Lanes.Of("lvm report" + name)
	if way.Occupied(e.Machine.Now()) > limit { // the kernel holds that command
		return nil, lane.ErrHeld
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	devices := slices.Sorted(maps.Values(pvs))
	return lane.Through(ctx, way, e.Machine, func(ctx context.Context) (*lvm.Report, error) { return e.LVM.Read(ctx, devices) })
}

// readAlone reads each of some drives with a command of its own.
func (e *Groups) readAlone(ctx context.Context, pvs map[string]string) (reports map[string]*lvm.Report, unread map[string]string) {
	reports, unread = map[string]*lvm.Report{}, map[string]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	turns := make(chan struct{}, partitions.AloneAtOnce)
	for id, dev := range pvs {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			r, err := e.readTogether(ctx, " of drive "+id, partitions.AloneTime, map[string]string{id: dev})
			mu.Lock()
			defer mu.Unlock()
			if reports[id] = r; err != nil {
				delete(reports, id)
				unread[id] = err.Error()
			}
		})
	}
	all.Wait()
	return reports, unread
}

// readGroups combines the reports of single drives: a group of several drives is read once more, on all of
// them that answer.
func (e *Groups) readGroups(ctx context.Context, pvs map[string]string, alone map[string]*lvm.Report, unread map[string]string) *lvm.Report {
	out := &lvm.Report{}
	members := map[string]map[string]string{} // group -> drive -> device
	for _, id := range slices.Sorted(maps.Keys(alone)) {
		out.Free = append(out.Free, alone[id].Free...)
		for _, g := range alone[id].Groups {
			if members[g.Name] == nil {
				members[g.Name] = map[string]string{}
			}
			members[g.Name][id] = pvs[id]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		r, err := e.readTogether(ctx, " of group "+name, partitions.AloneTime, members[name])
		if err != nil {
			for id := range members[name] {
				unread[id] = err.Error()
			}
			continue
		}
		out.Groups = append(out.Groups, r.Groups...)
	}
	return out
}
