package hostsim

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay/internal/host"
)

// Trim implements host.Mounter.
func (m *Machine) Trim(ctx context.Context, p host.Place) error {
	m.mu.RLock()
	at, err := m.where(p)
	s := m.resolve(at)
	m.mu.RUnlock()
	switch {
	case err != nil:
	case s.on == nil || s.on.fs == nil:
		err = host.ErrUnsupported
	default:
		f := s.on.fs
		err = f.touch(ctx, false, func() error { return f.trim(f.dev) })
	}
	if err != nil {
		return fmt.Errorf("trim %s: %w", p, err)
	}
	return nil
}

// TrimUnmounted implements host.Mounter.
func (m *Machine) TrimUnmounted(ctx context.Context, n host.NewMount) error {
	m.mu.RLock()
	dev := m.lookup(n.Device)
	m.mu.RUnlock()
	err := host.ErrGone
	if dev != nil {
		err = dev.do(ctx, access{write: true, n: 4096}, func() error {
			if dev.fs != nil {
				return host.ErrBusy
			}
			f, err := dev.filesystem(n.FS, n.ReadOnly, nil)
			if err != nil {
				return err
			}
			return f.trim(dev)
		})
	}
	if err != nil {
		return fmt.Errorf("trim %s: %w", n.Device, err)
	}
	return nil
}

// trim discards the range after the filesystem's own structures and used bytes: simulated files have
// no place on the device.
func (s *super) trim(dev *device) error {
	const whole = 1 << 20
	from := (s.overhead() + s.Used + whole - 1) / whole * whole
	return dev.discard(min(from, s.size), s.size-min(from, s.size))
}
