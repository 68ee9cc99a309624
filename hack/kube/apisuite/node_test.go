//go:build kube

package apisuite

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/heartbeat"
	"github.com/drivebay/drivebay/internal/kube/volumes"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
	"k8s.io/client-go/rest"
)

const (
	kubelet = "/var/lib/kubelet"
	gib     = 1 << 30
)

// node is a node of the cluster: the engines of a simulated machine, and the part of the node in the objects.
type node struct {
	name   string
	sim    *hostsim.Machine
	store  *store.Mem
	drives *drivemgr.Manager
	engine *volume.Engine
	// calls counts the calls that the objects have caused.
	calls  *counted
	log    *slog.Logger           // nil: that of the test
	secret func() (string, error) // of replicated volumes
	// unclaimed is true if the configuration of the node claims no drives.
	unclaimed bool

	stopEngine, stopKube func()
}

// newNode returns a node with claimed drives, at work.
func newNode(t *testing.T, a *API, name string, drives int) *node {
	t.Helper()
	return newLoggedNode(t, a, name, drives, nil)
}

func newLoggedNode(t *testing.T, a *API, name string, drives int, log *slog.Logger) *node {
	t.Helper()
	n := newNodeOn(simOf(t, name, drives), name)
	n.log = log
	n.startEngine(t)
	n.startKube(t, a)
	return n
}

func newNodeOn(sim *hostsim.Machine, name string) *node {
	return &node{name: name, sim: sim, store: store.Memory()}
}

// startEngine starts the daemon of the node without Kubernetes.
func (n *node) startEngine(t *testing.T) {
	t.Helper()
	var claim drivebay.Selectors
	if !n.unclaimed {
		if err := claim.UnmarshalText([]byte("all")); err != nil {
			t.Fatal(err)
		}
	}
	if n.log == nil {
		n.log = logger(t)
	}
	n.drives = drivemgr.New(n.sim, n.store, drivemgr.Options{Claim: claim, Log: n.log})
	var err error
	if n.engine, err = volume.New(n.sim, n.drives, n.store, lvm.New(n.sim, ""), volume.Options{Node: n.name, Roots: []string{kubelet}, DRBD: n.sim.DRBD, Log: n.log}); err != nil {
		t.Fatal(err)
	}
	stopDrives, stopVolumes := run(t, n.drives.Run), run(t, n.engine.Run)
	n.stopEngine = func() { stopVolumes(); stopDrives() }
	class, err := drivebay.ParseClass(nil)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "room on node "+n.name, func() bool {
		c, err := n.engine.Capacity(t.Context(), class)
		return err == nil && (c.Available > 0 || n.unclaimed) && n.engine.Listed() == nil
	})
}

// startKube starts the part of the node in the objects.
func (n *node) startKube(t *testing.T, a *API) {
	t.Helper()
	n.startKubeAs(t, a.Config())
}

func (n *node) startKubeAs(t *testing.T, config *rest.Config) {
	t.Helper()
	n.calls = &counted{Engine: n.engine}
	beat := heartbeat.New(heartbeat.Options{Node: n.name, Volumes: n.engine, Drives: n.drives, Replicates: n.engine.Replicates, Leases: leasesOf(t, config), Log: n.log, Every: beatEvery})
	part := volumes.New(volumes.Options{Name: n.name, Engine: n.calls, Objects: volumesAs(t, config), Snapshots: snapshotsAs(t, config), Log: n.log,
		ReplicationSecret: n.secret, Mirrored: beat.Mirrored})
	stopPart, stopBeat := run(t, part.Run), run(t, beat.Run)
	n.stopKube = func() { stopPart(); stopBeat() }
}

// restart ends the daemon and starts it again with what its store and its drives have.
func (n *node) restart(t *testing.T, a *API) {
	t.Helper()
	n.stopKube()
	n.stopEngine()
	n.startEngine(t)
	n.startKube(t, a)
}

// counted counts the calls of an engine that change volumes.
type counted struct {
	*volume.Engine
	mu                      sync.Mutex
	create, delete, enlarge int
	heal                    int
}

func (c *counted) count(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

// creations is how often the engine was asked to make a volume.
func (c *counted) creations() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.create
}

func (c *counted) CreateVolume(ctx context.Context, r drivebay.VolumeRequest) (drivebay.Volume, error) {
	c.count(&c.create)
	return c.Engine.CreateVolume(ctx, r)
}

func (c *counted) Heal(ctx context.Context, r drivebay.HealRequest) (drivebay.HealReport, error) {
	c.count(&c.heal)
	return c.Engine.Heal(ctx, r)
}

func (c *counted) DeleteVolume(ctx context.Context, id string) error {
	c.count(&c.delete)
	return c.Engine.DeleteVolume(ctx, id)
}

func (c *counted) ExpandVolume(ctx context.Context, id string, r drivebay.SizeRange) (drivebay.Volume, bool, error) {
	c.count(&c.enlarge)
	return c.Engine.ExpandVolume(ctx, id, r)
}

func volumesOf(t *testing.T, a *API) client.Volumes {
	t.Helper()
	return volumesAs(t, a.Config())
}

func volumesAs(t *testing.T, config *rest.Config) client.Volumes {
	t.Helper()
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.NewVolumes(c)
}

func snapshotsAs(t *testing.T, config *rest.Config) client.Snapshots {
	t.Helper()
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.NewSnapshots(c)
}

// beatEvery is the time between two renewals of the Lease of a node in these tests.
const beatEvery = time.Second

func leasesOf(t *testing.T, config *rest.Config) client.Leases {
	t.Helper()
	c, err := client.NewLeases(config, "default")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// run runs a part until the test ends, or until stop.
func run(t *testing.T, f func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	go func() { end <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-end; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func requestFor(name string, size uint64) drivebay.VolumeRequest {
	c, _ := drivebay.ParseClass(nil)
	return drivebay.VolumeRequest{Name: name, Size: drivebay.SizeRange{Required: size}, Class: c}
}

// object waits until a volume has an object for which is holds.
func (n *node) object(t *testing.T, all client.Volumes, name, what string, is func(*v1alpha1.Volume) bool) *v1alpha1.Volume {
	t.Helper()
	var o *v1alpha1.Volume
	eventually(t, "volume "+name+" "+what, func() bool {
		var err error
		o, err = all.Get(t.Context(), drivebay.VolumeID(name))
		return err == nil && is(o)
	})
	return o
}

func isPhase(p v1alpha1.VolumePhase) func(*v1alpha1.Volume) bool {
	return func(o *v1alpha1.Volume) bool {
		return o.Status.Phase == p && o.Status.ObservedGeneration == o.Generation
	}
}
