package filesystem

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// Bind implements host.Mounter.
func (m *Mounter) Bind(ctx context.Context, from, to host.Place, readOnly bool) error {
	m.devices.Mu.Lock()
	defer m.devices.Mu.Unlock()
	if err := m.bind(ctx, from, to, readOnly); err != nil {
		return fmt.Errorf("bind %s at %s: %w", from, to, err)
	}
	return nil
}

func (m *Mounter) bind(ctx context.Context, from, to host.Place, readOnly bool) error {
	source, err := m.where(from)
	if err != nil {
		return err
	}
	kind := m.kind(source)
	switch kind {
	case host.PlaceNothing:
		return fs.ErrNotExist
	case host.PlaceOther:
		return host.ErrOutsideRoot
	}
	target, err := m.free(ctx, to, kind)
	if err != nil {
		return err
	}
	s := m.resolve(source)
	x := &mount{at: target, what: kind, inner: s.inner, readOnly: readOnly, opts: []string{"relatime"}}
	if s.on != nil {
		x.fs, x.own, x.opts = s.on.fs, s.on.own, s.on.opts
		x.readOnly = readOnly || s.on.readOnly
	} else {
		x.own = m.list[0].entry()
		x.own.Root = source
	}
	m.addMount(x)
	return nil
}

// BindDevice implements host.Mounter. It mounts the device node, from the filesystem of the device
// nodes.
func (m *Mounter) BindDevice(ctx context.Context, dev string, to host.Place, readOnly bool) error {
	m.devices.Mu.Lock()
	defer m.devices.Mu.Unlock()
	d := m.devices.Lookup(dev)
	var at string
	err := host.ErrGone
	if d != nil && !d.Gone {
		at, err = m.free(ctx, to, host.PlaceDevice)
	}
	if err != nil {
		return fmt.Errorf("bind %s at %s: %w", dev, to, err)
	}
	m.addMount(&mount{at: at, what: host.PlaceDevice, readOnly: readOnly, opts: []string{"nosuid", "relatime"},
		own: host.Mount{DevNum: "0:5", Root: "/" + d.Name, FS: "devtmpfs", Source: "udev"}, node: d, nodeNum: d.Num})
	return nil
}

// Unmount implements host.Mounter.
func (m *Mounter) Unmount(ctx context.Context, p host.Place) error {
	if err := m.unmount(ctx, p); err != nil {
		return fmt.Errorf("unmount %s: %w", p, err)
	}
	return nil
}

func (m *Mounter) unmount(ctx context.Context, p host.Place) error {
	m.devices.Mu.Lock()
	x, err := m.unmountable(p)
	if err != nil || x.fs == nil || x.fs.mounts > 1 {
		defer m.devices.Mu.Unlock()
		if err == nil {
			m.drop(x)
		}
		return err
	}
	m.devices.Mu.Unlock()
	// This is the last mount: the kernel writes out what it still holds, waits as long as the drive
	// takes, and drops what cannot be written.
	work := func() error {
		again, err := m.unmountable(p)
		if err == nil && again == x {
			m.drop(x)
		}
		return err
	}
	done := false
	err = x.fs.dev.Do(ctx, block.Access{}, func() error { done = true; return work() })
	if done || ctx.Err() != nil {
		return err
	}
	m.devices.Mu.Lock()
	defer m.devices.Mu.Unlock()
	return work()
}

// unmountable returns the mount at a place if it can be unmounted.
func (m *Mounter) unmountable(p host.Place) (*mount, error) {
	at, err := m.where(p)
	if err != nil {
		return nil, err
	}
	if p.Name == "." {
		return nil, host.ErrOutsideRoot
	}
	x, below := m.top(at), at+"/"
	switch {
	case x == nil && m.kind(at) == host.PlaceOther:
		return nil, host.ErrOutsideRoot
	case x == nil:
		return nil, host.ErrNotMounted
	case x.users > 0, x.boot != "", slices.ContainsFunc(m.list, func(y *mount) bool { return y.id > x.id && strings.HasPrefix(y.at, below) }):
		return nil, host.ErrBusy
	}
	return x, nil
}

// Usage implements host.Mounter. The answer is in memory; the drive is not read.
func (m *Mounter) Usage(_ context.Context, p host.Place) (host.FSUsage, error) {
	m.devices.Mu.RLock()
	defer m.devices.Mu.RUnlock()
	at, err := m.where(p)
	if err == nil && m.kind(at) == host.PlaceNothing {
		err = fs.ErrNotExist
	}
	if err != nil {
		return host.FSUsage{}, fmt.Errorf("usage of %s: %w", p, err)
	}
	if s := m.resolve(at); s.on != nil && s.on.fs != nil {
		return s.on.fs.Usage(), nil
	}
	return (&content.Super{Kind: "ext4", Size: 100 << 30}).Usage(), nil // the machine's root filesystem
}

// Grow implements host.Mounter.
func (m *Mounter) Grow(ctx context.Context, p host.Place, kind string) error {
	m.devices.Mu.RLock()
	at, err := m.where(p)
	s := m.resolve(at)
	m.devices.Mu.RUnlock()
	switch {
	case err != nil:
	case s.on == nil || s.on.fs == nil:
		err = host.ErrNotMounted
	case s.on.fs.Kind != kind:
		err = fmt.Errorf("%w: it is %s", kernel.ErrInvalid, s.on.fs.Kind)
	case s.on.readOnly:
		err = errReadFS
	default:
		f := s.on.fs
		err = f.touch(ctx, true, func() error {
			f.Size = max(f.Size, f.dev.Length()&^4095)
			return f.write()
		})
	}
	if err != nil {
		return fmt.Errorf("grow %s: %w", p, err)
	}
	return nil
}
