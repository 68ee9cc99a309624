package drbd

import (
	"slices"

	api "github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
)

// remote is the disk of the peer as a primary sees it that has lost its own, until it has one again with the same data. What it
// writes is on the peer with the next round.
type remote struct {
	content.Sparse
	dirty bitmap
}

// newRemote returns the first bytes of a disk of the peer.
func newRemote(disk *block.Device, bytes uint64) *remote {
	m := &remote{dirty: newBitmap(bytes / bitBytes)}
	page := make([]byte, bitBytes)
	for _, at := range disk.Written(0, bytes) {
		at = at / bitBytes * bitBytes
		disk.Read(page, at)
		m.Write(page, at)
	}
	return m
}

// mark remembers that a range was written.
func (m *remote) mark(off, n uint64) {
	if n > 0 {
		m.dirty.set(off/bitBytes, (off+n-1)/bitBytes+1)
	}
}

// send writes to the disk of the peer what was written since the last round. To the peer it differs from the disk that is lost.
func (m *remote) send(peer *resource) error {
	if m == nil || peer.below == nil {
		return nil
	}
	var b []byte
	err := m.dirty.runs(copiedAtOnce, func(from, to uint64) error {
		b = slices.Grow(b[:0], copiedAtOnce*bitBytes)[:(to-from)*bitBytes]
		m.Read(b, from*bitBytes)
		peer.out.set(from, to)
		return peer.below.Write(b, from*bitBytes)
	})
	if err == nil && !m.dirty.empty() {
		m.dirty = newBitmap(uint64(len(m.dirty)) * 8)
		peer.storeBitmap()
	}
	return err
}

// loseDisk detaches the disk of a resource whose peer is p, nil if it is not connected. A primary goes on with the disk of the peer, which
// begins a generation (lost_contact_to_peer_data of drbd_state.c).
func (r *resource) loseDisk(p *resource) {
	if p == nil || p.link < api.Connected {
		r.detach()
		return
	}
	if r.role == api.RolePrimary && p.disk == api.UpToDate {
		r.remote = newRemote(p.below, r.bytes)
		if p.uuids[1] == 0 {
			p.generation()
		}
	}
	p.alone()
	r.detach()
}
