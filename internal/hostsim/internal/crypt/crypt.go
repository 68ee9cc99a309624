package crypt

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
)

// crypt is encrypted data on a device (dm-crypt). Each page is combined with a separate pad. A page of
// zeros stays zeros, so that zeros on a volume need no memory. Old data below reads as noise.
type crypt struct {
	below *block.Device
	off   uint64 // start of the data, a whole number of pages
	size  uint64
	key   [32]byte
}

func (c *crypt) Length() uint64 { return c.size }

func (c *crypt) Ask(a block.Access) ([]*block.Drive, error) {
	return c.below.Ask(block.Access{Write: a.Write, Off: c.off + a.Off, N: a.N})
}

// mix encrypts or decrypts a page.
func (c *crypt) mix(pg *content.Page, number uint64) {
	if *pg == content.Zeros {
		return
	}
	pad := sha256.Sum256(binary.LittleEndian.AppendUint64(c.key[:], number))
	for i := range pg {
		pg[i] ^= pad[i%len(pad)]
	}
}

// pages calls work for each page of a range, decrypted.
func (c *crypt) pages(off, n uint64, work func(pg *content.Page, number, from, to, at uint64) error) error {
	for at := uint64(0); at < n; {
		number, from := (off+at)/content.PageSize, (off+at)%content.PageSize
		to := min(content.PageSize, from+n-at)
		var pg content.Page
		c.below.Read(pg[:], c.off+number*content.PageSize)
		c.mix(&pg, number)
		if err := work(&pg, number, from, to, at); err != nil {
			return err
		}
		at += to - from
	}
	return nil
}

func (c *crypt) Read(p []byte, off uint64) {
	// It cannot fail: nothing is written.
	_ = c.pages(off, uint64(len(p)), func(pg *content.Page, _, from, to, at uint64) error {
		copy(p[at:], pg[from:to])
		return nil
	})
}

func (c *crypt) Write(p []byte, off uint64) error {
	return c.pages(off, uint64(len(p)), func(pg *content.Page, number, from, to, at uint64) error {
		copy(pg[from:to], p[at:])
		c.mix(pg, number)
		return c.below.Write(pg[:], c.off+number*content.PageSize)
	})
}

func (c *crypt) Zero(off, n uint64) error {
	head := min(n, (content.PageSize-off%content.PageSize)%content.PageSize)
	tail := (n - head) % content.PageSize
	if err := c.Write(content.Zeros[:head], off); err != nil {
		return err
	}
	if err := c.below.Zero(c.off+off+head, n-head-tail); err != nil {
		return err
	}
	return c.Write(content.Zeros[:tail], off+n-tail)
}

// Discard is not passed on without allow_discards (dm-crypt).
func (c *crypt) Discard(uint64, uint64) error { return host.ErrUnsupported }

func (c *crypt) Written(off, n uint64) []uint64 { return c.below.Written(c.off+off, n) }
