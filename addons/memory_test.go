package addons

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/drivebay/drivebay"
)

// memory keeps volumes nowhere but in a VolumeSet. It is for what the edge does by
// itself; how volumes are healed is shown with the engine.
type memory struct {
	set      atomic.Pointer[drivebay.VolumeSet]
	encrypts error
	sealed   map[string]string             // passphrases, by volume
	mended   map[string]drivebay.Condition // how volumes are once they are healed
	fails    atomic.Pointer[error]         // what the next call ends with
	panics   atomic.Bool                   // or how
	held     chan struct{}                 // if there, a healing waits for it
	began    chan struct{}                 // and says that it began

	mu    sync.Mutex
	under map[string]bool // volumes that a call is under way for
	asked []any           // all requests that came here
}

func newMemory(volumes ...*drivebay.VolumeView) *memory {
	m := &memory{sealed: map[string]string{}, mended: map[string]drivebay.Condition{}, under: map[string]bool{}}
	m.set.Store(&drivebay.VolumeSet{Seq: 1, Volumes: volumes})
	return m
}

func (m *memory) Volumes() *drivebay.VolumeSet { return m.set.Load() }
func (m *memory) Unread() ([]string, bool)     { return nil, m.set.Load().Seq > 0 }

// Encrypts takes as long as it may where it does not know.
func (m *memory) Encrypts(ctx context.Context) error {
	if m.encrypts == drivebay.ErrTimeout {
		<-ctx.Done()
	}
	return m.encrypts
}

// begin is the one way to a volume.
func (m *memory) begin(id string, secrets drivebay.Secrets, request any) (v *drivebay.VolumeView, end func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, request)
	if m.panics.CompareAndSwap(true, false) {
		panic("secret-of-the-panic")
	}
	if err := m.fails.Swap(nil); err != nil {
		return nil, nil, *err
	}
	v, ok := m.Volumes().Get(id)
	switch pass, given := m.sealed[id], secrets[drivebay.SecretPassphrase]; {
	case !ok:
		return nil, nil, fmt.Errorf("volume %q: %w", id, drivebay.ErrNotFound)
	case m.under[id]:
		return nil, nil, fmt.Errorf("volume %s: %w", id, drivebay.ErrPending)
	case pass != "" && given != pass:
		return nil, nil, fmt.Errorf("volume %s: %w: it is not %q", id, drivebay.ErrSecret, given)
	}
	m.under[id] = true
	return v, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.under, id)
	}, nil
}

func (m *memory) Heal(_ context.Context, r drivebay.HealRequest) (drivebay.HealReport, error) {
	_, end, err := m.begin(r.Volume, r.Secrets, r)
	if err != nil {
		return drivebay.HealReport{}, err
	}
	defer end()
	if m.held != nil {
		m.began <- struct{}{}
		<-m.held
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.mended[r.Volume]; ok {
		next := *m.Volumes()
		next.Volumes = slices.Clone(next.Volumes)
		i := slices.IndexFunc(next.Volumes, func(v *drivebay.VolumeView) bool { return v.ID == r.Volume })
		v := *next.Volumes[i]
		v.Condition = c
		next.Volumes[i] = &v
		m.set.Store(&next)
	}
	return drivebay.HealReport{Volume: r.Volume}, nil
}

func (m *memory) Stats(_ context.Context, r drivebay.StatsRequest) (drivebay.VolumeStats, error) {
	v, ok := m.Volumes().Get(r.Volume)
	if !ok {
		return drivebay.VolumeStats{}, fmt.Errorf("volume %q: %w", r.Volume, drivebay.ErrNotFound)
	}
	return drivebay.VolumeStats{Condition: v.Condition}, nil
}

func (m *memory) Reclaim(_ context.Context, r drivebay.ReclaimRequest) (drivebay.Reclaimed, error) {
	v, end, err := m.begin(r.Volume, r.Secrets, r)
	if err != nil {
		return drivebay.Reclaimed{}, err
	}
	defer end()
	switch {
	case v.Mode != drivebay.ModeFS:
		return drivebay.Reclaimed{}, fmt.Errorf("volume %s: %w: it has no filesystem", v.ID, drivebay.ErrNoSupport)
	case r.Path == "" && len(v.Publications) > 0:
		return drivebay.Reclaimed{}, fmt.Errorf("volume %s: %w: heal it first", v.ID, drivebay.ErrBusy)
	case r.Path == "":
		return drivebay.Reclaimed{}, nil
	}
	before, after := uint64(300), uint64(1<<63+1)
	return drivebay.Reclaimed{Before: &before, After: &after}, nil
}

func (m *memory) RotateKey(_ context.Context, r drivebay.KeyRequest) error {
	v, end, err := m.begin(r.Volume, r.Secrets, r)
	if err != nil {
		return err
	}
	defer end()
	if m.sealed[v.ID] == "" {
		return fmt.Errorf("volume %s: %w: it is not encrypted", v.ID, drivebay.ErrInvalid)
	}
	m.sealed[v.ID] = r.New[drivebay.SecretPassphrase]
	return nil
}

// last is what the engine was asked for at last.
func (m *memory) last() any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.asked) == 0 {
		return nil
	}
	return m.asked[len(m.asked)-1]
}

func view(id string, mode drivebay.VolumeMode, c drivebay.Condition) *drivebay.VolumeView {
	v := &drivebay.VolumeView{Volume: drivebay.Volume{ID: id, Mode: mode}, Condition: c}
	if mode == drivebay.ModeFS {
		v.FSType = "ext4"
	}
	return v
}

var broken = drivebay.Condition{{Severity: drivebay.SeverityInaccessible, Reason: "VolumeUnmounted", Message: "nothing is mounted at its path"},
	{Severity: drivebay.SeverityDegraded, Reason: "DiskDegrading", Message: "drive S1"}}

// there are the volumes of most tests, by id.
func there() *memory {
	used := view("there", drivebay.ModeFS, broken)
	used.Publications = []drivebay.Publication{{Path: "/staging", Staging: true}}
	m := newMemory(view("raw", drivebay.ModeRaw, nil), view("sealed", drivebay.ModeFS, nil), used, view("well", drivebay.ModeFS, nil))
	m.sealed["sealed"] = "open, sesame"
	return m
}
