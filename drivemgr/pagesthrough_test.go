package drivemgr_test

import (
	"context"
	"sync/atomic"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// pageChange decides what a drive answers instead of the page that it would answer.
type pageChange func(p host.Page, b []byte, err error) ([]byte, error)

// pagesThrough is a machine each of whose drives answers its pages through a change, while there is one.
type pagesThrough struct {
	*hostsim.Machine
	change atomic.Pointer[pageChange] // a test sets it while the drives are read
}

func (m *pagesThrough) OpenDrive(ctx context.Context, dev string) (host.OpenDrive, error) {
	d, err := m.Machine.OpenDrive(ctx, dev)
	return changedPages{d, &m.change}, err
}

type changedPages struct {
	host.OpenDrive
	change *atomic.Pointer[pageChange]
}

func (d changedPages) Page(ctx context.Context, p host.Page) ([]byte, error) {
	b, err := d.OpenDrive.Page(ctx, p)
	if change := d.change.Load(); change != nil {
		return (*change)(p, b, err)
	}
	return b, err
}
