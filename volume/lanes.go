package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// How long a touch may take. A mount replays a log, an unmount writes dirty pages back, and a sleeping
// drive needs 15 s before it answers.
const (
	mountTime   = 100 * time.Second // kubelet gives up after 120 s
	unmountTime = 60 * time.Second
	growTime    = 5 * time.Minute
	probeTime   = 20 * time.Second
	usageTime   = 100 * time.Millisecond
)

// lanes holds a lane for each thing that can hang, by its key. An idle lane that was not used for a while
// is dropped: volumes and devices come and go.
type lanes struct {
	mu     sync.Mutex
	by     map[string]*usedLane
	pruned time.Time
}

type usedLane struct {
	*lane.Lane
	at time.Time // when it was last used
}

// laneAge is how long an unused lane is kept.
const laneAge = 5 * time.Minute

func (l *lanes) of(key string) *lane.Lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[string]*usedLane{}
	}
	now := time.Now()
	if now.Sub(l.pruned) >= time.Minute {
		l.pruned = now
		maps.DeleteFunc(l.by, func(_ string, u *usedLane) bool { return now.Sub(u.at) >= laneAge && u.Idle() })
	}
	way := l.by[key]
	if way == nil {
		way = &usedLane{Lane: lane.New()}
		l.by[key] = way
	}
	way.at = now
	return way.Lane
}

// lane returns the lane of a volume's drives, for work on the filesystems on them. Volumes of one drive
// share it: a drive that hangs holds one thread of the daemon, however many volumes it has. A drive that
// left and came back is another device to the kernel, and a call that still waits for the old one does not
// delay it.
func (e *Engine) lane(v *drivebay.Volume) *lane.Lane {
	if len(v.Location.Drives) == 0 { // the volume is in no record
		return e.lanes.of("volume " + v.ID)
	}
	var key strings.Builder
	s := e.drives.Snapshot()
	for _, id := range v.Location.Drives {
		key.WriteString(id)
		if d, ok := driveOf(s, id); ok && len(d.Paths) > 0 {
			key.WriteString("@" + d.Paths[0].DevNum)
		}
		key.WriteByte(' ')
	}
	return e.lanes.of(key.String())
}

// touch does something to a filesystem in the lane of its drives, and waits no longer than limit. A call
// that the kernel does not return from ends later by itself.
func touch(ctx context.Context, e *Engine, v *drivebay.Volume, limit time.Duration, do func(context.Context) error) error {
	_, err := ask(ctx, e, v, limit, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// ask is touch for a call that returns a value.
func ask[T any](ctx context.Context, e *Engine, v *drivebay.Volume, limit time.Duration, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := lane.Through(ctx, e.lane(v), e.machine, do)
	return answer, inOurWords(err)
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

func inOurWords(err error) error {
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
