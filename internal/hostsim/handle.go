package hostsim

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
	d    *drive
	dev  string
	turn uint64
}

// OpenDrive implements host.Machine.
func (m *devices) OpenDrive(ctx context.Context, dev string) (host.Drive, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open %s: %w", dev, err)
	}
	m.Mu.Lock()
	defer m.Mu.Unlock()
	d := m.byName[strings.TrimPrefix(dev, "/dev/")]
	switch {
	case d == nil || !strings.HasPrefix(dev, "/dev/"):
		return nil, fmt.Errorf("open %s: %w", dev, host.ErrGone)
	case d.faults.denied:
		return nil, fmt.Errorf("open %s: %w", dev, host.ErrPermission)
	case d.faults.offline: // ENXIO, as sd_open returns for an offline device
		return nil, fmt.Errorf("open %s: no such device or address: %w", dev, host.ErrGone)
	}
	d.stats.Opens++
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
	d.m.Mu.Lock()
	for d.faults.hang != nil && d.turn == h.turn {
		released := d.faults.hang
		d.held++
		d.m.Mu.Unlock()
		<-released
		d.m.Mu.Lock()
		d.held--
	}
	err := h.check()
	if err != nil {
		d.m.Mu.Unlock()
	}
	return err
}

func (h *handle) check() error {
	d := h.d
	switch {
	case !d.present || d.turn != h.turn || d.faults.offline:
		return host.ErrGone
	case d.faults.eio:
		d.io.errors++
		return kernel.ErrIO
	case d.faults.dead:
		return kernel.ErrIO
	}
	d.io.done++
	return nil
}

// dawdle waits for the delay of a slow drive, at most until the command's context ends.
func (d *drive) dawdle(ctx context.Context) error {
	d.m.Mu.RLock()
	delay := d.faults.slow
	d.m.Mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", host.ErrTimeout, err)
	}
	if delay == 0 {
		return nil
	}
	select {
	case <-d.m.Clock.After(delay):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", host.ErrTimeout, ctx.Err())
	}
}

// Page implements host.Drive.
func (h *handle) Page(ctx context.Context, p host.Page) ([]byte, error) {
	if err := h.enter(ctx); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", h.dev, p, err)
	}
	d := h.d
	defer d.m.Mu.Unlock()
	d.stats.Pages++
	if d.Asleep {
		if p == host.SCSITestUnitReady && d.Family() == host.FamilySCSI {
			return nil, fmt.Errorf("%s: %s: %w: sense key 2h, additional sense 04/02h", h.dev, p, host.ErrStandby)
		}
		if p != host.ATAPowerMode && p != host.SCSITestUnitReady {
			d.Asleep = false
			d.stats.Wakeups++
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
	d := h.d
	defer d.m.Mu.Unlock()
	if off < 0 {
		return 0, fmt.Errorf("%s: read at %d: %w", h.dev, off, kernel.ErrInvalid)
	}
	if d.Asleep {
		d.Asleep = false
		d.stats.Wakeups++
	}
	d.stats.Reads++
	d.io.reads++
	if uint64(off) >= d.Size {
		return 0, io.EOF
	}
	n := int(min(uint64(len(p)), d.Size-uint64(off)))
	d.io.sectors += uint64(n+511) / 512
	d.content.Read(p[:n], uint64(off))
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// ReadMedium implements host.Drive.
func (h *handle) ReadMedium(p []byte, off int64) (int, error) {
	if bs := int64(h.d.Block); off%bs != 0 || int64(len(p))%bs != 0 {
		return 0, fmt.Errorf("%s: read %d bytes at %d: %w: no whole blocks", h.dev, len(p), off, kernel.ErrInvalid)
	}
	d := h.d
	d.m.Mu.Lock()
	sector, bad := d.unread(access{off: uint64(off), n: uint64(len(p))})
	if bad && d.present && d.turn == h.turn {
		d.logMedium(sector)
	}
	d.m.Mu.Unlock()
	if bad {
		return 0, fmt.Errorf("%s: read at %d: %w: %w", h.dev, off, host.ErrUnreadable, kernel.ErrIO)
	}
	return h.ReadAt(p, off)
}

// SelfTest implements host.Drive.
func (h *handle) SelfTest(ctx context.Context, t host.SelfTest) error {
	if err := h.enter(ctx); err != nil {
		return fmt.Errorf("%s: self-test: %w", h.dev, err)
	}
	defer h.d.m.Mu.Unlock()
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
