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

// How long a touch may take. A mount replays a log, an unmount writes back what
// is dirty, and a drive that slept needs 15 s to begin with.
const (
	mountTime   = 100 * time.Second // kubelet gives up after 120 s
	unmountTime = 60 * time.Second
	growTime    = 5 * time.Minute
	probeTime   = 20 * time.Second
	usageTime   = 100 * time.Millisecond
)

// lanes are the ways to whatever can hang, by what it is. One that was not asked for in
// a while and that nothing is in is dropped: volumes and devices come and go.
type lanes struct {
	mu     sync.Mutex
	by     map[string]*usedLane
	pruned time.Time
}

type usedLane struct {
	*lane.Lane
	at time.Time // when it was last asked for
}

// laneAge is how long a lane is kept that nothing asks for.
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

// lane is that of a volume's drives, for what is done to the filesystems on them.
// Volumes of one drive share it: a drive that hangs holds one thread of ours,
// however many volumes it has. A drive that left and came back is another device
// to the kernel, and what still waits for the old one does not hold it up.
func (e *Engine) lane(v *drivebay.Volume) *lane.Lane {
	if len(v.Location.Drives) == 0 { // it is in no record
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

// touch does something to a filesystem in the lane of its drives, and waits for
// it no longer than limit. What the kernel does not let go of comes to its end by
// itself.
func touch(ctx context.Context, e *Engine, v *drivebay.Volume, limit time.Duration, do func(context.Context) error) error {
	_, err := ask(ctx, e, v, limit, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// ask is touch for a question.
func ask[T any](ctx context.Context, e *Engine, v *drivebay.Volume, limit time.Duration, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := lane.Through(ctx, e.lane(v), e.machine, do)
	return answer, inOurWords(err)
}

// hostErrors are the machine's words in those of the dictionary.
var hostErrors = []struct{ from, to error }{
	{host.ErrBusy, drivebay.ErrBusy},
	{host.ErrTimeout, drivebay.ErrTimeout},
	{host.ErrPermission, drivebay.ErrPermission},
	{host.ErrEscape, drivebay.ErrInvalid},
	{host.ErrNotHere, drivebay.ErrNoSupport},
	{host.ErrUnsupported, drivebay.ErrNoSupport},
	{host.ErrInTheWay, drivebay.ErrBusy},
	{fs.ErrNotExist, drivebay.ErrRefused},
}

func inOurWords(err error) error {
	if errors.Is(err, lane.ErrHeld) { // nobody's fault but the drive's
		return fmt.Errorf("%w: an earlier call to the drive has not come back", drivebay.ErrTimeout)
	}
	for _, w := range hostErrors {
		if errors.Is(err, w.from) && !errors.Is(err, w.to) {
			return fmt.Errorf("%w: %w", w.to, err)
		}
	}
	return err
}
