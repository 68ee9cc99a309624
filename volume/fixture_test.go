package volume_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

const kubelet = "/var/lib/kubelet"

// stand is a machine with its drives and its volumes, in a bubble whose clock
// stands still while anybody works.
type stand struct {
	*testing.T
	sim     *hostsim.Machine
	mgr     *drivemgr.Manager
	st      *store.Mem
	e       *volume.Engine
	opt     volume.Options
	lvm     lvm.Runner    // nil: the machine itself
	over    volume.Store  // of the engine, in place of st; nil: st
	machine host.Worker   // of the engine, in place of sim; nil: sim
	drives  volume.Drives // of the engine, in place of mgr; nil: mgr
	stop    func()
}

var fourDrives = hostsim.Spec{Drives: []hostsim.Group{
	{Count: 2, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "200GB"}, {Count: 2, Kind: hostsim.KindSATAHDD, Serial: "DISK{n}", Size: "4TB"}}}

// onStand runs a test on a machine with two NVMe drives and two hard disks.
func onStand(t *testing.T, test func(*stand)) {
	t.Helper()
	onMachine(t, fourDrives, volume.Options{}, test)
}

func onMachine(t *testing.T, spec hostsim.Spec, opt volume.Options, test func(*stand)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, end := newStand(t, spec, opt)
		defer end()
		test(s)
	})
}

// newStand is a machine in the bubble of a test. Its engine has the DRBD of the machine.
func newStand(t *testing.T, spec hostsim.Spec, opt volume.Options) (s *stand, end func()) {
	t.Helper()
	sim, err := hostsim.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	var claim drivebay.Selectors
	if err := claim.UnmarshalText([]byte("all")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	opt.DRBD = sim.DRBD
	s = &stand{T: t, sim: sim, st: store.Memory(), opt: opt}
	s.mgr = drivemgr.New(sim, s.st, drivemgr.Options{Claim: claim, Tick: opt.Tick, Poll: 300 * opt.Tick, Rescan: 300 * opt.Tick})
	done := make(chan error)
	go func() { done <- s.mgr.Run(ctx) }()
	time.Sleep(30 * time.Second) // listed, looked at, and read
	s.start()
	return s, func() {
		sim.Close()
		s.stop()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// start makes an engine over what is remembered, as a restarted daemon does.
func (s *stand) start() {
	s.Helper()
	s.begin()
	time.Sleep(10 * time.Second)
}

// begin is start that does not wait.
func (s *stand) begin() {
	s.Helper()
	if s.stop != nil {
		s.stop()
	}
	runner := s.lvm
	if runner == nil {
		runner = s.sim
	}
	var over volume.Store = s.st
	if s.over != nil {
		over = s.over
	}
	var machine host.Worker = s.sim
	if s.machine != nil {
		machine = s.machine
	}
	var drives volume.Drives = s.mgr
	if s.drives != nil {
		drives = s.drives
	}
	e, err := volume.New(machine, drives, over, lvm.New(runner, ""), s.opt)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	s.e, s.stop = e, func() {
		cancel()
		if err := <-done; err != nil {
			s.Error(err)
		}
	}
}

// nextBoot boots the machine. Its disks are others for the kernel, and are listed again as by a daemon that starts.
func (s *stand) nextBoot() {
	s.Helper()
	s.sim.NextBoot()
	s.must(s.mgr.Refresh(s.Context()))
}

func (s *stand) make(name string, r drivebay.VolumeRequest) drivebay.Volume {
	s.Helper()
	r.Name = name
	if r.Size.Required == 0 {
		r.Size.Required = 1 << 30
	}
	if r.Class.Backing == "" {
		r.Class.Backing, r.Class.Wipe, r.Class.FSType = drivebay.BackingPartition, drivebay.WipeNone, "ext4"
	}
	v, err := s.e.CreateVolume(s.Context(), r)
	if err != nil {
		s.Fatal(err)
	}
	return v
}

// of is what a volume is said to be now.
func (s *stand) of(v drivebay.Volume) *drivebay.VolumeView {
	s.Helper()
	view, ok := s.e.Volumes().Get(v.ID)
	if !ok {
		s.Fatalf("volume %s is not listed", v.ID)
	}
	return view
}

func staging(v drivebay.Volume) string { return kubelet + "/plugins/csi/" + v.ID + "/globalmount" }

func target(v drivebay.Volume, pod string) string {
	return kubelet + "/pods/" + pod + "/volumes/" + v.ID
}

func (s *stand) stage(v drivebay.Volume, change ...func(*drivebay.StageRequest)) error {
	s.Helper()
	r := drivebay.StageRequest{Volume: v.ID, Path: staging(v), Block: v.Mode != drivebay.ModeFS, Access: drivebay.AccessMultiWriter}
	for _, f := range change {
		f(&r)
	}
	return s.e.StageVolume(s.Context(), r)
}

func (s *stand) publish(v drivebay.Volume, pod string, change ...func(*drivebay.PublishRequest)) error {
	s.Helper()
	r := drivebay.PublishRequest{Volume: v.ID, Staging: staging(v), Target: target(v, pod), Block: v.Mode != drivebay.ModeFS, Access: drivebay.AccessMultiWriter}
	for _, f := range change {
		f(&r)
	}
	return s.e.PublishVolume(s.Context(), r)
}

func (s *stand) unpublish(v drivebay.Volume, pod string) error {
	return s.e.UnpublishVolume(s.Context(), v.ID, target(v, pod))
}

func (s *stand) unstage(v drivebay.Volume) error {
	return s.e.UnstageVolume(s.Context(), v.ID, staging(v))
}

func (s *stand) stats(v drivebay.Volume, path string) (drivebay.VolumeStats, error) {
	return s.e.Stats(s.Context(), drivebay.StatsRequest{Volume: v.ID, Path: path, Staging: staging(v)})
}

// must ends the test at the first error.
func (s *stand) must(errs ...error) {
	s.Helper()
	if err := errors.Join(errs...); err != nil {
		s.Fatal(err)
	}
}

// mounts are what the machine has mounted at a path.
func (s *stand) mounts(path string) []host.Mount {
	s.Helper()
	all, err := s.sim.Mounts(s.Context())
	s.must(err)
	return slices.DeleteFunc(all, func(m host.Mount) bool { return m.Target != path })
}

func place(path string) host.Place {
	return host.Place{Root: kubelet, Name: strings.TrimPrefix(path, kubelet+"/")}
}

func (s *stand) look(path string) host.PlaceKind {
	s.Helper()
	kind, err := s.sim.Look(place(path))
	s.must(err)
	return kind
}

// inject lets a fault happen: to a drive by its id, to a filesystem by its path.
func (s *stand) inject(what, fault string) {
	s.Helper()
	if d, ok := s.mgr.Snapshot().Find(what); ok {
		what = d.Serial
	}
	s.must(s.sim.Inject(hostsim.Fault{Drive: what, Fault: fault}))
}

// reasons are those of a condition.
func reasons(c drivebay.Condition) string {
	var out []string
	for _, f := range c {
		out = append(out, f.Reason)
	}
	return strings.Join(out, " ")
}
