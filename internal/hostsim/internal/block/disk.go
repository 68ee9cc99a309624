package block

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// openDisk is a handle of a block device that is open for writing.
type openDisk struct {
	dev    *Device
	name   string // the name at open
	fd     int
	alone  bool
	closed bool
	wrote  bool
	by     string // the writer that As named
}

// fds holds the open devices by number, for the paths from Disk.Path.
type fds struct {
	open map[int]*openDisk
	last int
}

// fdFolder is where a program finds the process's open files.
const fdFolder = "/proc/1/fd/"

func (f *fds) device(path string) *Device {
	if number, ok := strings.CutPrefix(path, fdFolder); ok {
		if n, err := strconv.Atoi(number); err == nil && f.open[n] != nil {
			return f.open[n].dev
		}
	}
	return nil
}

// OpenDisk implements host.Disks.
func (m *Devices) OpenDisk(ctx context.Context, dev string, alone bool) (host.Disk, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open %s: %w", dev, err)
	}
	m.Mu.Lock()
	defer m.Mu.Unlock()
	d := m.Lookup(dev)
	switch {
	case d == nil || d.Gone:
		return nil, fmt.Errorf("open %s: %w", dev, host.ErrGone)
	case d.Drive != nil && d.Drive.Faults.Denied:
		return nil, fmt.Errorf("open %s: %w", dev, host.ErrPermission)
	case d.Drive != nil && d.Drive.Faults.Offline: // ENXIO
		return nil, fmt.Errorf("open %s: no such device or address: %w", dev, host.ErrGone)
	case alone && d.Busy():
		return nil, fmt.Errorf("open %s alone: %w", dev, host.ErrBusy)
	}
	if driver, ok := d.Data.(interface{ MayOpen() error }); ok {
		if err := driver.MayOpen(); err != nil {
			return nil, fmt.Errorf("open %s: %w", dev, err)
		}
	}
	m.fds.last++
	h := &openDisk{dev: d, name: dev, fd: m.fds.last, alone: alone, by: writerOf(ctx)}
	if m.fds.open == nil {
		m.fds.open = map[int]*openDisk{}
	}
	m.fds.open[h.fd] = h
	d.Handles++
	d.Alone = d.Alone || alone
	if d.Drive != nil {
		d.Drive.Stats.Opens++
	}
	return h, nil
}

func (h *openDisk) DevNum() string { return h.dev.Num }

func (h *openDisk) Path() string { return fdFolder + strconv.Itoa(h.fd) }

func (h *openDisk) BlockSize() int { return int(h.dev.block) }

func (h *openDisk) Size() uint64 {
	h.dev.Devices.Mu.RLock()
	defer h.dev.Devices.Mu.RUnlock()
	if d := h.dev.Drive; d != nil && d.Faults.Dead {
		return 0
	}
	return h.dev.Length()
}

// access runs work on a range of the device.
func (h *openDisk) access(ctx context.Context, what string, a Access, work func() error) error {
	err := h.dev.Do(ctx, a, func() error {
		switch {
		case h.closed:
			return fmt.Errorf("%w: it was closed", kernel.ErrInvalid)
		case a.Off > h.dev.Length() || a.N > h.dev.Length()-a.Off:
			return fmt.Errorf("%w: the device ends at %d", kernel.ErrInvalid, h.dev.Length())
		}
		h.wrote = h.wrote || a.Write
		h.dev.Devices.Writer = h.by
		defer func() { h.dev.Devices.Writer = "" }()
		return work()
	})
	if err != nil {
		return fmt.Errorf("%s: %s %d bytes at %d: %w", h.name, what, a.N, a.Off, err)
	}
	return nil
}

// ReadAt implements io.ReaderAt.
func (h *openDisk) ReadAt(p []byte, off int64) (int, error) {
	size := h.Size()
	if off < 0 {
		return 0, fmt.Errorf("%s: read at %d: %w", h.name, off, kernel.ErrInvalid)
	}
	n := min(uint64(len(p)), size-min(size, uint64(off)))
	if err := h.access(context.Background(), "read", Access{Off: min(uint64(off), size), N: n}, func() error {
		h.dev.Read(p[:n], uint64(off))
		return nil
	}); err != nil {
		return 0, err
	}
	if n < uint64(len(p)) {
		return int(n), io.EOF
	}
	return len(p), nil
}

// ReadMedium implements host.Disk.
func (h *openDisk) ReadMedium(p []byte, off int64) (int, error) {
	if bs := int64(h.dev.block); off%bs != 0 || int64(len(p))%bs != 0 {
		return 0, fmt.Errorf("%s: read %d bytes at %d: %w: no whole blocks", h.name, len(p), off, kernel.ErrInvalid)
	}
	n, err := h.ReadAt(p, off)
	if errors.Is(err, kernel.ErrIO) && !errors.Is(err, host.ErrGone) {
		err = fmt.Errorf("%w: %w", host.ErrUnreadable, err)
	}
	return n, err
}

// WriteAt implements io.WriterAt.
func (h *openDisk) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("%s: write at %d: %w", h.name, off, kernel.ErrInvalid)
	}
	err := h.access(context.Background(), "write", Access{true, uint64(off), uint64(len(p))}, func() error { return h.dev.Write(p, uint64(off)) })
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Sync implements host.Disk.
func (h *openDisk) Sync() error {
	return h.access(context.Background(), "sync", Access{}, func() error { return nil })
}

// Zero implements host.Disk.
func (h *openDisk) Zero(ctx context.Context, off, n uint64) error {
	return h.aligned(ctx, "zero", off, n, h.dev.Zero)
}

// Discard implements host.Disk.
func (h *openDisk) Discard(ctx context.Context, off, n uint64) error {
	return h.aligned(ctx, "discard", off, n, h.dev.Discard)
}

// aligned runs what the kernel does for whole blocks only (blkdev_fallocate, BLKDISCARD).
func (h *openDisk) aligned(ctx context.Context, what string, off, n uint64, work func(off, n uint64) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %s: %w", h.name, what, err)
	}
	if off%h.dev.block != 0 || n%h.dev.block != 0 {
		return fmt.Errorf("%s: %s %d bytes at %d: %w: no whole blocks", h.name, what, n, off, kernel.ErrInvalid)
	}
	return h.access(ctx, what, Access{true, off, n}, func() error { return work(off, n) })
}

// SetReadOnly implements host.Disk.
func (h *openDisk) SetReadOnly(on bool) error {
	h.dev.Devices.Mu.Lock()
	defer h.dev.Devices.Mu.Unlock()
	if h.dev.Gone {
		return fmt.Errorf("%s: set read-only: %w", h.name, host.ErrGone)
	}
	if h.dev.ReadOnly != on {
		h.dev.ReadOnly = on
		h.dev.Changed()
	}
	return nil
}

// AddPartition implements host.Disk.
func (h *openDisk) AddPartition(number int, start, size uint64) error {
	return h.partition("add", number, func(d *Drive) error {
		if start%512 != 0 || size%512 != 0 {
			return kernel.ErrInvalid
		}
		return d.introduce(number, start/512, size/512)
	})
}

// ResizePartition implements host.Disk.
func (h *openDisk) ResizePartition(number int, start, size uint64) error {
	return h.partition("resize", number, func(d *Drive) error {
		if start%512 != 0 || size%512 != 0 {
			return kernel.ErrInvalid
		}
		return d.resize(number, start/512, size/512)
	})
}

// RemovePartition implements host.Disk.
func (h *openDisk) RemovePartition(number int) error {
	return h.partition("remove", number, func(d *Drive) error { return d.delete(number) })
}

func (h *openDisk) partition(what string, number int, work func(*Drive) error) error {
	h.dev.Devices.Mu.Lock()
	defer h.dev.Devices.Mu.Unlock()
	err := kernel.ErrInvalid // a partition has no partitions
	switch {
	case h.dev.Gone:
		err = host.ErrGone
	case h.dev.Drive != nil && h.dev.Number == 0:
		err = work(h.dev.Drive)
	}
	if err != nil {
		return fmt.Errorf("%s: %s partition %d: %w", h.name, what, number, err)
	}
	return nil
}

// Close implements io.Closer. Closing a device after a write triggers udev, which reads it again and
// sends a change event (systemd, udev-watch).
func (h *openDisk) Close() error {
	m := h.dev.Devices
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if h.closed {
		return fmt.Errorf("%s: close: %w: it is closed", h.name, kernel.ErrInvalid)
	}
	h.closed = true
	h.dev.Handles--
	if h.alone {
		h.dev.Alone = false
	}
	delete(m.fds.open, h.fd)
	if h.wrote {
		h.dev.Changed()
	}
	return nil
}
