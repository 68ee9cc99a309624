// Package drbdtest is what a kernel's DRBD must do for package drbd and its callers. The simulated kernel of package
// hostsim and the kernel of the lab run the same cases.
package drbdtest

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/drbd"
)

// Resource, Minor and Bytes are those of the device of both sites; Right and Wrong are secrets.
const (
	Resource = "lab"
	Minor    = 7
	Bytes    = 96<<20 + 4096
	Right    = "correct-horse-battery"
	Wrong    = "wrong"
)

// Classes are the exit statuses by which the program of the lab tells errors apart (hack/lab/drbd).
var Classes = map[int]error{10: drbd.ErrUnavailable, 11: drbd.ErrTwoPrimaries, 12: drbd.ErrNotUpToDate, 13: drbd.ErrInUse, 14: drbd.ErrNotFound,
	15: drbd.ErrUnclean, 16: drbd.ErrAddressInUse, 17: drbd.ErrNoMetadata, 18: drbd.ErrResync}

// Site is a machine with a disk that has room for the device and its metadata.
type Site interface {
	drbd.Kernel
	// Disk is the path of the disk.
	Disk() string
	// Run runs drbdmeta, after it has forgotten what it knew of the disk.
	Run(ctx context.Context, argv []string) error
	// Write writes to the device, and Read reads the disk below it, at a multiple of 4 KiB.
	Write(ctx context.Context, at int64, b []byte) error
	Read(ctx context.Context, at int64, n int) ([]byte, error)
	// Log is what the kernel has written into its log, a line each.
	Log(ctx context.Context) ([]string, error)
}

// pair is two sites with a network between them. The cases build on each other, in their order.
type pair struct {
	*testing.T
	a, b    *end
	network func(up bool)
}

type end struct {
	Site
	t           *testing.T
	local, peer netip.AddrPort
}

// Run runs the cases. Nothing is configured yet on either site, and their disks hold no metadata.
func Run(t *testing.T, a, b Site, addresses [2]netip.AddrPort, network func(up bool)) {
	p := &pair{t, &end{a, t, addresses[0], addresses[1]}, &end{b, t, addresses[1], addresses[0]}, network}
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"setup", p.setUp}, {"first copy", p.firstCopy}, {"roles", p.roles}, {"network", p.cutNetwork}, {"split brain", p.splitBrain},
		{"attach again", p.attachAgain}, {"wrong secret", p.wrongSecret}, {"down", p.down},
	} {
		began := time.Now()
		c.run()
		if t.Failed() {
			t.Fatalf("case %q failed", c.name)
		}
		t.Logf("%s: %v", c.name, time.Since(began).Round(time.Second))
	}
}

func (p *pair) ends() []*end { return []*end{p.a, p.b} }

func (s *end) ok(errs ...error) {
	s.t.Helper()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *end) refused(what string, err, class error) {
	s.t.Helper()
	if !errors.Is(err, class) {
		s.t.Errorf("%s: %v, want %v", what, err, class)
	}
}

func (s *end) connect(secret string, discard bool) error {
	x, err := drbd.NewSecret(secret)
	s.ok(err)
	return s.Connect(s.t.Context(), Resource, drbd.Peer{Local: s.local, Remote: s.peer, Protocol: drbd.ProtocolC, Secret: x, DiscardMyData: discard})
}

func (s *end) attach() error {
	return s.Attach(s.t.Context(), Minor, drbd.Backing{Disk: s.Disk(), Bytes: Bytes})
}

func (s *end) status() drbd.Status {
	s.t.Helper()
	x, err := s.Status(s.t.Context(), Minor)
	s.ok(err)
	return x
}

func (s *end) until(what string, is func(drbd.State) bool) drbd.Status {
	s.t.Helper()
	for limit := time.Now().Add(90 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		x := s.status()
		if is(x.State) {
			return x
		}
		if time.Now().After(limit) {
			s.t.Fatalf("not %s: %+v", what, x)
		}
	}
}

func inSync(x drbd.State) bool {
	return x.Connection == drbd.Connected && x.Disk == drbd.UpToDate && x.PeerDisk == drbd.UpToDate
}

func alone(x drbd.State) bool { return x.Connection == drbd.StandAlone }

// fill writes a page of a letter to the device, at the start and in its last page.
func (s *end) fill(letter byte) {
	s.t.Helper()
	for _, at := range []int64{0, Bytes - 4096} {
		s.ok(s.Write(s.t.Context(), at, bytes.Repeat([]byte{letter}, 4096)))
	}
}

// holds wants the pages of fill on the disk.
func (s *end) holds(when string, letter byte) {
	s.t.Helper()
	for _, at := range []int64{0, Bytes - 4096} {
		b, err := s.Read(s.t.Context(), at, 4096)
		if err != nil || !bytes.Equal(b, bytes.Repeat([]byte{letter}, 4096)) {
			s.t.Errorf("%s: at byte %d the disk holds %q.., want %q; %v", when, at, b[:min(4, len(b))], letter, err)
		}
	}
}

// setUp gives each site a device whose disk has new metadata, and finds what is refused on the way.
func (p *pair) setUp() {
	for _, s := range p.ends() {
		ctx := s.t.Context()
		_, err := s.Status(ctx, Minor)
		s.refused("status of no minor", err, drbd.ErrNotFound)
		s.refused("attach to no minor", s.attach(), drbd.ErrNotFound)
		s.ok(s.NewResource(ctx, Resource), s.NewResource(ctx, Resource), s.NewMinor(ctx, Resource, 0, Minor), s.NewMinor(ctx, Resource, 0, Minor))
		s.refused("attach without metadata", s.attach(), drbd.ErrNoMetadata)
		s.ok(s.Run(ctx, drbd.CreateMetadata(Minor, s.Disk())))
		s.ok(s.Run(ctx, drbd.ApplyActivityLog(Minor, s.Disk())), s.attach())
		if err := s.Run(ctx, drbd.ApplyActivityLog(Minor, s.Disk())); err == nil {
			s.t.Error("drbdmeta works on the disk of a minor that is attached")
		}
		x := s.status()
		if x.Resource != Resource || x.Bytes != Bytes || x.OutOfSync != Bytes || x.State.Disk != drbd.Inconsistent || x.State.Role != drbd.RoleSecondary || x.State.Connection != drbd.StandAlone {
			s.t.Errorf("a new device: %+v", x)
		}
		if x.Generations == nil || !(drbd.Metadata{Generations: *x.Generations}).New() {
			s.t.Errorf("generations of new metadata: %+v", x.Generations)
		}
		s.refused("primary of an empty disk", s.Primary(ctx, Minor, false), drbd.ErrNotUpToDate)
		if all, err := s.List(ctx); err != nil || len(all) != 1 || all[0].Minor != Minor {
			s.t.Errorf("list: %+v %v", all, err)
		}
	}
}

// firstCopy: the side with a generation of its own is the source of the first connection, whatever the roles are.
func (p *pair) firstCopy() {
	a, b, ctx := p.a, p.b, p.Context()
	a.ok(a.Primary(ctx, Minor, true))
	a.fill('a')
	a.ok(a.Secondary(ctx, Minor))
	if x := a.status(); x.State.Disk != drbd.UpToDate || (drbd.Metadata{Generations: *x.Generations}).New() {
		p.Errorf("a generation of its own: %+v", x)
	}
	a.ok(a.connect(Right, false))
	a.refused("a second connection", a.connect(Right, false), drbd.ErrAddressInUse)
	b.ok(b.connect(Right, false))
	a.until("in sync", inSync)
	x, y := a.until("in sync", inSync), b.until("in sync", inSync)
	if x.OutOfSync != 0 || y.OutOfSync != 0 || x.Generations.Current&^1 != y.Generations.Current&^1 || x.Generations.Bitmap != 0 {
		p.Errorf("two sides in sync: %+v %+v; %+v %+v", x, y, x.Generations, y.Generations)
	}
	b.holds("after the first copy", 'a')
}

// roles: one side is primary, and the other one gets what it writes. Force does not allow two.
func (p *pair) roles() {
	a, b, ctx := p.a, p.b, p.Context()
	a.ok(a.Primary(ctx, Minor, false), a.Primary(ctx, Minor, false))
	b.until("the peer of a primary", func(x drbd.State) bool { return x.Peer == drbd.RolePrimary })
	b.refused("two primaries", b.Primary(ctx, Minor, false), drbd.ErrTwoPrimaries)
	b.refused("two primaries by force", b.Primary(ctx, Minor, true), drbd.ErrTwoPrimaries)
	if err := b.Write(ctx, 0, make([]byte, 4096)); err == nil {
		p.Error("a secondary can be written")
	}
	a.fill('b')
	a.ok(a.Secondary(ctx, Minor), a.Secondary(ctx, Minor))
	b.until("the peer of a secondary", func(x drbd.State) bool { return x.Peer == drbd.RoleSecondary && inSync(x) })
	b.holds("after a write to the peer", 'b')
	b.ok(b.Primary(ctx, Minor, false))
	a.until("the peer of a primary", func(x drbd.State) bool { return x.Peer == drbd.RolePrimary && inSync(x) })
	b.fill('c')
	b.ok(b.Secondary(ctx, Minor)) // at once: what it wrote is on the peer
	a.until("the peer of a secondary", func(x drbd.State) bool { return x.Peer == drbd.RoleSecondary && inSync(x) })
	a.holds("after a write to the peer", 'c')
	if err := a.Resize(ctx, Minor, Bytes); err == nil {
		p.Error("resized without a primary")
	}
}

// cutNetwork: a primary goes on alone, and the other side gets what it missed.
func (p *pair) cutNetwork() {
	a, b, ctx := p.a, p.b, p.Context()
	a.ok(a.Primary(ctx, Minor, false))
	was := *a.status().Generations
	p.network(false)
	lost := func(x drbd.State) bool {
		return x.Connection < drbd.Connected && x.PeerDisk == drbd.DiskUnknown && x.Peer == drbd.RoleUnknown
	}
	a.fill('d')
	a.until("without its peer", lost)
	b.until("without its peer", lost)
	a.fill('e')
	b.holds("without the network", 'c')
	if g := a.status().Generations; g.Current&^1 == was.Current&^1 || g.Bitmap&^1 != was.Current&^1 {
		p.Errorf("generations of a primary that lost its peer: %+v, were %+v", *g, was)
	}
	p.network(true)
	a.until("in sync", inSync)
	b.holds("after the network came back", 'e')
	a.ok(a.Secondary(ctx, Minor))
}

// splitBrain: both sides are written without the other one. Neither loses anything before one side gives its data up.
func (p *pair) splitBrain() {
	a, b, ctx := p.a, p.b, p.Context()
	for _, s := range p.ends() {
		s.ok(s.Disconnect(ctx, s.local, s.peer, true), s.Disconnect(ctx, s.local, s.peer, true))
		s.until("alone", alone)
		s.ok(s.Primary(ctx, Minor, true))
	}
	a.fill('f')
	b.fill('g')
	for _, s := range p.ends() {
		s.ok(s.Secondary(ctx, Minor))
	}
	for _, s := range p.ends() {
		s.ok(s.connect(Right, false))
	}
	a.until("alone after a split brain", func(x drbd.State) bool { return x.Connection <= drbd.WFConnection })
	p.ended()
	p.refused(drbd.SplitBrain)
	a.holds("after a split brain", 'f')
	b.holds("after a split brain", 'g')
	b.ok(b.connect(Right, true))
	a.ok(a.connect(Right, false))
	a.until("in sync after b gave its data up", inSync)
	b.until("in sync after b gave its data up", inSync)
	a.holds("after the resync", 'f')
	b.holds("after the resync", 'f')
}

// refusedPeer reports whether a line of the kernel's log says why the peer was refused.
func (s *end) refusedPeer(why drbd.Refusal) bool {
	s.t.Helper()
	lines, err := s.Log(s.t.Context())
	s.ok(err)
	for _, line := range lines {
		if r, ok := drbd.RefusedIn(line); ok && r.Minor == Minor && r.Why == why {
			return true
		}
	}
	return false
}

// refusedByPeer reports whether a line of the kernel's log says that the peer ended the connection.
func (s *end) refusedByPeer() bool {
	s.t.Helper()
	lines, err := s.Log(s.t.Context())
	s.ok(err)
	return slices.ContainsFunc(lines, func(line string) bool {
		r, ok := drbd.RefusedIn(line)
		return ok && r.Why == drbd.ByPeer && r.Resource == Resource
	})
}

// refused wants a side that says why the connection was refused, and another that does, or that says that its peer refused it.
func (p *pair) refused(why drbd.Refusal) {
	p.Helper()
	for _, s := range p.ends() {
		other := p.a
		if s == p.a {
			other = p.b
		}
		if !s.refusedPeer(why) && !(other.refusedPeer(why) && s.refusedByPeer()) {
			p.Errorf("nothing of refusal %d in the log of a kernel", why)
		}
	}
}

// ended waits until no side is connected, and ends the connection of a side that still waits.
func (p *pair) ended() {
	p.Helper()
	limit := time.Now().Add(90 * time.Second)
	for settled := 0; settled < 10; time.Sleep(200 * time.Millisecond) {
		x, y := p.a.status().State, p.b.status().State
		if settled++; x.Connection >= drbd.Connected || y.Connection >= drbd.Connected || !alone(x) && !alone(y) {
			settled = 0
		}
		if time.Now().After(limit) {
			p.Fatalf("not refused: %+v, %+v", x, y)
		}
	}
	for _, s := range p.ends() {
		s.ok(s.Disconnect(p.Context(), s.local, s.peer, true))
		s.until("alone", alone)
	}
}

// attachAgain: without its disk the device has the size that it had with it. Metadata that were in use have to be prepared. A side that is declared worthless gets all again.
func (p *pair) attachAgain() {
	a, b, ctx := p.a, p.b, p.Context()
	size := a.status().Bytes
	a.ok(a.Detach(ctx, Minor, false))
	if x := a.status(); x.State.Disk != drbd.Diskless || x.Bytes != size {
		a.t.Errorf("detached from its disk, and connected to a peer with one: %+v, had %d bytes", x, size)
	}
	a.refused("attach unclean metadata", a.attach(), drbd.ErrUnclean)
	a.ok(a.Run(ctx, drbd.ApplyActivityLog(Minor, a.Disk())), a.attach())
	a.until("in sync after it was attached again", inSync)
	a.holds("after it was attached again", 'f')
	b.ok(b.Invalidate(ctx, Minor))
	a.until("in sync after the peer was invalidated", inSync)
	b.until("in sync after it was invalidated", inSync)
	b.holds("after it was invalidated", 'f')
}

// wrongSecret: a peer without the secret gets nothing.
func (p *pair) wrongSecret() {
	a, b, ctx := p.a, p.b, p.Context()
	b.ok(b.Disconnect(ctx, b.local, b.peer, false))
	a.until("waiting", func(x drbd.State) bool { return x.Connection < drbd.Connected })
	a.ok(a.Primary(ctx, Minor, false))
	a.fill('h')
	b.ok(b.connect(Wrong, false))
	p.ended()
	b.holds("with a wrong secret", 'f')
	a.ok(a.Secondary(ctx, Minor))
	for _, s := range p.ends() {
		s.ok(s.connect(Right, false))
	}
	a.until("in sync", inSync)
	b.holds("with the right secret", 'h')
}

// down removes the devices. The data stay.
func (p *pair) down() {
	for _, s := range p.ends() {
		ctx := s.t.Context()
		s.ok(s.Down(ctx, Resource))
		_, err := s.Status(ctx, Minor)
		s.refused("status after down", err, drbd.ErrNotFound)
		s.holds("after down", 'h')
		s.ok(s.Run(ctx, drbd.WipeMetadata(Minor, s.Disk())))
		if err := s.Run(ctx, drbd.ApplyActivityLog(Minor, s.Disk())); err == nil {
			s.t.Error("metadata after they were wiped")
		}
		s.holds("after its metadata were wiped", 'h')
	}
}
