package drbd

import (
	"slices"
	"time"

	api "github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// Link is the network between the DRBD of two machines.
type Link struct {
	ends [2]*System
	down bool
}

// round is how often a link looks at what is to be copied.
const round = 100 * time.Millisecond

// Join lays a network between two machines. It ends with the first of them.
func Join(a, b *System) *Link {
	l := &Link{ends: [2]*System{a, b}}
	unlock := l.lock()
	a.link, b.link = l, l
	unlock()
	a.devices.Busy.Go(func() {
		for a.devices.Pause(round) {
			l.step()
		}
	})
	return l
}

// lock locks both machines, always in one order.
func (l *Link) lock() (unlock func()) {
	l.ends[0].devices.Mu.Lock()
	l.ends[1].devices.Mu.Lock()
	return func() {
		l.ends[1].devices.Mu.Unlock()
		l.ends[0].devices.Mu.Unlock()
	}
}

// lockLink locks the machine, and the one at the other end of its link.
func (s *System) lockLink() (unlock func()) {
	s.devices.Mu.RLock()
	l := s.link
	s.devices.Mu.RUnlock()
	if l != nil {
		return l.lock()
	}
	s.devices.Mu.Lock()
	return s.devices.Mu.Unlock
}

// SetUp cuts the network, or mends it.
func (l *Link) SetUp(up bool) {
	defer l.lock()()
	l.down = !up
}

// peerOf returns the resource at the other end of a connection, if both ends want it.
func (s *System) peerOf(r *resource) *resource {
	if s.link == nil || r.peer == nil {
		return nil
	}
	other := s.link.ends[0]
	if other == s {
		other = s.link.ends[1]
	}
	i := slices.IndexFunc(other.resources, func(o *resource) bool {
		return o.peer != nil && o.peer.Local == r.peer.Remote && o.peer.Remote == r.peer.Local
	})
	if i < 0 {
		return nil
	}
	return other.resources[i]
}

// cut ends the connection of a resource. Both ends wait for the other one again.
func (s *System) cut(r *resource) {
	for _, x := range []*resource{r, s.peerOf(r)} {
		if x == nil || x.link < api.Connected {
			continue
		}
		x.link, x.total, x.remote, x.attached = api.WFConnection, 0, nil, false
		x.alone()
	}
}

// alone begins a generation of what a primary writes without the disk of its peer. A disk that does not take it, because it was pulled, is detached.
func (r *resource) alone() {
	if r.below != nil && r.gone() {
		r.detach()
	}
	if r.role == api.RolePrimary && r.disk == api.UpToDate && r.uuids[1] == 0 {
		r.generation()
		r.uuids[0] |= 1
	}
	r.store()
}

func (l *Link) step() {
	defer l.lock()()
	l.round()
}

// round is step for a caller that holds the lock.
func (l *Link) round() {
	for _, r := range l.ends[0].resources {
		p := l.ends[0].peerOf(r)
		switch {
		case p == nil:
			l.ends[0].cut(r)
		case l.down:
			l.ends[0].cut(r)
		case r.link < api.Connected || p.link < api.Connected:
			l.connect(r, p)
		default:
			synchronize(r, p)
		}
		if p != nil {
			meet(r, p)
		}
	}
	for _, r := range l.ends[1].resources {
		if l.ends[1].peerOf(r) == nil {
			l.ends[1].cut(r)
		}
	}
}

// meet lets both ends know the other one's state.
func meet(r, p *resource) {
	r.peerRole, r.peerDisk, p.peerRole, p.peerDisk = p.role, p.disk, r.role, r.disk
}

// connect follows drbd_uuid_compare and drbd_asb_recover_0p of drivers/block/drbd/drbd_receiver.c, with
// "disconnect" after each kind of split brain.
func (l *Link) connect(r, p *resource) {
	refuse := func() { r.standAlone(); p.standAlone() }
	if r.below == nil || p.below == nil {
		return
	}
	defer func() { r.fresh, p.fresh, r.attached, p.attached = false, false, false, false }()
	switch {
	case r.peer.Secret != p.peer.Secret, r.peer.Protocol != p.peer.Protocol:
		refuse()
		return
	}
	target, why := older(r, p)
	if why != api.Unrelated && (r.disk == api.Inconsistent) != (p.disk == api.Inconsistent) { // "due to disk states"
		why, target = 0, r
		if p.disk == api.Inconsistent {
			target = p
		}
	}
	if why != 0 {
		switch {
		case why == api.SplitBrain && r.peer.DiscardMyData && !p.peer.DiscardMyData:
			target = r
		case why == api.SplitBrain && p.peer.DiscardMyData && !r.peer.DiscardMyData:
			target = p
		default:
			l.disagree(why, r, p)
			return
		}
	}
	// The kernel looks for a split brain first (drbd_sync_handshake), and at the roles when the state is set. A primary that
	// attaches a disk gets what the disk lacks: it does not use it before.
	if r.role == api.RolePrimary && p.role == api.RolePrimary || target != nil && target.role == api.RolePrimary && !target.attached {
		refuse()
		return
	}
	bytes := min(r.wanted, p.wanted, bitmapAt(r.end), bitmapAt(p.end))
	for i, of := range []*resource{r, p} {
		if of.bytes > bytes && of.disk > api.Inconsistent { // receive_sizes
			l.ends[i].devices.Logf(kernel.LevelErr, "%s", api.PeerTooSmall.Line(of.name, of.minor))
			of.standAlone() // and the peer waits for it again
			return
		}
	}
	resize(bytes, r, p)
	r.link, p.link = api.Connected, api.Connected
	r.peer.DiscardMyData, p.peer.DiscardMyData = false, false
	if target != nil {
		target.disk = api.Inconsistent
	}
	r.store()
	p.store()
}

// disagree ends a connection whose ends cannot have the same data. An end that has just begun to connect is often too late to look:
// its peer has ended the connection already, and it waits for it again.
func (l *Link) disagree(why api.Refusal, ends ...*resource) {
	for i, of := range ends {
		if of.fresh && !ends[1-i].fresh {
			l.ends[i].devices.Logf(kernel.LevelInfo, "%s", api.ByPeer.Line(of.name, of.minor))
			continue
		}
		l.ends[i].devices.Logf(kernel.LevelAlert, "%s", why.Line(of.name, of.minor))
		of.standAlone()
	}
}

// older returns the end that has the older data; nil: they are the same, or neither is older.
func older(r, p *resource) (target *resource, why api.Refusal) {
	mine, theirs := r.uuids, p.uuids
	for i := range mine {
		mine[i], theirs[i] = mine[i]&^1, theirs[i]&^1
	}
	is := func(all []uint64, u uint64) bool { return u != 0 && u != justCreated && slices.Contains(all, u) }
	switch {
	case r.new() && p.new():
		return nil, 0
	case r.new():
		return r, 0
	case p.new():
		return p, 0
	case mine[0] == theirs[0]:
		return nil, 0
	case is(theirs[1:], mine[0]):
		return r, 0
	case is(mine[1:], theirs[0]):
		return p, 0
	}
	if mine[1] == theirs[1] && mine[1] != 0 || slices.Contains(theirs[2:], mine[2]) || slices.Contains(theirs[2:], mine[3]) { // 90, 100: 0 counts
		return nil, api.SplitBrain
	}
	return nil, api.Unrelated
}

// copiedAtOnce is how many pages a resync copies at once.
const copiedAtOnce = 256

// synchronize copies what differs. A resync is seen in one round, and done in the next.
func synchronize(r, p *resource) {
	if r.remote.send(p) != nil || p.remote.send(r) != nil {
		return
	}
	if r.below == nil || p.below == nil {
		return
	}
	source, target := r, p
	if p.role == api.RolePrimary && p.remote == nil || r.remote != nil || r.disk != api.UpToDate {
		source, target = p, r
	}
	switch {
	case source.disk != api.UpToDate:
		return
	case target.disk != api.UpToDate && source.link == api.Connected:
		if target.new() || source.uuids[1] == 0 && target.uuids != source.uuids {
			source.all()
		}
		source.out.add(target.out)
		source.total, target.total = source.out.count(), source.out.count()
		source.link, target.link = api.SyncSource, api.SyncTarget
		return
	}
	var b []byte
	err := source.out.runs(copiedAtOnce, func(from, to uint64) error {
		b = slices.Grow(b[:0], copiedAtOnce*bitBytes)[:(to-from)*bitBytes]
		source.below.Read(b, from*bitBytes)
		return target.below.Write(b, from*bitBytes)
	})
	if err != nil {
		return
	}
	if !source.out.empty() || source.link != api.Connected {
		source.out, target.out = newBitmap(source.bytes/bitBytes), newBitmap(target.bytes/bitBytes)
		source.link, target.link, target.disk, source.total, target.total = api.Connected, api.Connected, api.UpToDate, 0, 0
		if source.uuids[1] != 0 {
			source.uuids[3], source.uuids[2], source.uuids[1] = source.uuids[2], source.uuids[1], 0
		}
		target.uuids, target.remote = source.uuids, nil
		if target.role != api.RolePrimary {
			target.uuids[0] &^= 1
		}
		source.store()
		target.store()
		source.storeBitmap()
		target.storeBitmap()
	}
}
