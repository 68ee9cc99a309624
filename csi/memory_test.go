package csi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
)

// memory keeps volumes nowhere but in a VolumeSet. It is for what the edge does
// by itself; how volumes are made and mounted is shown with the engine.
type memory struct {
	set          atomic.Pointer[drivebay.VolumeSet]
	mu           sync.Mutex // of writers
	capabilities drivebay.VolumeCapabilities
	fails        atomic.Pointer[error] // what the next call of the engine ends with
}

const memorySize = 1 << 40

func newMemory(volumes ...*drivebay.VolumeView) *memory {
	m := &memory{capabilities: drivebay.VolumeCapabilities{Snapshots: true}}
	m.set.Store(&drivebay.VolumeSet{Seq: 1, Volumes: volumes})
	return m
}

func (m *memory) Volumes() *drivebay.VolumeSet              { return m.set.Load() }
func (m *memory) Unread() ([]string, bool)                  { return nil, m.set.Load().Seq > 0 }
func (m *memory) Listed() error                             { return nil }
func (m *memory) Capabilities() drivebay.VolumeCapabilities { return m.capabilities }

func (m *memory) Missing(id string) error {
	return fmt.Errorf("volume %q: %w", id, drivebay.ErrNotFound)
}

// change publishes the next set.
func (m *memory) change(f func(*drivebay.VolumeSet) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fails.Swap(nil); err != nil {
		return *err
	}
	next := *m.set.Load()
	next.Seq++
	next.Volumes, next.Snapshots = slices.Clone(next.Volumes), slices.Clone(next.Snapshots)
	err := f(&next)
	slices.SortFunc(next.Volumes, func(a, b *drivebay.VolumeView) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(next.Snapshots, func(a, b drivebay.VolumeSnapshot) int { return cmp.Compare(a.ID, b.ID) })
	m.set.Store(&next)
	return err
}

// changeVolume publishes a volume anew.
func (m *memory) changeVolume(id string, f func(*drivebay.VolumeView) error) error {
	return m.change(func(s *drivebay.VolumeSet) error {
		i := slices.IndexFunc(s.Volumes, func(v *drivebay.VolumeView) bool { return v.ID == id })
		if i < 0 {
			return fmt.Errorf("volume %q: %w", id, drivebay.ErrNotFound)
		}
		v := *s.Volumes[i]
		v.Publications = slices.Clone(v.Publications)
		s.Volumes[i] = &v
		return f(&v)
	})
}

func idOf(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + name))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

func (m *memory) CreateVolume(_ context.Context, r drivebay.VolumeRequest) (v drivebay.Volume, err error) {
	v = drivebay.Volume{ID: idOf("volume", r.Name), Name: r.Name, Size: max(r.Size.Required, min(1<<30, cmp.Or(r.Size.Limit, 1<<30))), Mode: drivebay.ModeFS,
		FSType: cmp.Or(r.FSType, r.Class.FSType), Source: r.Source, Health: drivebay.HealthGood, CSIStatus: drivebay.CSICreated}
	if r.Block {
		v.Mode, v.FSType = drivebay.ModeRawPart, ""
	}
	return v, m.change(func(s *drivebay.VolumeSet) error {
		if there, ok := s.Get(v.ID); ok {
			v = there.Volume
			if !r.Size.Holds(v.Size) || r.Block != (v.Mode != drivebay.ModeFS) {
				return fmt.Errorf("volume %q: %w", r.Name, drivebay.ErrExists)
			}
			return nil
		}
		if _, ok := s.GetSnapshot(r.Source.Snapshot); r.Source.Snapshot != "" && !ok {
			return fmt.Errorf("snapshot %q: %w", r.Source.Snapshot, drivebay.ErrNotFound)
		}
		if _, ok := s.Get(r.Source.Volume); r.Source.Volume != "" && !ok {
			return fmt.Errorf("volume %q: %w", r.Source.Volume, drivebay.ErrNotFound)
		}
		if v.Size > memorySize {
			return fmt.Errorf("volume %q: %w", r.Name, drivebay.ErrNoSpace)
		}
		s.Volumes = append(s.Volumes, &drivebay.VolumeView{Volume: v})
		return nil
	})
}

func (m *memory) DeleteVolume(_ context.Context, id string) error {
	return m.change(func(s *drivebay.VolumeSet) error {
		if v, ok := s.Get(id); ok && len(v.Publications) > 0 {
			return fmt.Errorf("volume %s: %w", id, drivebay.ErrBusy)
		}
		s.Volumes = slices.DeleteFunc(s.Volumes, func(v *drivebay.VolumeView) bool { return v.ID == id })
		return nil
	})
}

func (m *memory) ExpandVolume(_ context.Context, id string, r drivebay.SizeRange) (v drivebay.Volume, node bool, err error) {
	err = m.changeVolume(id, func(w *drivebay.VolumeView) error {
		if r.Limit > 0 && w.Size > r.Limit || r.Required > memorySize {
			return fmt.Errorf("volume %s: %w", id, drivebay.ErrRange)
		}
		w.Size = max(w.Size, r.Required)
		v = w.Volume
		return nil
	})
	return v, v.Mode == drivebay.ModeFS, err
}

func (m *memory) Capacity(_ context.Context, c drivebay.Class) (drivebay.Capacity, error) {
	if c.Backing == drivebay.BackingMirror {
		return drivebay.Capacity{}, fmt.Errorf("a mirror: %w", drivebay.ErrNoSupport)
	}
	return drivebay.Capacity{Available: memorySize, Largest: memorySize, Smallest: 1 << 20}, nil
}

func (m *memory) CreateSnapshot(_ context.Context, name, volume string) (snap drivebay.VolumeSnapshot, err error) {
	snap = drivebay.VolumeSnapshot{ID: idOf("snapshot", name), Name: name, Source: volume, Size: 1 << 30, Created: time.Unix(1e9, 0)}
	return snap, m.change(func(s *drivebay.VolumeSet) error {
		there, ok := s.GetSnapshot(snap.ID)
		if ok && there.Source != volume {
			return fmt.Errorf("snapshot %q: %w", name, drivebay.ErrExists)
		}
		if _, is := s.Get(volume); !is {
			return fmt.Errorf("volume %q: %w", volume, drivebay.ErrNotFound)
		}
		if !ok {
			s.Snapshots = append(s.Snapshots, snap)
		}
		return nil
	})
}

func (m *memory) DeleteSnapshot(_ context.Context, id string) error {
	return m.change(func(s *drivebay.VolumeSet) error {
		s.Snapshots = slices.DeleteFunc(s.Snapshots, func(v drivebay.VolumeSnapshot) bool { return v.ID == id })
		return nil
	})
}

func (m *memory) StageVolume(_ context.Context, r drivebay.StageRequest) error {
	return m.place(r.Volume, drivebay.Publication{Path: r.Path, Staging: true, Access: r.Access})
}

func (m *memory) PublishVolume(_ context.Context, r drivebay.PublishRequest) error {
	return m.place(r.Volume, drivebay.Publication{Path: r.Target, Access: r.Access, ReadOnly: r.ReadOnly})
}

func (m *memory) place(id string, p drivebay.Publication) error {
	return m.changeVolume(id, func(v *drivebay.VolumeView) error {
		if !slices.ContainsFunc(v.Publications, func(q drivebay.Publication) bool { return q.Path == p.Path }) {
			v.Publications = append(v.Publications, p)
		}
		return nil
	})
}

func (m *memory) UnstageVolume(_ context.Context, id, path string) error   { return m.leave(id, path) }
func (m *memory) UnpublishVolume(_ context.Context, id, path string) error { return m.leave(id, path) }

func (m *memory) leave(id, path string) error {
	return m.changeVolume(id, func(v *drivebay.VolumeView) error {
		v.Publications = slices.DeleteFunc(v.Publications, func(p drivebay.Publication) bool { return p.Path == path })
		return nil
	})
}

func (m *memory) at(id, path string) (*drivebay.VolumeView, error) {
	v, ok := m.Volumes().Get(id)
	if !ok || !slices.ContainsFunc(v.Publications, func(p drivebay.Publication) bool { return p.Path == path }) {
		return nil, fmt.Errorf("volume %q: %w at this path", id, drivebay.ErrNotFound)
	}
	return v, nil
}

func (m *memory) ExpandNode(_ context.Context, id, path string, _ drivebay.SizeRange, _ drivebay.Secrets) (uint64, error) {
	v, err := m.at(id, path)
	if err != nil {
		return 0, err
	}
	return v.Size, nil
}

func (m *memory) Stats(_ context.Context, r drivebay.StatsRequest) (drivebay.VolumeStats, error) {
	v, err := m.at(r.Volume, r.Path)
	if err != nil {
		return drivebay.VolumeStats{}, err
	}
	return drivebay.VolumeStats{Bytes: drivebay.Amount{Total: v.Size, Used: 1, Available: v.Size - 1}, Condition: v.Condition}, nil
}
