//go:build kube

package apisuite

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/csi/csitest"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/kube"
	"github.com/drivebay/drivebay/internal/kube/controller"
)

// nodes3 are three nodes and their controller. Each node has its drives in bays.
type nodes3 struct {
	*testing.T
	api   *API
	c     *controller.Controller
	nodes map[string]*node
	pods  []*blockPod

	stopController func()
}

// newCluster returns a cluster whose nodes have the given number of drives.
func newCluster(t *testing.T, drives map[string]int) *nodes3 {
	t.Helper()
	c := &nodes3{T: t, api: Up(t), nodes: map[string]*node{}}
	for name, count := range drives {
		c.nodes[name] = c.newNode(name, count)
	}
	c.startController()
	return c
}

func (c *nodes3) startController() {
	c.Helper()
	c.c, c.stopController = newController(c.T, c.api.Config())
	ready(c.T, c.c, "node-1", "node-2", "node-3")
}

func (c *nodes3) newNode(name string, drives int) *node {
	c.Helper()
	sim, err := hostsim.New(hostsim.Spec{
		Machine:    name,
		Enclosures: []hostsim.Enclosure{{Name: "front", Kind: hostsim.EnclosureSES, Bays: 8}},
		Drives:     []hostsim.Group{{Bays: fmt.Sprintf("0-%d", drives-1), Kind: hostsim.KindSATASSD, Serial: name + "-{n}", Size: "960GB"}},
	})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(sim.Close)
	n := newNodeOn(sim, name)
	n.startEngine(c.T)
	c.startKube(n)
	return n
}

// startKube starts all parts of the node that write objects.
func (c *nodes3) startKube(n *node) {
	c.Helper()
	edge, err := kube.NewNode(kube.Options{Kubeconfig: c.api.Kubeconfig, Namespace: "default", Node: n.name, Engine: n.drives, Volumes: n.engine, Clock: n.sim, Log: logger(c.T)})
	if err != nil {
		c.Fatal(err)
	}
	n.stopKube = run(c.T, edge.Run)
}

// create makes a volume by the controller, and a pod that has written to it.
func (c *nodes3) create(name string, class map[string]string, nodes ...string) *blockPod {
	c.Helper()
	r := requestFor(name, gib)
	var err error
	if r.Class, err = drivebay.ParseClass(class); err != nil {
		c.Fatal(err)
	}
	r.Nodes, r.Block = nodes, true
	v, err := create(c.T, c.c, r)
	if err != nil {
		c.Fatal(err)
	}
	p := &blockPod{nodes3: c, n: c.nodes[v.Node], v: v, pages: map[int64][32]byte{}, rng: rand.New(rand.NewPCG(1, uint64(len(c.pods))))}
	c.pods = append(c.pods, p)
	p.start()
	p.write(16)
	return p
}

// check compares what all pods have written with what they read.
func (c *nodes3) check(when string) {
	c.Helper()
	for _, p := range c.pods {
		p.check(when)
	}
}

// drive returns the state of the object of a drive.
func (c *nodes3) drive(name string) (out v1alpha1.Drive) {
	c.Helper()
	if err := json.Unmarshal([]byte(c.api.Kubectl(c.T, "", "get", "drive", name, "--output", "json")), &out); err != nil {
		c.Fatal(err)
	}
	return out
}

func (c *nodes3) awaitDrive(name, what string, is func(*v1alpha1.DriveStatus) bool) {
	c.Helper()
	Eventually(c.T, 2*time.Minute, name+" "+what, func() string {
		if d := c.drive(name); !is(&d.Status) {
			text, _ := json.Marshal(d.Status)
			return string(text)
		}
		return ""
	})
}

// TestKubeCluster lets a cluster of three nodes live through what happens to them: volumes go to the node with room, a
// drive fails and is replaced with kubectl alone, meanwhile the API server goes away, the controller dies, and a node is
// silent. At each point the pods read what they have written.
func TestKubeCluster(t *testing.T) {
	c := newCluster(t, map[string]int{"node-1": 6, "node-2": 4, "node-3": 3})
	lvm, mirror := map[string]string{drivebay.ParameterBacking: "lvm"}, map[string]string{drivebay.ParameterBacking: "mirror"}
	if p := c.create("anywhere", nil); p.n.name != "node-1" {
		t.Errorf("a volume for any node is on %s, and node-1 has the most room", p.n.name)
	}
	moved := c.create("lvm-1", lvm, "node-1")
	for _, name := range []string{"node-1", "node-2", "node-3"} {
		c.create("mirror-"+name, mirror, name)
	}
	c.create("partition-2", nil, "node-2")
	c.check("after the creation")

	// The drive below a logical volume fails.
	n1, old := c.nodes["node-1"], moved.view().Location.Drives[0]
	object := old + ".node-1"
	serial, bay := c.drive(object).Status.Identity.Serial, c.drive(object).Status.Bay.Name
	inject(t, n1, hostsim.Fault{Drive: serial, Fault: "fail"})
	if err := n1.drives.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.awaitDrive(object, "is BAD", func(s *v1alpha1.DriveStatus) bool { return s.Health == "BAD" && s.Capacity.Free == "" })

	// Its data leave it while the API server is away and the pods write.
	request(t, c.api, object, `{"release":true}`)
	c.api.Stop()
	for began := time.Now(); time.Since(began) < away(t); time.Sleep(time.Second) {
		for _, p := range c.pods {
			p.write(4)
		}
	}
	c.check("while the API server is away")
	c.stopController() // one that dies with it
	c.api.Start(t)
	c.startController()
	for _, p := range c.pods { // a partition is moved while no pod uses it
		if v := p.view(); p.n == n1 && !v.Location.OnLVM() && slices.Contains(v.Location.Drives, old) {
			p.stop()
			Eventually(t, 2*time.Minute, p.v.Name+" leaves the drive", func() string {
				if slices.Contains(p.view().Location.Drives, old) {
					return p.view().Work
				}
				return ""
			})
			p.start()
		}
	}
	c.awaitDrive(object, "is RELEASED", func(s *v1alpha1.DriveStatus) bool { return s.Usage == "RELEASED" })
	c.check("after the evacuation")

	// The drive is taken out, and a new one takes its place.
	request(t, c.api, object, `{"approveRemoval":"`+old+`"}`)
	c.awaitDrive(object, "may be pulled", func(s *v1alpha1.DriveStatus) bool { return s.Usage == "REMOVED" && s.Bay.FaultLit })
	inject(t, n1, hostsim.Fault{Drive: serial, Fault: "replace", Args: hostsim.Args{"serial": "SPARE-1"}})
	var spare string
	Eventually(t, time.Minute, "the new drive is in use", func() string {
		var list v1alpha1.DriveList
		text := c.api.Kubectl(t, "", "get", "drives", "--output", "json")
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatal(err)
		}
		for _, d := range list.Items {
			if s := d.Status; s.Node == "node-1" && s.Identity.Serial == "SPARE-1" && s.Bay.Name == bay && s.ClaimedBy != "" && s.Health == "GOOD" {
				spare = d.Name
				return ""
			}
		}
		return text
	})
	c.check("after the replacement")
	onSpare := c.create("after", lvm, "node-1")
	t.Logf("drive %s is replaced by %s; the next volume is on %v", old, spare, onSpare.view().Location.Drives)

	// A node is silent, and returns.
	n2 := c.nodes["node-2"]
	n2.stopKube()
	reason := func() string {
		if v, ok := c.c.Volumes().Get(drivebay.VolumeID("partition-2")); ok && v.Condition.Abnormal() {
			return v.Condition[0].Reason
		}
		return ""
	}
	Eventually(t, 2*time.Minute, "the volumes of node-2 are abnormal", func() string {
		if r := reason(); r != "NodeDown" {
			return "reason " + r
		}
		return ""
	})
	for _, p := range c.pods {
		p.write(4)
	}
	c.check("while a node is silent")
	c.startKube(n2)
	Eventually(t, time.Minute, "the volumes of node-2 are well", reason)
	c.check("at the end")
}

// away is how long the API server is away: 5 s, or DRIVEBAY_KUBE_AWAY.
func away(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(cmp.Or(os.Getenv("DRIVEBAY_KUBE_AWAY"), "5s"))
	if err != nil {
		t.Fatalf("DRIVEBAY_KUBE_AWAY: %v", err)
	}
	return d
}

func inject(t *testing.T, n *node, f hostsim.Fault) {
	t.Helper()
	if err := n.sim.Inject(f); err != nil {
		t.Fatal(err)
	}
}

// blockPod is a pod that uses a volume as a block device.
type blockPod struct {
	*nodes3
	n     *node
	v     drivebay.Volume
	pages map[int64][32]byte // the checksums of what it has written, by offset
	rng   *rand.Rand
}

const podPage = 64 << 10

func (p *blockPod) staging() string { return kubelet + "/plugins/" + p.v.ID }
func (p *blockPod) target() string  { return kubelet + "/pods/" + p.v.ID }

// start stages and publishes the volume, as the kubelet does before the pod starts.
func (p *blockPod) start() {
	p.Helper()
	if err := (csitest.Simulated{Machine: p.n.sim, Root: kubelet}).MakeFolder(p.staging()); err != nil {
		p.Fatal(err)
	}
	if err := p.n.engine.StageVolume(p.Context(), drivebay.StageRequest{Volume: p.v.ID, Path: p.staging(), Block: true, Access: drivebay.AccessWriter}); err != nil {
		p.Fatal(err)
	}
	if err := p.n.engine.PublishVolume(p.Context(), drivebay.PublishRequest{Volume: p.v.ID, Staging: p.staging(), Target: p.target(), Block: true, Access: drivebay.AccessWriter}); err != nil {
		p.Fatal(err)
	}
}

// stop unpublishes and unstages the volume, as the kubelet does after the pod ended.
func (p *blockPod) stop() {
	p.Helper()
	if err := errors.Join(p.n.engine.UnpublishVolume(p.Context(), p.v.ID, p.target()), p.n.engine.UnstageVolume(p.Context(), p.v.ID, p.staging())); err != nil {
		p.Fatal(err)
	}
}

// view returns the volume as the engine of its node shows it.
func (p *blockPod) view() *drivebay.VolumeView {
	p.Helper()
	v, ok := p.n.engine.Volumes().Get(p.v.ID)
	if !ok {
		p.Fatalf("node %s has no volume %s", p.n.name, p.v.Name)
	}
	return v
}

// open opens the device that the pod sees.
func (p *blockPod) open() host.Disk {
	p.Helper()
	for _, b := range p.view().Publications {
		_, name, _ := strings.Cut(b.Device, " ")
		if b.Path != p.target() || name == "" {
			continue
		}
		disk, err := p.n.sim.OpenDisk(hostsim.As(p.Context(), "pod"), "/dev/"+name, false)
		if err != nil {
			p.Fatalf("%s: %v", p.v.Name, err)
		}
		return disk
	}
	p.Fatalf("%s is not published", p.v.Name)
	return nil
}

func (p *blockPod) write(pages int) {
	p.Helper()
	disk := p.open()
	defer disk.Close()
	for range pages {
		at, b := int64(p.rng.IntN(gib/podPage))*podPage, make([]byte, podPage)
		for i := range b {
			b[i] = byte(p.rng.Uint32())
		}
		if _, err := disk.WriteAt(b, at); err != nil {
			p.Fatalf("%s: %v", p.v.Name, err)
		}
		p.pages[at] = sha256.Sum256(b)
	}
	if err := disk.Sync(); err != nil {
		p.Fatalf("%s: %v", p.v.Name, err)
	}
}

func (p *blockPod) check(when string) {
	p.Helper()
	disk := p.open()
	defer disk.Close()
	b := make([]byte, podPage)
	for at, sum := range p.pages {
		if _, err := disk.ReadAt(b, at); err != nil || sha256.Sum256(b) != sum {
			p.Fatalf("%s: the page at %d of %s is not what was written: %v", when, at, p.v.Name, err)
		}
	}
}
