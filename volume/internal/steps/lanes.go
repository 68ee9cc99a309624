package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// How long a touch may take. A mount replays a log, an unmount writes dirty pages back, and a sleeping
// drive needs 15 s before it answers.
const (
	MountTime   = 100 * time.Second // kubelet gives up after 120 s
	UnmountTime = 60 * time.Second
	GrowTime    = 5 * time.Minute
	ProbeTime   = 20 * time.Second
	UsageTime   = 100 * time.Millisecond
)

// lanes holds a lane for each thing that can hang, by its key. An idle lane that was not used for a while
// is dropped: volumes and devices come and go.
type lanes struct {
	Mu     sync.RWMutex
	By     map[string]*usedLane
	pruned time.Time
}

type usedLane struct {
	*lane.Lane
	at atomic.Int64 // when it was last used, in Unix nanoseconds
}

// laneAge is how long an unused lane is kept.
const laneAge = 5 * time.Minute

// Of returns the lane with that key. A call that finds it waits for no other.
func (l *lanes) Of(key string) *lane.Lane {
	now := time.Now()
	l.Mu.RLock()
	way := l.By[key]
	if way != nil {
		way.at.Store(now.UnixNano())
	}
	due := now.Sub(l.pruned) >= time.Minute
	l.Mu.RUnlock()
	if way != nil && !due {
		return way.Lane
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.By == nil {
		l.By = map[string]*usedLane{}
	}
	if now.Sub(l.pruned) >= time.Minute {
		l.pruned = now
		maps.DeleteFunc(l.By, func(_ string, u *usedLane) bool { return now.UnixNano()-u.at.Load() >= int64(laneAge) && u.Idle() })
	}
	if way = l.By[key]; way == nil {
		way = &usedLane{Lane: lane.New()}
		l.By[key] = way
	}
	way.at.Store(now.UnixNano())
	return way.Lane
}

// Lane returns the lane of a volume's drives, for work on the filesystems on them. Volumes of one drive
// share it: a drive that hangs holds one thread of the daemon, however many volumes it has. A drive that
// left and came back is another device to the kernel, and a call that still waits for the old one does not
// delay it.
func (e *Runner) Lane(v *drivebay.Volume) *lane.Lane {
	if len(v.Location.Drives) == 0 { // the volume is in no record
		return e.Lanes.Of("volume " + v.ID)
	}
	var key strings.Builder
	s := e.Drives.Snapshot()
	for _, id := range v.Location.Drives {
		key.WriteString(id)
		if d, ok := DriveOf(s, id); ok && len(d.Paths) > 0 {
			key.WriteString("@" + d.Paths[0].DevNum)
		}
		key.WriteByte(' ')
	}
	return e.Lanes.Of(key.String())
}

// Touch does something to a filesystem in the lane of its drives, and waits no longer than limit. A call
// that the kernel does not return from ends later by itself.
func Touch(ctx context.Context, e *Runner, v *drivebay.Volume, limit time.Duration, do func(context.Context) error) error {
	_, err := Ask(ctx, e, v, limit, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// Ask is Touch for a call that returns a value.
func Ask[T any](ctx context.Context, e *Runner, v *drivebay.Volume, limit time.Duration, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := lane.Through(ctx, e.Lane(v), e.Machine, do)
	return answer, InOurWords(err)
}

// hostErrors maps errors of package host to those of package drivebay.
var hostErrors = []struct{ from, to error }{
	{host.ErrBusy, drivebay.ErrBusy},
	{host.ErrTimeout, drivebay.ErrTimeout},
	{host.ErrPermission, drivebay.ErrPermission},
	{host.ErrOutsideRoot, drivebay.ErrInvalid},
	{host.ErrImpossible, drivebay.ErrNoSupport},
	{host.ErrUnsupported, drivebay.ErrNoSupport},
	{host.ErrOccupied, drivebay.ErrBusy},
	{fs.ErrNotExist, drivebay.ErrRefused},
}

// InOurWords replaces errors of package host by those of package drivebay.
func InOurWords(err error) error {
	if errors.Is(err, lane.ErrHeld) { // only the drive is at fault
		return fmt.Errorf("%w: an earlier call to the drive has not returned", drivebay.ErrTimeout)
	}
	for _, w := range hostErrors {
		if errors.Is(err, w.from) && !errors.Is(err, w.to) {
			return fmt.Errorf("%w: %w", w.to, err)
		}
	}
	return err
}
