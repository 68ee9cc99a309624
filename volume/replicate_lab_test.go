//go:build lab && root

package volume_test

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/volume"
)

// loopSite is one of two volumes of a machine that replicate each other over its loopback.
type loopSite struct {
	*testing.T
	e    *volume.Engine
	v    drivebay.Volume
	root string
}

func (s *loopSite) ok(errs ...error) {
	s.Helper()
	if err := errors.Join(errs...); err != nil {
		out, _ := exec.Command("sh", "-c", "cat /proc/drbd; dmesg | grep -i drbd | tail -20").CombinedOutput()
		s.Fatalf("%v\n%s", err, out)
	}
}

// done repeats a call while the engine attaches the volume, which it does by itself after its device went away.
func (s *loopSite) done(call func() error) {
	s.Helper()
	err := call()
	for end := time.Now().Add(30 * time.Second); errors.Is(err, drivebay.ErrPending) && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		err = call()
	}
	s.ok(err)
}

func (s *loopSite) staging() string { return filepath.Join(s.root, "staging-"+s.v.Name) }

func (s *loopSite) stage(options ...string) error {
	if err := os.MkdirAll(s.staging(), 0o755); err != nil {
		return err
	}
	return s.e.StageVolume(s.Context(), drivebay.StageRequest{Volume: s.v.ID, Path: s.staging(), Access: drivebay.AccessMultiWriter, Options: options})
}

// use stages the volume, writes a file with its own name, and wants the files in have.
func (s *loopSite) use(write string, have ...string) {
	s.Helper()
	s.done(func() error { return s.stage() })
	if write != "" {
		s.ok(os.WriteFile(filepath.Join(s.staging(), write), []byte(write), 0o600))
	}
	for _, name := range have {
		if b, err := os.ReadFile(filepath.Join(s.staging(), name)); err != nil || string(b) != name {
			s.Errorf("%s: file %s: %q %v", s.v.Name, name, b, err)
		}
	}
	s.ok(s.e.UnstageVolume(s.Context(), s.v.ID, s.staging()))
}

func (s *loopSite) until(what string, is func(drbd.Status) bool) {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		x, err := s.e.ReplicationView(s.Context(), s.v.ID)
		s.ok(err)
		if is(x.Status) {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("%s: not %s: %+v", s.v.Name, what, x.Status)
		}
	}
}

// loopPair are the two sites of a test, and the calls that enable the replication from a to b.
type loopPair struct {
	*testing.T
	e          *volume.Engine
	a, b       *loopSite
	fromA, toB drivebay.ReplicationRequest
}

func inSync(x drbd.Status) bool {
	return x.State.Connection == drbd.Connected && x.State.Disk == drbd.UpToDate && x.State.PeerDisk == drbd.UpToDate
}

// TestRootLabReplication runs what TestReplicationAlone and TestReplicationOfTwoSites run, on a kernel with DRBD.
func TestRootLabReplication(t *testing.T) {
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rig, root := loopRig(t, 2), t.TempDir()
	rig.roots = []string{root}
	e, _, stop := rig.start(t)
	ctx := t.Context()
	portA, portB := netip.MustParseAddrPort("127.0.0.1:7800"), netip.MustParseAddrPort("127.0.0.1:7801")
	sites := map[string]*loopSite{}
	for _, name := range []string{"a", "b"} {
		r := requests()["ext4 on a partition"]
		r.Name, r.Size.Required = name, 32<<20
		if name == "b" {
			r.Size.Required = 16 << 20
		}
		v, err := e.CreateVolume(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		sites[name] = &loopSite{t, e, v, root}
	}
	p := &loopPair{T: t, e: e, a: sites["a"], b: sites["b"]}
	p.fromA, p.toB = replicateFrom(p.a.v, portA, portB, true), replicateFrom(p.b.v, portB, portA, false)
	p.fromA.Pair = "both"
	p.a.use("from-a")
	p.b.use("lost-on-b")
	p.connect()
	p.roles()
	p.grow()
	p.failOver()
	stop()
	p.e, _, _ = rig.start(t)
	p.lose()
	p.end()
}

// connect enables the replication: b is refused as another volume, then as too small, and gets the data.
func (p *loopPair) connect() {
	ctx, a, b := p.Context(), p.a, p.b
	a.ok(p.e.EnableReplication(ctx, p.fromA))
	a.use("alone", "from-a")

	// Without the name of the pair, b is another volume: the kernel refuses the connection.
	b.ok(p.e.EnableReplication(ctx, p.toB))
	b.until("refused", func(x drbd.Status) bool {
		if x.State.Connection >= drbd.Connected {
			b.Fatalf("b is connected to another volume: %+v", x)
		}
		return x.State.Connection == drbd.StandAlone
	})
	b.ok(p.e.DisableReplication(ctx, replicationOf(b.v)))
	p.toB.Pair = "both"
	b.ok(p.e.EnableReplication(ctx, p.toB))
	a.ok(p.e.EnableReplication(ctx, p.fromA))

	// b is too small for the data of a, until it grows.
	a.until("refused", func(x drbd.Status) bool { return x.State.Connection == drbd.StandAlone })
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		info, err := p.e.ReplicationInfo(ctx, a.v.ID)
		if a.ok(err); info.Conflict == drivebay.PeerTooSmall {
			break
		} else if time.Now().After(end) {
			a.Fatalf("%+v", info)
		}
	}
	b.done(func() error {
		_, _, err := p.e.ExpandVolume(ctx, b.v.ID, drivebay.SizeRange{Required: 32 << 20})
		return err
	})
	b.ok(p.e.EnableReplication(ctx, p.toB))
	a.ok(p.e.EnableReplication(ctx, p.fromA))
	a.until("in sync", inSync)
	a.ok(p.e.EnableReplication(ctx, p.fromA))
}

// roles lets only the primary be used.
func (p *loopPair) roles() {
	ctx, a, b := p.Context(), p.a, p.b
	// A secondary is not mounted, not read-only either.
	for _, options := range [][]string{nil, {"ro"}} {
		if err := b.stage(options...); !errors.Is(err, drivebay.ErrRefused) {
			p.Errorf("a secondary is staged with %q: %v", options, err)
		}
	}
	if err := p.e.PromoteVolume(ctx, byForce(replicationOf(b.v))); !errors.Is(err, drivebay.ErrRefused) {
		p.Errorf("two primaries: %v", err)
	}
	a.ok(a.stage())
	if err := p.e.DemoteVolume(ctx, replicationOf(a.v)); !errors.Is(err, drivebay.ErrRefused) {
		p.Errorf("demoted in use: %v", err)
	}
}

// grow grows both sides: the one that is not in use first.
func (p *loopPair) grow() {
	ctx, a, b := p.Context(), p.a, p.b
	// Both sides grow: the one that is not in use first.
	for _, s := range []*loopSite{b, a} {
		_, _, err := p.e.ExpandVolume(ctx, s.v.ID, drivebay.SizeRange{Required: 64 << 20})
		s.ok(err)
	}
	a.until("in sync", inSync)
	_, err := p.e.ExpandNode(ctx, a.v.ID, a.staging(), drivebay.SizeRange{}, nil)
	a.ok(err, p.e.UnstageVolume(ctx, a.v.ID, a.staging()))
	a.until("in sync after the growth", func(x drbd.Status) bool { return inSync(x) && x.Bytes >= 64<<20 })
	b.until("in sync after the growth", func(x drbd.Status) bool { return inSync(x) && x.Bytes >= 64<<20 })
	for _, s := range []*loopSite{a, b} {
		view, _ := p.e.Volumes().Get(s.v.ID)
		if view.Replication.Disk < 64<<20 {
			p.Errorf("%s: the metadata are recorded at %d", s.v.Name, view.Replication.Disk)
		}
	}
}

// failOver makes b primary, and has the devices made again.
func (p *loopPair) failOver() {
	ctx, a, b := p.Context(), p.a, p.b
	// Failover, and back by a restart of DRBD without the daemon's knowledge.
	a.ok(p.e.DemoteVolume(ctx, replicationOf(a.v)))
	b.until("alone", func(x drbd.Status) bool { return x.State.Peer == drbd.RoleSecondary })
	b.ok(p.e.PromoteVolume(ctx, replicationOf(b.v)))
	b.use("from-b", "from-a", "alone")
	if ready, err := p.e.ResyncVolume(ctx, replicationOf(a.v)); err != nil || !ready {
		p.Errorf("resync of the side that was demoted: %v %v", ready, err)
	}
	k, err := drbd.OpenKernel()
	a.ok(err)
	for _, s := range []*loopSite{a, b} {
		err := k.Down(ctx, "drivebay-"+s.v.ID)
		for end := time.Now().Add(10 * time.Second); errors.Is(err, drbd.ErrInUse) && time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // udev looks at it
			err = k.Down(ctx, "drivebay-"+s.v.ID)
		}
		s.ok(err)
	}
	a.ok(k.Close())
	b.use("again", "from-a", "alone", "from-b")
}

// lose loses the records, and copies b to a.
func (p *loopPair) lose() {
	ctx, a, b := p.Context(), p.a, p.b
	// The records are lost, and the devices of the kernel stay: nothing is used before it is decided upon. What was primary is
	// accepted, and is the source; the other side gets all of it, whatever its metadata say.
	for _, s := range []*loopSite{a, b} {
		s.e = p.e
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			if view, ok := p.e.Volumes().Get(s.v.ID); ok && view.Replication != nil && view.Replication.Lost() {
				break
			} else if time.Now().After(end) {
				s.Fatalf("%s was not found as one that was replicated: %+v", s.v.Name, view)
			}
		}
		if err := s.stage(); !errors.Is(err, drivebay.ErrRefused) {
			p.Errorf("%s is staged without its record: %v", s.v.Name, err)
		}
	}
	b.done(func() error { return p.e.AcceptLoss(ctx, b.v.ID) })
	b.use("accepted", "from-a", "alone", "from-b", "again")
	fromB, toA := p.toB, p.fromA
	fromB.HoldsData, toA.HoldsData = true, false
	b.done(func() error { return p.e.EnableReplication(ctx, fromB) })
	a.done(func() error { return p.e.EnableReplication(ctx, toA) })
	a.done(func() error { // b has kept the room of the metadata that it had
		view, _ := p.e.Volumes().Get(b.v.ID)
		_, _, err := p.e.ExpandVolume(ctx, a.v.ID, drivebay.SizeRange{Required: view.Size})
		return err
	})
	b.done(func() error { return p.e.EnableReplication(ctx, fromB) })
	b.until("in sync", inSync)
	a.until("in sync", inSync)
	b.done(func() error { return p.e.DemoteVolume(ctx, replicationOf(b.v)) })
	a.until("alone", func(x drbd.Status) bool { return x.State.Peer == drbd.RoleSecondary })
	a.ok(p.e.PromoteVolume(ctx, replicationOf(a.v)))
	a.use("", "from-a", "alone", "from-b", "again", "accepted")
}

// end makes plain volumes of both, and deletes them.
func (p *loopPair) end() {
	ctx, a, b := p.Context(), p.a, p.b
	// The plain volumes come back.
	for _, s := range []*loopSite{a, b} {
		for range 2 {
			s.done(func() error { return p.e.DisableReplication(ctx, replicationOf(s.v)) })
		}
	}
	b.use("plain", "from-a", "alone", "from-b", "again", "accepted")
	for _, s := range []*loopSite{a, b} {
		s.done(func() error { return p.e.DeleteVolume(ctx, s.v.ID) })
	}
}
