package inventory

import (
	"context"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
)

// MadeOf returns the device that a publication was made from.
func MadeOf(p drivebay.Publication) mounttable.Device {
	num, name, _ := strings.Cut(p.Device, " ")
	return mounttable.Device{Num: num, Name: name}
}

// ChangedNow makes the engine publish at once.
func (e *Inventory) ChangedNow() {
	select {
	case e.Ledger.Changed <- struct{}{}:
	default:
	}
}

// KernelLog returns the kernel's log from now on, if it can be read. Earlier lines are not read.
func (e *Inventory) KernelLog(ctx context.Context) <-chan host.LogLine {
	log, err := e.Machine.KernelLog(ctx)
	if e.Moves.KernelLogClosed.Store(err != nil); err != nil {
		return nil // the engine of the drives reports it already
	}
	return log
}
