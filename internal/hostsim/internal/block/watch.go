package block

import (
	"context"
	"slices"

	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
)

// PageSize is the size of the pages in a Write.
const PageSize = content.PageSize

// WriterFilesystem is the kernel as the writer of a mounted filesystem.
const WriterFilesystem = "filesystem"

// WriterMirror is the kernel as the writer of a mirror's legs: superblocks, and the copy from one leg
// to another.
const WriterMirror = "mirror"

// WriterMove is the kernel as the writer of the copy that pvmove has begun.
const WriterMove = "move"

// WriterFault is a fault that was injected.
const WriterFault = "fault"

// Write is a change of the bytes of a drive, by any writer.
type Write struct {
	By     string // the writer that As named, or one of the above; empty: programs of the machine, and callers of its interfaces
	Drive  string // serial number of the drive when the machine was made
	Off, N uint64
	Pages  []PageChange // pages that changed
}

// PageChange is a page of a drive before and after a write; nil is zeros.
type PageChange struct {
	Off      uint64
	Old, New *[PageSize]byte
}

// Watch calls f after every write, until Watch(nil). The machine is locked during the call: f must not
// call it.
func (m *Devices) Watch(f func(Write)) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.watch = f
}

type writer struct{}

// As names the writer for disks that are opened with the context.
func As(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, writer{}, name)
}

func writerOf(ctx context.Context) string {
	name, _ := ctx.Value(writer{}).(string)
	return name
}

// AsKernel runs work with a part of the kernel as the writer: WriterMirror or WriterMove.
func (m *Devices) AsKernel(writer string, work func()) {
	was := m.Writer
	m.Writer = writer
	work()
	m.Writer = was
}

// mutate runs work that changes a range of a drive, and reports the change.
func (d *Drive) mutate(off, n uint64, work func()) {
	if d.Devices.watch == nil {
		work()
		return
	}
	w := Write{By: d.Devices.Writer, Drive: d.Born.Serial, Off: off, N: n}
	d.Content.Changed = func(number uint64, old, fresh *content.Page) {
		w.Pages = append(w.Pages, PageChange{number * content.PageSize, old, fresh})
	}
	work()
	d.Content.Changed = nil
	d.Devices.watch(w)
}

// Copy copies all bytes of a drive to another, as dd(1) does. Both are named by serial number. The
// kernel reads the new partition table when the drive reappears.
func (m *Devices) Copy(from, to, by string) error {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	a, err := m.Find("", from)
	if err != nil {
		return err
	}
	b, err := m.Find("", to)
	if err != nil {
		return err
	}
	m.Writer = by
	n := min(a.Size, b.Size)
	b.mutate(0, n, func() { b.Content.Take(0, &a.Content.Sparse, 0, n) })
	m.Writer = ""
	return nil
}

// Blank sets all bytes of a drive to zeros.
func (m *Devices) Blank(serial, by string) error {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	d, err := m.Find("", serial)
	if err != nil {
		return err
	}
	m.Writer = by
	d.mutate(0, d.Size, func() { d.Content.Sparse.Zero(0, d.Size) })
	m.Writer = ""
	return nil
}

// Written lists the pages of a device that do not read as zeros, by offset.
func (m *Devices) Written(dev string) []uint64 {
	m.Mu.RLock()
	defer m.Mu.RUnlock()
	d := m.Lookup(dev)
	if d == nil {
		return nil
	}
	out := d.Written(0, d.Length())
	slices.Sort(out)
	return out
}
