package volume

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drivebay/drivebay/internal/lane"
	"github.com/drivebay/drivebay/lvm"
)

// The report of LVM comes from one command over all physical volumes. One drive that makes the command
// fail must not hide the others: after a failure each drive is read alone, and then each group on the
// drives that answer.

const (
	// reportTime bounds the one command that reads all physical volumes, aloneTime the
	// one that reads a single drive or group.
	reportTime = 20 * time.Second
	aloneTime  = 5 * time.Second
	// aloneAtOnce is how many drives are read at the same time.
	aloneAtOnce = 4
)

// readLVM makes the report of the physical volumes of some drives, by drive id, and returns the drives of
// which none could be made, with the reason. The drives in spoiling failed the last time: they are read
// alone first.
func (e *Engine) readLVM(ctx context.Context, pvs, spoiling map[string]string) (*lvm.Report, map[string]string, error) {
	suspects := maps.Clone(pvs)
	maps.DeleteFunc(suspects, func(id, _ string) bool { return spoiling[id] == "" })
	_, unread := e.readAlone(ctx, suspects)
	rest := maps.Clone(pvs)
	maps.DeleteFunc(rest, func(id, _ string) bool { return unread[id] != "" })
	r, err := e.readTogether(ctx, "", reportTime, rest)
	if err == nil || len(pvs) == 1 {
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
func (e *Engine) readTogether(ctx context.Context, name string, limit time.Duration, pvs map[string]string) (*lvm.Report, error) {
	way := e.lanes.of("lvm report" + name)
	if way.Occupied(e.machine.Now()) > limit { // the kernel holds that command
		return nil, lane.ErrHeld
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	devices := slices.Sorted(maps.Values(pvs))
	return lane.Through(ctx, way, e.machine, func(ctx context.Context) (*lvm.Report, error) { return e.lvm.Read(ctx, devices) })
}

// readAlone reads each of some drives with a command of its own.
func (e *Engine) readAlone(ctx context.Context, pvs map[string]string) (reports map[string]*lvm.Report, unread map[string]string) {
	reports, unread = map[string]*lvm.Report{}, map[string]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	turns := make(chan struct{}, aloneAtOnce)
	for id, dev := range pvs {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			r, err := e.readTogether(ctx, " of drive "+id, aloneTime, map[string]string{id: dev})
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
func (e *Engine) readGroups(ctx context.Context, pvs map[string]string, alone map[string]*lvm.Report, unread map[string]string) *lvm.Report {
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
		r, err := e.readTogether(ctx, " of group "+name, aloneTime, members[name])
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
