package filesystem

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
)

// Trim implements host.Mounter.
func (m *Mounter) Trim(ctx context.Context, p host.Place) error {
	m.devices.Mu.RLock()
	at, err := m.where(p)
	s := m.resolve(at)
	m.devices.Mu.RUnlock()
	switch {
	case err != nil:
	case s.on == nil || s.on.fs == nil:
		err = host.ErrUnsupported
	default:
		f := s.on.fs
		err = f.touch(ctx, false, func() error { return trim(&f.Super, f.dev) })
	}
	if err != nil {
		return fmt.Errorf("trim %s: %w", p, err)
	}
	return nil
}

// TrimUnmounted implements host.Mounter.
func (m *Mounter) TrimUnmounted(ctx context.Context, n host.NewMount) error {
	m.devices.Mu.RLock()
	dev := m.devices.Lookup(n.Device)
	m.devices.Mu.RUnlock()
	err := host.ErrGone
	if dev != nil {
		err = dev.Do(ctx, block.Access{Write: true, N: 4096}, func() error {
			if dev.Mounted {
				return host.ErrBusy
			}
			f, err := m.filesystem(dev, n.FS, n.ReadOnly, nil)
			if err != nil {
				return err
			}
			return trim(&f.Super, dev)
		})
	}
	if err != nil {
		return fmt.Errorf("trim %s: %w", n.Device, err)
	}
	return nil
}

// trim discards the range after the filesystem's own structures and used bytes: simulated files have
// no place on the device.
func trim(s *content.Super, dev *block.Device) error {
	const whole = 1 << 20
	from := (s.Overhead() + s.Used + whole - 1) / whole * whole
	return dev.Discard(min(from, s.Size), s.Size-min(from, s.Size))
}
