package drbd

import (
	"fmt"

	api "github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
)

// contents are the bytes of a DRBD device: those of the disk below. A page that is written counts as different
// until the peer has it.
type contents struct {
	s *System
	*resource
}

func (c *contents) Length() uint64 { return c.bytes }

// MayOpen refuses a secondary, to readers too (EMEDIUMTYPE of drbd_open).
func (c *contents) MayOpen() error {
	if c.role != api.RolePrimary {
		return fmt.Errorf("wrong medium type: %w", host.ErrPermission)
	}
	return nil
}

func (c *contents) Ask(a block.Access) ([]*block.Drive, error) {
	if err := c.MayOpen(); err != nil {
		return nil, err
	}
	switch {
	case c.remote != nil:
		return nil, nil
	case c.below == nil:
		return nil, host.ErrGone
	}
	return c.below.Ask(a)
}

// written sets the bits of a range.
func (c *contents) written(off, n uint64) {
	if n == 0 {
		return
	}
	for p := off / bitBytes; p <= (off+n-1)/bitBytes; p++ {
		if !c.out.has(p) {
			c.out.set(p, (off+n-1)/bitBytes+1)
			c.storeBitmap()
			return
		}
	}
}

func (c *contents) Read(p []byte, off uint64) {
	if c.remote != nil {
		c.remote.Read(p, off)
		return
	}
	c.below.Read(p, off)
}

func (c *contents) Write(p []byte, off uint64) error {
	if c.remote != nil {
		c.remote.Write(p, off)
		c.remote.mark(off, uint64(len(p)))
		return nil
	}
	c.written(off, uint64(len(p)))
	return c.below.Write(p, off)
}

func (c *contents) Zero(off, n uint64) error {
	if c.remote != nil {
		c.remote.Zero(off, n)
		c.remote.mark(off, n)
		return nil
	}
	c.written(off, n)
	return c.below.Zero(off, n)
}

// Discard is not passed on unless the peer can do it too.
func (c *contents) Discard(uint64, uint64) error { return host.ErrUnsupported }

func (c *contents) Written(off, n uint64) (out []uint64) {
	if c.remote == nil {
		return c.below.Written(off, n)
	}
	for _, number := range c.remote.In(off, off+n) {
		out = append(out, number*content.PageSize-off)
	}
	return out
}
