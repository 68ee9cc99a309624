//go:build !race && long

package volume_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// stalling is a machine on which one operation returns only after every caller has gone. It is done before the stall or after it.
type stalling struct {
	*hostsim.Machine
	mu    sync.Mutex
	left  int            // operations until the one that stalls
	met   map[string]int // how often each was met since; a wipe is many of one kind, and the first ones count
	first bool
	hit   string
}

const stall = 12 * time.Minute // longer than any call waits

// arm makes the nth operation from now stall; with 0, none does.
func (m *stalling) arm(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left, m.met = n, map[string]int{}
}

func (m *stalling) op(name string) (after func()) {
	m.mu.Lock()
	hit := false
	if m.left > 0 && m.met[name] < 4 {
		m.met[name]++
		m.left--
		if hit = m.left == 0; hit {
			m.hit = name
		}
	}
	m.mu.Unlock()
	switch {
	case !hit:
		return func() {}
	case m.first:
		return func() { time.Sleep(stall) }
	}
	time.Sleep(stall)
	return func() {}
}

func (m *stalling) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if len(argv) > 1 && argv[1] != "fullreport" && argv[1] != "version" {
		defer m.op(strings.Join(argv[:2], " "))()
	}
	return m.Machine.Run(ctx, argv...)
}

func (m *stalling) RunInput(ctx context.Context, in []byte, argv ...string) ([]byte, error) {
	defer m.op(strings.Join(argv[:2], " "))()
	return m.Machine.RunInput(context.WithoutCancel(ctx), in, argv...) // the kernel completes what a killed program has begun
}

func (m *stalling) Mount(ctx context.Context, n host.NewMount) error {
	defer m.op("mount")()
	return m.Machine.Mount(ctx, n)
}

func (m *stalling) Bind(ctx context.Context, from, to host.Place, readOnly bool) error {
	defer m.op("bind")()
	return m.Machine.Bind(ctx, from, to, readOnly)
}

func (m *stalling) BindDevice(ctx context.Context, dev string, to host.Place, readOnly bool) error {
	defer m.op("bind device")()
	return m.Machine.BindDevice(ctx, dev, to, readOnly)
}

func (m *stalling) Unmount(ctx context.Context, at host.Place) error {
	defer m.op("unmount")()
	return m.Machine.Unmount(ctx, at)
}

func (m *stalling) Grow(ctx context.Context, at host.Place, fs string) error {
	defer m.op("grow")()
	return m.Machine.Grow(ctx, at, fs)
}

func (m *stalling) OpenDisk(ctx context.Context, dev string, alone bool) (host.Disk, error) {
	defer m.op("open " + dev)()
	d, err := m.Machine.OpenDisk(ctx, dev, alone)
	if err != nil {
		return nil, err
	}
	return &stallingDisk{d, m}, nil
}

type stallingDisk struct {
	host.Disk
	m *stalling
}

func (d *stallingDisk) WriteAt(p []byte, off int64) (int, error) {
	defer d.m.op("write")()
	return d.Disk.WriteAt(p, off)
}

func (d *stallingDisk) Sync() error {
	defer d.m.op("sync")()
	return d.Disk.Sync()
}

func (d *stallingDisk) Zero(ctx context.Context, at, n uint64) error {
	defer d.m.op("zero")()
	return d.Disk.Zero(ctx, at, n)
}

func (d *stallingDisk) AddPartition(number int, start, size uint64) error {
	defer d.m.op("add partition")()
	return d.Disk.AddPartition(number, start, size)
}

func (d *stallingDisk) ResizePartition(number int, start, size uint64) error {
	defer d.m.op("resize partition")()
	return d.Disk.ResizePartition(number, start, size)
}

func (d *stallingDisk) RemovePartition(number int) error {
	defer d.m.op("remove partition")()
	return d.Disk.RemovePartition(number)
}

func (d *stallingDisk) Close() error {
	defer d.m.op("close")()
	return d.Disk.Close()
}

// stallingDRBD is the DRBD of the machine.
type stallingDRBD struct {
	drbd.Kernel
	m *stalling
}

func (d stallingDRBD) NewResource(ctx context.Context, resource string) error {
	defer d.m.op("drbd new resource")()
	return d.Kernel.NewResource(context.WithoutCancel(ctx), resource)
}

func (d stallingDRBD) NewMinor(ctx context.Context, resource string, volume, minor uint32) error {
	defer d.m.op("drbd new minor")()
	return d.Kernel.NewMinor(context.WithoutCancel(ctx), resource, volume, minor)
}

func (d stallingDRBD) Attach(ctx context.Context, minor uint32, b drbd.Backing) error {
	defer d.m.op("drbd attach")()
	return d.Kernel.Attach(context.WithoutCancel(ctx), minor, b)
}

func (d stallingDRBD) Detach(ctx context.Context, minor uint32, force bool) error {
	defer d.m.op("drbd detach")()
	return d.Kernel.Detach(context.WithoutCancel(ctx), minor, force)
}

func (d stallingDRBD) Connect(ctx context.Context, resource string, p drbd.Peer) error {
	defer d.m.op("drbd connect")()
	return d.Kernel.Connect(context.WithoutCancel(ctx), resource, p)
}

func (d stallingDRBD) Primary(ctx context.Context, minor uint32, force bool) error {
	defer d.m.op("drbd primary")()
	return d.Kernel.Primary(context.WithoutCancel(ctx), minor, force)
}

func (d stallingDRBD) Secondary(ctx context.Context, minor uint32) error {
	defer d.m.op("drbd secondary")()
	return d.Kernel.Secondary(context.WithoutCancel(ctx), minor)
}

func (d stallingDRBD) Down(ctx context.Context, resource string) error {
	defer d.m.op("drbd down")()
	return d.Kernel.Down(context.WithoutCancel(ctx), resource)
}

// stalls starts the engine on a machine on which an operation can stall.
func (s *stand) stalls(first bool) *stalling {
	m := &stalling{Machine: s.sim, first: first}
	s.machine, s.lvm = m, m
	s.opt.DRBD = func() (drbd.Kernel, error) {
		k, err := s.sim.DRBD()
		return stallingDRBD{k, m}, err
	}
	s.start()
	return m
}

// TestStalls: one operation of one call in the life of a volume returns after its caller has gone. The call succeeds when it is repeated, also
// after a call that undoes it or a restart; nothing is mounted or unlocked that should not be, and nothing is left at the end. The cases follow from
// the seed: DRIVEBAY_STALL_CASES=5000 DRIVEBAY_STALL_FROM=1000.
func TestStalls(t *testing.T) {
	stallCases(t, stallOnce)
}

func stallCases(t *testing.T, once func(*testing.T, *rand.Rand)) {
	number := func(name string, otherwise uint64) uint64 {
		if n, err := strconv.ParseUint(os.Getenv(name), 10, 32); err == nil {
			return n
		}
		return otherwise
	}
	from, cases := number("DRIVEBAY_STALL_FROM", 1), number("DRIVEBAY_STALL_CASES", 60)
	for seed := from; seed < from+cases; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			once(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func stallOnce(t *testing.T, random *rand.Rand) {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	kind, encrypted := pick("ext4 on a partition", "a partition", "xfs on linear", "ext4 on thin", "a mirror"), random.IntN(3) == 0
	replicates := random.IntN(4) == 0
	of := requests()
	if encrypted = encrypted && encryptedRequests()[kind].Class.Encryption != ""; encrypted {
		of = encryptedRequests()
	}
	r, n, first, then := of[kind], 1+random.IntN(14), random.IntN(2) == 0, pick("again", "undone", "restart")
	r.Name, r.Size.Required = "v", 1<<30
	onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir(), Tick: time.Second}, func(s *stand) {
		defer time.Sleep(time.Hour)
		m := s.stalls(first)
		calls := s.life(r)
		if replicates {
			calls = s.lifeReplicated(r)
		}
		chosen := random.IntN(len(calls))
		for i, c := range calls {
			if i != chosen {
				s.eventually(c.name, c.do)
				continue
			}
			m.arm(n)
			err := c.do()
			m.arm(0)
			if then == "undone" && c.undo != nil {
				s.eventually(c.name+" undone", c.undo)
				time.Sleep(30 * time.Minute)
				c.over(s)
			}
			if then == "restart" {
				time.Sleep(stall) // a process does not end, nor gives up its lock on the machine, before the kernel has returned
				s.start()
			}
			s.eventually(c.name+" again", c.do)
			if s.Failed() {
				s.Fatalf("%s, encrypted: %v; %s, then %s; operation %d, done first: %v, is %q; first answer: %v", kind, encrypted, c.name, then, n, first, m.hit, err)
			}
		}
		time.Sleep(30 * time.Minute)
		s.blank()
		s.nothingUnlocked()
		if s.Failed() {
			s.Fatalf("%s, encrypted: %v; %s, then %s; operation %d, done first: %v, is %q", kind, encrypted, calls[chosen].name, then, n, first, m.hit)
		}
	})
}

// lifeCall is a call in the life of a volume, and the one that undoes it; over checks that it is undone.
type lifeCall struct {
	name     string
	do, undo func() error
	over     func(*stand)
}

// life returns the calls that make, use and delete a volume.
func (s *stand) life(r drivebay.VolumeRequest) []lifeCall {
	key, grown := rightKey, drivebay.SizeRange{Required: 1280 << 20}
	v := func() drivebay.Volume { return drivebay.Volume{ID: drivebay.VolumeID(r.Name), Mode: r.Mode()} }
	make := func() error { _, err := s.e.CreateVolume(s.Context(), r); return err }
	remove := func() error { return s.e.DeleteVolume(s.Context(), v().ID) }
	stage := func() error { return s.stage(s.of(v()).Volume, with(key)) }
	unstage := func() error { return s.unstage(v()) }
	publish := func() error { return s.publish(s.of(v()).Volume, "pod") }
	unpublish := func() error { return s.unpublish(v(), "pod") }
	snapshot := func() error { _, err := s.e.CreateSnapshot(s.Context(), "s", v().ID); return err }
	unsnapshot := func() error { return s.e.DeleteSnapshot(s.Context(), drivebay.SnapshotID("s")) }
	clone := func(from drivebay.Source) func() error {
		return func() error {
			c := r
			c.Name, c.Source, c.Size.Required = "c", from, s.of(v()).Size
			_, err := s.e.CreateVolume(s.Context(), c)
			return err
		}
	}
	unclone := func() error { return s.e.DeleteVolume(s.Context(), drivebay.VolumeID("c")) }
	none := func(*stand) {}
	unmounted := func(path string) func(*stand) {
		return func(s *stand) {
			if n := len(s.mounts(path)); n > 0 {
				s.Errorf("%d mounts at %s", n, path)
			}
		}
	}
	out := []lifeCall{
		{"create", make, remove, func(s *stand) { s.blank() }},
		{"stage", stage, unstage, func(s *stand) { unmounted(staging(v()))(s); s.nothingUnlocked() }},
		{"publish", publish, unpublish, unmounted(target(v(), "pod"))},
		{"expand", func() error { _, _, err := s.e.ExpandVolume(s.Context(), v().ID, grown); return err }, nil, none},
	}
	if r.Class.Encryption != "" || !r.Block {
		out = append(out, lifeCall{"expand on the node", func() error {
			_, err := s.e.ExpandNode(s.Context(), v().ID, staging(v()), grown, secrets(key))
			return err
		}, nil, none})
	}
	if r.Class.Encryption != "" {
		out = append(out, lifeCall{"rotate", func() error {
			err := s.e.RotateKey(s.Context(), drivebay.KeyRequest{Volume: v().ID, Secrets: secrets(key), New: secrets("another key")})
			if err == nil {
				key = "another key"
			}
			return err
		}, nil, none})
	}
	if r.Class.Backing == drivebay.BackingThin {
		of := clone(drivebay.Source{Snapshot: drivebay.SnapshotID("s")})
		out = append(out, lifeCall{"snapshot", snapshot, unsnapshot, none}, lifeCall{"volume of the snapshot", of, unclone, none}, lifeCall{"delete it", unclone, nil, none},
			lifeCall{"delete snapshot", unsnapshot, nil, none}, lifeCall{"clone", clone(drivebay.Source{Volume: v().ID}), unclone, none}, lifeCall{"delete clone", unclone, nil, none})
	}
	return append(out, lifeCall{"unpublish", unpublish, publish, none}, lifeCall{"unstage", unstage, stage, none}, lifeCall{"delete", remove, nil, none})
}

// lifeReplicated returns the calls that make, replicate, use and delete a volume, whose peer is not there.
func (s *stand) lifeReplicated(r drivebay.VolumeRequest) (out []lifeCall) {
	v := drivebay.Volume{ID: drivebay.VolumeID(r.Name)}
	c := replicationOf(v)
	enable := func() error { return s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)) }
	disable := func() error { return s.e.DisableReplication(s.Context(), c) }
	demote := func() error { return s.e.DemoteVolume(s.Context(), c) }
	promote := func() error { return s.e.PromoteVolume(s.Context(), byForce(c)) }
	none := func(*stand) {}
	for _, call := range s.life(r) {
		switch call.name {
		case "stage":
			out = append(out, lifeCall{"enable", enable, disable, none})
		case "expand", "expand on the node": // takes the peer
			continue
		case "delete":
			out = append(out, lifeCall{"demote", demote, promote, none}, lifeCall{"promote", promote, demote, none}, lifeCall{"disable", disable, nil, none})
		}
		if strings.Contains(call.name, "snapshot") || strings.Contains(call.name, "clone") || strings.Contains(call.name, " it") {
			continue
		}
		out = append(out, call)
	}
	return out
}

// eventually repeats a call as a sidecar does.
func (s *stand) eventually(what string, call func() error) {
	s.Helper()
	var err error
	for range 60 {
		if err = call(); err == nil {
			return
		}
		time.Sleep(30 * time.Second)
	}
	s.Errorf("%s never succeeds: %v", what, err)
}

func (s *stand) nothingUnlocked() {
	s.Helper()
	names, err := s.sim.ReadDir("sys/block")
	s.must(err)
	for _, name := range names {
		if title, _ := s.sim.ReadFile("sys/block/" + name + "/dm/name"); strings.HasPrefix(string(title), "drivebay-") && !strings.HasPrefix(string(title), "drivebay--") {
			s.Errorf("%s is unlocked", title)
		}
	}
}
