package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Layer is one block device of a volume: its piece of the drives, or a device above that. A layer asks
// those below it; no caller has to know which kinds of layers a volume has.
type Layer interface {
	// State returns the device of the layer, as sysfs shows it: it touches no drive. ErrNotFound: the
	// layer is not open.
	State() (mounttable.Device, error)
	// Open makes the device appear. A layer that is open stays as it is.
	Open(context.Context, Opening) (mounttable.Device, error)
	// Grow makes the layer as large as the one below it, and the piece as large as the record says.
	Grow(context.Context, Opening) error
	// Close removes the device. A layer that is not open stays as it is.
	Close(context.Context) error
}

// Written is a layer that writes data of its own to the layer below.
type Written interface {
	Layer
	// Create returns the steps that write the layer on a new volume and open it, and those that close it
	// when what is above it has been made.
	Create(drivebay.Secrets) (open, shut []steps.Step)
	// Erase returns the steps after which the layer below does not show the data of the volume any more.
	Erase(there func(context.Context) (bool, error)) []steps.Step
	// EraseCopy is Erase for a layer below that has only a copy of the volume, and no layer open above it.
	EraseCopy(there func(context.Context) (bool, error)) []steps.Step
	// Forget drops what is kept of the layer outside the drives.
	Forget() error
}

// Opening is what layers are opened and grown with.
type Opening struct {
	Secrets drivebay.Secrets
	// Vacate unmounts what is left of a device that is gone; nil: nothing is. A layer calls it before it
	// makes its device again.
	Vacate func(context.Context) error
}

// Kind makes the layer of a kind that a volume has above the layers below; nil: the volume has none.
type Kind func(v *drivebay.Volume, below Stack) Layer

// Stack is the layers of a volume, bottom up. The first is its piece of the drives.
type Stack []Layer

// Stack returns the layers of a volume by its record.
func (e *Opener) Stack(v *drivebay.Volume) Stack {
	s := Stack{e.Piece(v)}
	for _, kind := range e.Kinds {
		if l := kind(v, s); l != nil {
			s = append(s[:len(s):len(s)], l)
		}
	}
	return s
}

// Piece returns the layer that is on the drives.
func (s Stack) Piece() Stack { return s[:1] }

// Above returns the layers above the piece.
func (s Stack) Above() Stack { return s[1:] }

// State returns the device of the highest layer: the one that users of the volume get.
func (s Stack) State() (mounttable.Device, error) { return s[len(s)-1].State() }

// Open opens the layers, and returns the device of the highest one.
func (s Stack) Open(ctx context.Context, o Opening) (d mounttable.Device, err error) {
	for i, l := range s {
		if d, err = l.Open(ctx, o); err != nil && !s[i+1:].Remote() {
			return mounttable.Device{}, err
		}
	}
	return d, nil
}

// Remote reports whether a layer works without those below it: with data on another machine, because the piece is gone.
func (s Stack) Remote() bool {
	return slices.ContainsFunc(s, func(l Layer) bool {
		r, is := l.(interface{ Remote() bool })
		return is && r.Remote()
	})
}

// Ready opens the layers for the engine itself, which has no secrets: a layer that needs one must be open.
// It returns the device of the highest layer.
func (s Stack) Ready(ctx context.Context) (mounttable.Device, error) {
	d, err := s[0].Open(ctx, Opening{})
	for i, l := range s[1:] {
		if err != nil && !s[i+1:].Remote() {
			break
		}
		if d, err = l.State(); errors.Is(err, drivebay.ErrNotFound) {
			if opened, why := l.Open(ctx, Opening{}); why == nil {
				d, err = opened, nil
			} else {
				err = fmt.Errorf("%w: %v", err, why)
			}
		}
	}
	return d, err
}

// Grow grows the layers, each to the one below it.
func (s Stack) Grow(ctx context.Context, o Opening) error {
	for _, l := range s {
		if err := l.Grow(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the layers, the highest first.
func (s Stack) Close(ctx context.Context) error {
	for _, l := range slices.Backward(s) {
		if err := l.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// written returns the layers that write to those below them, bottom up.
func (s Stack) written() (out []Written) {
	for _, l := range s {
		if w, is := l.(Written); is {
			out = append(out, w)
		}
	}
	return out
}

// Create returns the steps that write and open the layers of a new volume, and those that close them.
func (s Stack) Create(secrets drivebay.Secrets) (open, shut []steps.Step) {
	for _, w := range s.written() {
		begin, end := w.Create(secrets)
		open, shut = append(open, begin...), append(end, shut...)
	}
	return open, shut
}

// Erase returns the steps after which no layer shows the data of the volume any more.
func (s Stack) Erase(there func(context.Context) (bool, error)) (plan []steps.Step) {
	for _, w := range slices.Backward(s.written()) {
		plan = append(plan, w.Erase(there)...)
	}
	return plan
}

// EraseCopy returns the steps after which no layer shows the data of the volume's copy any more.
func (s Stack) EraseCopy(there func(context.Context) (bool, error)) (plan []steps.Step) {
	for _, w := range slices.Backward(s.written()) {
		plan = append(plan, w.EraseCopy(there)...)
	}
	return plan
}

// Forget drops what is kept of the layers outside the drives.
func (s Stack) Forget() (err error) {
	for _, w := range s.written() {
		err = errors.Join(err, w.Forget())
	}
	return err
}

// Target returns how the highest layer of a stack is opened for writing, once it has a device. Only a
// partition is proved to be on its drive: the other layers are identified by their names.
func (s Stack) Target(v *drivebay.Volume, d mounttable.Device) WriteTarget {
	t := WriteTarget{Device: d, Drives: v.Location.Drives}
	if s.Remote() { // no drive of this machine is written to
		t.Drives = nil
	}
	if p, is := s[len(s)-1].(interface{ Drive() string }); is {
		t.On = p.Drive()
	}
	return t
}

// IsOpen reports whether a layer has a device.
func IsOpen(l Layer) (bool, error) {
	_, err := l.State()
	if errors.Is(err, drivebay.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Device returns the device of a volume's piece; it touches no drive.
func (e *Opener) Device(v *drivebay.Volume) (mounttable.Device, error) { return e.Piece(v).State() }

// GrowsInUse reports whether a growth has a second part, above the volume's piece.
func (e *Opener) GrowsInUse(v *drivebay.Volume) bool {
	return v.HasFilesystem() || len(e.Stack(v).Above()) > 0
}
