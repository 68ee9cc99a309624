package block

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
)

// handle is an open drive.
type handle struct {
	d    *Drive
	dev  string
	turn uint64
}

// OpenDrive implements host.Machine.
func (m *Devices) OpenDrive(ctx context.Context, dev string) (host.OpenDrive, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open %s: %w", dev, err)
	}
	m.Mu.Lock()
	defer m.Mu.Unlock()
	d := m.byName[strings.TrimPrefix(dev, "/dev/")]
	switch {
	case d == nil || !strings.HasPrefix(dev, "/dev/"):
		return nil, fmt.Errorf("open %s: %w", dev, host.ErrGone)
	case d.Faults.Denied:
		return nil, fmt.Errorf("open %s: %w", dev, host.ErrPermission)
	case d.Faults.Offline: // ENXIO, as sd_open returns for an offline device
		return nil, fmt.Errorf("open %s: no such device or address: %w", dev, host.ErrGone)
	}
	d.Stats.Opens++
	return &handle{d, dev, d.turn}, nil
}

// enter waits until the drive takes a command and returns with the machine's lock held unless it
// fails. While the drive hangs, only healing or removal ends the wait: a thread in uninterruptible
// sleep ignores its context.
func (h *handle) enter(ctx context.Context) error {
	d := h.d
	if err := d.dawdle(ctx); err != nil {
		return err
	}
	d.Devices.Mu.Lock()
	for d.Faults.Hang != nil && d.turn == h.turn {
		released := d.Faults.Hang
		d.held++
		d.Devices.Mu.Unlock()
		<-released
		d.Devices.Mu.Lock()
		d.held--
	}
	err := h.check()
	if err != nil {
		d.Devices.Mu.Unlock()
	}
	return err
}

func (h *handle) check() error {
	d := h.d
	switch {
	case !d.Present || d.turn != h.turn || d.Faults.Offline:
		return host.ErrGone
	case d.Faults.Eio:
		d.IO.Errors++
		return kernel.ErrIO
	case d.Faults.Dead:
		return kernel.ErrIO
	}
	d.IO.done++
	return nil
}

// dawdle waits for the delay of a slow drive, at most until the command's context ends.
func (d *Drive) dawdle(ctx context.Context) error {
	d.Devices.Mu.RLock()
	delay := d.Faults.Slow
	d.Devices.Mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", host.ErrTimeout, err)
	}
	if delay == 0 {
		return nil
	}
	select {
	case <-d.Devices.Clock.After(delay):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", host.ErrTimeout, ctx.Err())
	}
}

// Page implements host.OpenDrive.
func (h *handle) Page(ctx context.Context, p host.Page) ([]byte, error) {
	if err := h.enter(ctx); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", h.dev, p, err)
	}
	d := h.d
	defer d.Devices.Mu.Unlock()
	d.Stats.Pages++
	if d.Asleep {
		if p == host.SCSITestUnitReady && d.Family() == host.FamilySCSI {
			return nil, fmt.Errorf("%s: %s: %w: sense key 2h, additional sense 04/02h", h.dev, p, host.ErrStandby)
		}
		if p != host.ATAPowerMode && p != host.SCSITestUnitReady {
			d.Asleep = false
			d.Stats.Wakeups++
		}
	}
	b := d.Answer(p)
	if b == nil {
		return nil, fmt.Errorf("%s: %s: %w", h.dev, p, host.ErrUnsupported)
	}
	return d.Spoilt.Spoil(b), nil
}

// ReadAt implements io.ReaderAt. It reads the content of the drive.
func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	if err := h.enter(context.Background()); err != nil {
		return 0, fmt.Errorf("%s: read at %d: %w", h.dev, off, err)
	}
	n, err := h.requested(len(p), off)
	if n == 0 {
		return 0, err
	}
	h.d.Devices.Mu.RLock() // a read of a drive delays nothing else on the machine
	defer h.d.Devices.Mu.RUnlock()
	h.d.Content.Read(p[:n], uint64(off))
	return n, err
}

// requested counts a read of a drive and returns how much of it is on the drive. It releases the lock of enter.
func (h *handle) requested(want int, off int64) (int, error) {
	d := h.d
	defer d.Devices.Mu.Unlock()
	if off < 0 {
		return 0, fmt.Errorf("%s: read at %d: %w", h.dev, off, kernel.ErrInvalid)
	}
	if d.Asleep {
		d.Asleep = false
		d.Stats.Wakeups++
	}
	d.Stats.Reads++
	d.IO.reads++
	if uint64(off) >= d.Size {
		return 0, io.EOF
	}
	n := int(min(uint64(want), d.Size-uint64(off)))
	d.IO.sectors += uint64(n+511) / 512
	if n < want {
		return n, io.EOF
	}
	return n, nil
}

// ReadMedium implements host.OpenDrive.
func (h *handle) ReadMedium(p []byte, off int64) (int, error) {
	if bs := int64(h.d.Block); off%bs != 0 || int64(len(p))%bs != 0 {
		return 0, fmt.Errorf("%s: read %d bytes at %d: %w: no whole blocks", h.dev, len(p), off, kernel.ErrInvalid)
	}
	d := h.d
	d.Devices.Mu.Lock()
	sector, bad := d.unread(Access{Off: uint64(off), N: uint64(len(p))})
	if bad && d.Present && d.turn == h.turn {
		d.LogMedium(sector)
	}
	d.Devices.Mu.Unlock()
	if bad {
		return 0, fmt.Errorf("%s: read at %d: %w: %w", h.dev, off, host.ErrUnreadable, kernel.ErrIO)
	}
	return h.ReadAt(p, off)
}

// SelfTest implements host.OpenDrive.
func (h *handle) SelfTest(ctx context.Context, t host.SelfTest) error {
	if err := h.enter(ctx); err != nil {
		return fmt.Errorf("%s: self-test: %w", h.dev, err)
	}
	defer h.d.Devices.Mu.Unlock()
	if t.Family != h.d.Family() || t.Family == "" || h.d.Kind.Name == model.KindUSB {
		return fmt.Errorf("%s: %s self-test: %w", h.dev, t.Family, host.ErrUnsupported)
	}
	if err := h.d.StartTest(t.Kind); err != nil {
		return fmt.Errorf("%s: self-test: %w", h.dev, err)
	}
	return nil
}

// Close implements io.Closer.
func (h *handle) Close() error { return nil }
