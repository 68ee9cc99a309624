package drbd

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	api "github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
)

// System is the DRBD of a machine. The lock of the machine guards it.
type System struct {
	devices   *block.Devices
	loaded    bool
	resources []*resource
	files     map[string]string // of drbdmeta, by path
	link      *Link             // nil: no other machine answers
}

// New returns the DRBD of a machine, whose module is not loaded.
func New(m *block.Devices) *System { return &System{devices: m, files: map[string]string{}} }

// Open returns the DRBD of the kernel, if its module is loaded.
func (s *System) Open() (api.Kernel, error) {
	s.devices.Mu.RLock()
	defer s.devices.Mu.RUnlock()
	if !s.loaded {
		return nil, fmt.Errorf("drbd: %w", api.ErrUnavailable)
	}
	return s, nil
}

// Close implements Kernel.
func (s *System) Close() error { return nil }

// PowerCut removes the devices, as a power loss does: nothing more is written. Nothing may be mounted on them.
func (s *System) PowerCut() {
	s.devices.Mu.Lock()
	defer s.devices.Mu.Unlock()
	for _, r := range s.resources {
		r.remove()
	}
	s.resources, s.loaded = nil, false
}

// resource is a resource with its one device.
type resource struct {
	name     string
	minor    uint32
	dev      *block.Device // nil until it has a minor
	below    *block.Device // nil: no disk is attached
	remote   *remote       // nil: it works with its own disk
	bytes    uint64
	wanted   uint64 // disk_size: the size that the last attach or resize asked for
	end      uint64 // of the disk, at which the metadata are
	role     api.Role
	disk     api.Disk
	link     api.Connection
	fresh    bool      // Connect was called, and it has met no peer since
	attached bool      // a disk was attached while it was connected, and the ends have not compared their data since
	peer     *api.Peer // nil: StandAlone
	peerRole api.Role
	peerDisk api.Disk
	uuids    [4]uint64
	out      bitmap // of the pages
	total    uint64 // pages that the running resync copies
}

func (s *System) ofMinor(minor uint32) *resource {
	i := slices.IndexFunc(s.resources, func(r *resource) bool { return r.dev != nil && r.minor == minor })
	if i < 0 {
		return nil
	}
	return s.resources[i]
}

func (s *System) named(name string) *resource {
	i := slices.IndexFunc(s.resources, func(r *resource) bool { return r.name == name })
	if i < 0 {
		return nil
	}
	return s.resources[i]
}

// refusal is the kernel's answer to a request that it refuses.
func refusal(what string, code int32, info ...string) error {
	return &api.CodeError{Operation: what, Code: code, Info: info}
}

// on calls work with the device of a minor, with the lock of both ends held.
func (s *System) on(what string, minor uint32, work func(*resource) error) error {
	defer s.lockLink()()
	r := s.ofMinor(minor)
	if r == nil {
		return refusal(what, 127)
	}
	return work(r)
}

// NewResource implements Kernel.
func (s *System) NewResource(_ context.Context, name string) error {
	s.devices.Mu.Lock()
	defer s.devices.Mu.Unlock()
	if s.named(name) == nil {
		s.resources = append(s.resources, &resource{name: name, role: api.RoleSecondary, peerDisk: api.DiskUnknown})
	}
	return nil
}

// NewMinor implements Kernel.
func (s *System) NewMinor(_ context.Context, name string, _, minor uint32) error {
	s.devices.Mu.Lock()
	defer s.devices.Mu.Unlock()
	r, other := s.named(name), s.ofMinor(minor)
	switch {
	case r == nil:
		return refusal("new minor", 158)
	case other == r:
		return nil
	case other != nil, r.dev != nil:
		return refusal("new minor", 161)
	}
	r.minor = minor
	r.dev = s.devices.AddVirtual(fmt.Sprintf("drbd%d", minor), fmt.Sprintf("147:%d", minor), &contents{s, r})
	return nil
}

func (r *resource) remove() {
	if r.dev != nil {
		r.dev.Unmap()
	}
}

func (r *resource) new() bool { return r.uuids[0]&^1 == justCreated }

// store writes the superblock. It is unclean as long as the disk is attached.
func (r *resource) store() {
	if r.below == nil || r.gone() {
		return
	}
	m := superblock{sectors: r.bytes / 512, uuids: r.uuids, consistent: r.disk > api.Inconsistent, upToDate: r.disk == api.UpToDate, primary: r.role == api.RolePrimary}
	_ = r.below.Write(m.encode(), r.end-superBytes) // a drive that fails keeps the old one
}

func (r *resource) storeBitmap() {
	if !r.gone() {
		_ = r.below.Write(r.out, bitmapAt(r.end))
	}
}

// gone reports whether the disk was pulled: what is written to it then is not on it when it is back.
func (r *resource) gone() bool {
	_, err := r.below.Ask(block.Access{Write: true, Off: r.end - superBytes, N: superBytes})
	return errors.Is(err, host.ErrGone)
}

func (r *resource) all() {
	r.out = newBitmap(r.bytes / bitBytes)
	r.out.set(0, r.bytes/bitBytes)
}

// Attach implements Kernel.
func (s *System) Attach(_ context.Context, minor uint32, b api.Backing) error {
	const what = "attach"
	if !api.ValidSize(b.Bytes) {
		return fmt.Errorf("drbd: attach to minor %d: size of %d bytes", minor, b.Bytes)
	}
	return s.on(what, minor, func(r *resource) error {
		d := s.devices.Lookup(b.Disk)
		switch {
		case r.below != nil:
			return refusal(what, 124)
		case d == nil || d.Gone:
			return refusal(what, 104)
		case d.Busy():
			return refusal(what, 114)
		}
		m, ok := readSuperblock(d, d.Length())
		switch {
		case !ok:
			return refusal(what, 119)
		case !m.clean:
			return refusal(what, 165)
		case b.Bytes > bitmapAt(d.Length()):
			return refusal(what, 111)
		case m.consistent && b.Bytes < m.sectors*512:
			return refusal(what, 170)
		}
		r.below, r.end, r.bytes, r.wanted, r.uuids = d, d.Length(), b.Bytes, b.Bytes, m.uuids
		if m.sectors != 0 { // without the peer it does not grow
			r.bytes = m.sectors * 512
		}
		switch {
		case m.upToDate, m.consistent:
			r.disk = api.UpToDate
		default:
			r.disk = api.Inconsistent
		}
		r.out = readBitmap(d, r.end, r.bytes/bitBytes)
		if r.new() {
			r.all()
		}
		r.dev.Mapped.Hold([]*block.Device{d})
		if p := s.peerOf(r); p != nil && r.link >= api.Connected { // the ends compare what they have, as when they connect
			r.link, p.link, r.attached = api.WFConnection, api.WFConnection, true
		}
		r.store()
		r.storeBitmap()
		r.dev.Changed()
		return nil
	})
}

// Detach implements Kernel.
func (s *System) Detach(_ context.Context, minor uint32, force bool) error {
	return s.on("detach", minor, func(r *resource) error {
		if r.role == api.RolePrimary && r.link < api.Connected && !force {
			return refusal("detach", -2)
		}
		r.loseDisk(s.peerOf(r))
		return nil
	})
}

func (r *resource) detach() {
	if r.below != nil {
		r.store()
		r.dev.Mapped.Hold(nil)
	}
	r.below, r.disk = nil, api.Diskless
}

// Primary implements Kernel.
func (s *System) Primary(_ context.Context, minor uint32, force bool) error {
	return s.on("primary", minor, func(r *resource) error {
		switch {
		case r.role == api.RolePrimary:
			return nil
		case r.link >= api.Connected && r.peerRole == api.RolePrimary:
			return refusal("primary", -1)
		case r.disk != api.UpToDate && (!force || r.below == nil):
			return refusal("primary", -2)
		}
		forced := r.disk != api.UpToDate
		r.role, r.disk = api.RolePrimary, api.UpToDate
		if alone := r.link < api.Connected || r.peerDisk <= api.Failed; forced || alone && r.uuids[1] == 0 {
			r.generation()
		}
		r.uuids[0] |= 1
		r.store()
		return nil
	})
}

// generation starts a new generation of the data.
func (r *resource) generation() {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	if r.uuids[1] == 0 {
		r.uuids[1] = r.uuids[0]
	}
	r.uuids[0] = binary.BigEndian.Uint64(b[:])&^1 | 1<<8
}

// Secondary implements Kernel. What the primary wrote is on the peer by then, or the peer is known to lack it.
func (s *System) Secondary(_ context.Context, minor uint32) error {
	return s.on("secondary", minor, func(r *resource) error {
		if r.dev.Handles > 0 || r.dev.Claimed() {
			return refusal("secondary", -12)
		}
		if r.role == api.RolePrimary {
			if s.link != nil && r.link >= api.Connected {
				s.link.round()
			}
			r.role = api.RoleSecondary
			r.uuids[0] &^= 1
			r.store()
		}
		return nil
	})
}

// Invalidate implements Kernel.
func (s *System) Invalidate(_ context.Context, minor uint32) error {
	return s.on("invalidate", minor, func(r *resource) error {
		switch {
		case r.below == nil:
			return refusal("invalidate", 138)
		case r.role == api.RolePrimary, r.link != api.Connected:
			return refusal("invalidate", -15)
		}
		r.disk = api.Inconsistent
		r.all()
		r.store()
		r.storeBitmap()
		return nil
	})
}

// Connect implements Kernel.
func (s *System) Connect(_ context.Context, name string, p api.Peer) error {
	s.devices.Mu.Lock()
	defer s.devices.Mu.Unlock()
	r := s.named(name)
	if r == nil {
		return refusal("connect", 158)
	}
	for _, o := range s.resources {
		switch {
		case o.peer == nil:
		case o.peer.Local == p.Local:
			return refusal("connect", 102)
		case o.peer.Remote == p.Remote:
			return refusal("connect", 103)
		}
	}
	if r.peer != nil {
		return refusal("connect", 125)
	}
	if p.DiscardMyData && r.role == api.RolePrimary {
		return refusal("connect", 123)
	}
	r.peer, r.link, r.fresh = &p, api.WFConnection, true
	return nil
}

// Disconnect implements Kernel.
func (s *System) Disconnect(_ context.Context, local, remote netip.AddrPort, _ bool) error {
	defer s.lockLink()()
	for _, r := range s.resources {
		if r.peer != nil && r.peer.Local == local && r.peer.Remote == remote {
			s.cut(r)
			r.standAlone()
		}
	}
	return nil
}

func (r *resource) standAlone() { r.peer, r.link = nil, api.StandAlone }

// Down implements Kernel.
func (s *System) Down(_ context.Context, name string) error {
	defer s.lockLink()()
	r := s.named(name)
	switch {
	case r == nil:
		return refusal("down", 158)
	case r.dev != nil && (r.dev.Handles > 0 || r.dev.Claimed()):
		return refusal("down", -12)
	}
	if s.link != nil && r.link >= api.Connected {
		s.link.round()
	}
	r.role = api.RoleSecondary // the kernel demotes before it disconnects (drbd_adm_down)
	r.uuids[0] &^= 1
	s.cut(r)
	r.detach()
	r.remove()
	s.resources = slices.DeleteFunc(s.resources, func(o *resource) bool { return o == r })
	return nil
}

// Status implements Kernel.
func (s *System) Status(_ context.Context, minor uint32) (st api.Status, err error) {
	err = s.on("status", minor, func(r *resource) error { st = r.status(); return nil })
	return st, err
}

// List implements Kernel.
func (s *System) List(context.Context) (all []api.Status, err error) {
	s.devices.Mu.RLock()
	defer s.devices.Mu.RUnlock()
	for _, r := range s.resources {
		if r.dev != nil {
			all = append(all, r.status())
		}
	}
	return all, nil
}

func (r *resource) status() api.Status {
	st := api.Status{Minor: r.minor, Resource: r.name, Bytes: r.bytes, State: api.State{Role: r.role, Peer: r.peerRole, Connection: r.link, Disk: r.disk, PeerDisk: r.peerDisk}}
	if r.link < api.Connected {
		st.State.Peer, st.State.PeerDisk = api.RoleUnknown, api.DiskUnknown
	}
	if r.below != nil {
		st.Generations = &api.Generations{Current: r.uuids[0], Bitmap: r.uuids[1], History: [2]uint64{r.uuids[2], r.uuids[3]}}
		if st.State.Disk != api.UpToDate || st.State.PeerDisk != api.UpToDate { // else they are on their way
			st.OutOfSync = r.out.count() * bitBytes
		}
		st.ResyncTotal = r.total * bitBytes
	}
	return st
}

// Resize implements Kernel.
func (s *System) Resize(_ context.Context, minor uint32, bytes uint64) error {
	if !api.ValidSize(bytes) {
		return fmt.Errorf("drbd: resize minor %d: size of %d bytes", minor, bytes)
	}
	defer s.lockLink()()
	r := s.ofMinor(minor)
	switch {
	case r == nil:
		return refusal("resize", 127)
	case r.below == nil:
		return refusal("resize", 138)
	case r.link > api.Connected:
		return refusal("resize", 130)
	case r.role != api.RolePrimary && r.link == api.Connected && r.peerRole != api.RolePrimary: // drbd_adm_resize
		return refusal("resize", 131)
	}
	if end := r.below.Length(); end != r.end { // the old ones stay
		r.end = end
		if err := r.below.Zero(bitmapAt(end), api.MetadataBytes(end)); err != nil {
			return refusal("resize", 118)
		}
		r.store()
		r.storeBitmap()
	}
	r.wanted = bytes
	p := s.peerOf(r)
	if r.link < api.Connected || p == nil || bytes <= r.bytes || bytes > bitmapAt(r.end) || bytes > bitmapAt(p.end) {
		return nil
	}
	resize(bytes, r, p)
	return nil
}

// resize gives both ends of a connection a size. What is new is out of sync.
func resize(bytes uint64, ends ...*resource) {
	for _, x := range ends {
		if bytes == x.bytes {
			continue
		}
		x.out = x.out.resized(bytes / bitBytes)
		x.out.set(x.bytes/bitBytes, bytes/bitBytes)
		x.bytes = bytes
		x.store()
		x.storeBitmap()
		x.dev.Changed()
	}
}
