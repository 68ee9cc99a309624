//go:build lab

package suite

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	csiSocket = "/run/drivebay/csi.sock"
	kubelet   = "/var/lib/kubelet"
	// carrying is a daemon that may use every drive of its machine for volumes, and
	// leaves those that turn bad where they are: the tests look at what is on them.
	carrying = quick + "claim: all\nreplacement: {trigger: off}\ncsiEndpoint: unix://" + csiSocket + "\n"
)

// orchestrator speaks CSI with the daemon of a guest, as a container orchestrator
// on that node would.
type orchestrator struct {
	*lab.Machine
	t        *testing.T
	d        *lab.Daemon
	endpoint string
	ctl      wire.ControllerClient
	node     wire.NodeClient
	id       wire.IdentityClient
	wipe     drivebay.Wipe // of new volumes
	config   string        // of the daemon
}

// orchestrate starts a daemon and gives its drives to volumes, but for those that
// are held back.
func orchestrate(t *testing.T, m *lab.Machine) *orchestrator {
	t.Helper()
	return orchestrateBy(t, m, carrying)
}

// orchestrateBy is the same with another configuration.
func orchestrateBy(t *testing.T, m *lab.Machine, config string) *orchestrator {
	t.Helper()
	o := &orchestrator{Machine: m, t: t, wipe: drivebay.WipeNone, config: config}
	o.start()
	return o
}

// start starts the daemon, again after a loss of power.
func (o *orchestrator) start() {
	o.t.Helper()
	o.Sh("mkdir -p %s", kubelet)
	o.d = o.Daemon(o.config)
	o.endpoint = "unix://" + o.Forward(csiSocket)
	conn, err := grpc.NewClient(o.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	o.Must(err)
	o.t.Cleanup(func() { conn.Close() })
	o.ctl, o.node, o.id = wire.NewControllerClient(conn), wire.NewNodeClient(conn), wire.NewIdentityClient(conn)
	o.d.Until("every drive is claimed, every volume known", soon, func(s *drivebay.Snapshot) error {
		for _, d := range s.Drives {
			if d.Claim == nil && len(d.Refusals()) == 0 {
				return fmt.Errorf("%s is not", d.Name)
			}
		}
		if all, err := o.d.Volumes(o.t.Context()); err != nil || all.Seq == 0 {
			return fmt.Errorf("volumes are not known yet: %v", err)
		}
		return nil
	})
}

// For is the same in the hands of a test below.
func (o *orchestrator) For(t *testing.T) *orchestrator {
	out := *o
	out.t, out.Machine, out.d = t, o.Machine.For(t), o.d.For(t)
	return &out
}

// device is the device of a volume that is there.
func (o *orchestrator) device(v vol) string {
	o.t.Helper()
	return o.Sh("findmnt -n -o SOURCE --mountpoint %s", v.staging())
}

// vol is a volume as an orchestrator knows it.
type vol struct {
	id, name string
	fs       string // "" is a block volume
	size     int64
	drives   []string // serial numbers
}

func (v vol) capability() *wire.VolumeCapability {
	c := &wire.VolumeCapability{AccessMode: &wire.VolumeCapability_AccessMode{Mode: wire.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}
	c.AccessType = &wire.VolumeCapability_Mount{Mount: &wire.VolumeCapability_MountVolume{FsType: v.fs}}
	if v.fs == "" {
		c.AccessType = &wire.VolumeCapability_Block{Block: &wire.VolumeCapability_BlockVolume{}}
	}
	return c
}

func (v vol) staging() string { return kubelet + "/plugins/" + v.name }
func (v vol) target() string  { return kubelet + "/pods/" + v.name + "/" + v.name }

// request asks for a volume; size 0 is 320 MiB, which all filesystems can have.
func (o *orchestrator) request(name string, backing drivebay.Backing, fs string, size int64) (vol, *wire.CreateVolumeRequest) {
	if size == 0 {
		size = 320 << 20
	}
	v := vol{name: name, fs: fs, size: size}
	return v, &wire.CreateVolumeRequest{Name: name, VolumeCapabilities: []*wire.VolumeCapability{v.capability()},
		CapacityRange: &wire.CapacityRange{RequiredBytes: size},
		Parameters:    map[string]string{drivebay.ParameterBacking: string(backing), drivebay.ParameterWipe: string(o.wipe)}}
}

// only lets new volumes be made on drives by their serial numbers; none: on all.
func (o *orchestrator) only(on ...string) {
	o.t.Helper()
	s, err := o.d.Snapshot(o.t.Context())
	o.Must(err)
	for _, d := range s.Drives {
		if away := len(on) > 0 && !slices.Contains(on, d.Serial); d.Claim != nil && d.Cordoned != away {
			o.Must(o.d.Cordon(o.t.Context(), d.Serial, away))
		}
	}
}

// create makes a volume on these drives.
func (o *orchestrator) create(name string, backing drivebay.Backing, fs string, size int64, on ...string) vol {
	o.t.Helper()
	o.only(on...)
	v, req := o.request(name, backing, fs, size)
	answer, err := o.ctl.CreateVolume(o.t.Context(), req)
	if err != nil {
		o.t.Fatalf("create %s: %v", name, err)
	}
	v.id, v.size = answer.Volume.VolumeId, answer.Volume.CapacityBytes
	view := o.view(v)
	s, err := o.d.Snapshot(o.t.Context())
	o.Must(err)
	for _, d := range s.Drives {
		if slices.Contains(view.Location.Drives, d.ID) {
			v.drives = append(v.drives, d.Serial)
		}
	}
	if slices.Sort(v.drives); len(on) > 0 && !slices.Equal(v.drives, slices.Sorted(slices.Values(on))) {
		o.t.Fatalf("volume %s is on %v, not on %v", name, v.drives, on)
	}
	return v
}

// view is what our own API says of a volume.
func (o *orchestrator) view(v vol) *drivebay.VolumeView {
	o.t.Helper()
	all, err := o.d.Volumes(o.t.Context())
	o.Must(err)
	view, ok := all.Get(v.id)
	if !ok {
		o.t.Fatalf("volume %s (%s) is not listed", v.name, v.id)
	}
	return view
}

func (o *orchestrator) stage(v vol) error {
	o.Sh("mkdir -p %s", v.staging())
	_, err := o.node.NodeStageVolume(o.t.Context(), &wire.NodeStageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging(), VolumeCapability: v.capability()})
	return err
}

func (o *orchestrator) publish(v vol) error {
	o.Sh("mkdir -p $(dirname %s)", v.target())
	_, err := o.node.NodePublishVolume(o.t.Context(), &wire.NodePublishVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging(), TargetPath: v.target(), VolumeCapability: v.capability()})
	return err
}

func (o *orchestrator) unpublish(v vol) error {
	_, err := o.node.NodeUnpublishVolume(o.t.Context(), &wire.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: v.target()})
	return err
}

func (o *orchestrator) unstage(v vol) error {
	_, err := o.node.NodeUnstageVolume(o.t.Context(), &wire.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging()})
	return err
}

func (o *orchestrator) remove(v vol) error {
	_, err := o.ctl.DeleteVolume(o.t.Context(), &wire.DeleteVolumeRequest{VolumeId: v.id})
	return err
}

// use makes a volume ready for a pod.
func (o *orchestrator) use(all ...vol) {
	o.t.Helper()
	for _, v := range all {
		o.Must(o.stage(v))
		o.Must(o.publish(v))
	}
}

// drop takes a volume from its pod.
func (o *orchestrator) drop(all ...vol) {
	o.t.Helper()
	for _, v := range all {
		if err := o.unpublish(v); err != nil {
			o.t.Errorf("unpublish %s: %v", v.name, err)
		}
		if err := o.unstage(v); err != nil {
			o.t.Errorf("unstage %s: %v", v.name, err)
		}
	}
}

// condition is the word of the older wire, as 1.12 has it.
type condition struct {
	Abnormal bool   `json:"abnormal"`
	Message  string `json:"message"`
}

func (o *orchestrator) call(name string, request, answer any) error {
	text, err := json.Marshal(request)
	o.Must(err)
	got, err := csi.Call(o.t.Context(), o.endpoint, name, string(text))
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(got), answer)
}

// old is the condition that NodeGetVolumeStats and ControllerGetVolume carry.
func (o *orchestrator) old(v vol) (stats, volume condition) {
	o.t.Helper()
	var s struct{ VolumeCondition condition }
	o.Must(o.call("NodeGetVolumeStats", map[string]string{"volumeId": v.id, "volumePath": v.target(), "stagingTargetPath": v.staging()}, &s))
	var c struct {
		Status struct{ VolumeCondition condition }
	}
	o.Must(o.call("ControllerGetVolume", map[string]string{"volumeId": v.id}, &c))
	return s.VolumeCondition, c.Status.VolumeCondition
}

// health are the reasons of the newer wire: of the node for its path, and of the
// controller.
func (o *orchestrator) health(v vol) (node, controller []string) {
	o.t.Helper()
	n, err := o.node.NodeGetVolumeHealth(o.t.Context(), &wire.NodeGetVolumeHealthRequest{VolumeId: v.id, VolumePublishPath: v.target(), StagingTargetPath: v.staging()})
	o.Must(err)
	c, err := o.ctl.ControllerGetVolumeHealth(o.t.Context(), &wire.ControllerGetVolumeHealthRequest{VolumeId: v.id})
	o.Must(err)
	return reasons(n.VolumeHealth), reasons(c.VolumeHealth)
}

func reasons(h *wire.VolumeHealth) []string {
	var out []string
	for _, e := range h.GetHealthStatuses() {
		out = append(out, e.Reason)
	}
	return out
}

// ails waits until both wires say of a volume that a reason is the matter.
func (o *orchestrator) ails(v vol, reason string, since time.Time, limit time.Duration) (took time.Duration) {
	o.t.Helper()
	var node, controller []string
	for {
		node, controller = o.health(v)
		if slices.Contains(controller, reason) && slices.Contains(node, reason) {
			break
		}
		if time.Since(since) > 2*limit+soon {
			o.t.Errorf("%s: %v after the fault the node says %q and the controller %q, not %s", v.name, time.Since(since).Round(time.Second), node, controller, reason)
			return time.Since(since)
		}
	}
	took = time.Since(since)
	within(o.t, v.name+" is "+reason, took, limit)
	stats, volume := o.old(v)
	for call, c := range map[string]condition{"NodeGetVolumeStats": stats, "ControllerGetVolume": volume} {
		if !c.Abnormal || c.Message == "" {
			o.t.Errorf("%s: %s says abnormal %v: %s", v.name, call, c.Abnormal, c.Message)
		}
	}
	if !o.listedAs(v, reason) {
		o.t.Errorf("%s is not in ControllerListVolumeHealth with %s", v.name, reason)
	}
	return took
}

func (o *orchestrator) listedAs(v vol, reason string) bool {
	list, err := o.ctl.ControllerListVolumeHealth(o.t.Context(), &wire.ControllerListVolumeHealthRequest{})
	o.Must(err)
	return slices.ContainsFunc(list.Entries, func(h *wire.VolumeHealth) bool { return h.VolumeId == v.id && slices.Contains(reasons(h), reason) })
}

// well wants nothing to be wrong with volumes.
func (o *orchestrator) well(all ...vol) {
	o.t.Helper()
	for _, v := range all {
		node, controller := o.health(v)
		stats, volume := o.old(v)
		if len(node)+len(controller) > 0 || stats.Abnormal || volume.Abnormal {
			o.t.Errorf("%s: the node says %q, the controller %q; %q", v.name, node, controller, stats.Message)
		}
	}
}

// heals waits until nothing is wrong with a volume any more, but for what may stay.
func (o *orchestrator) heals(v vol, limit time.Duration, but ...string) {
	o.t.Helper()
	var left []string
	for began := time.Now(); ; {
		node, controller := o.health(v)
		left = slices.DeleteFunc(append(node, controller...), func(r string) bool { return slices.Contains(but, r) })
		if len(left) == 0 {
			o.t.Logf("%s is well again after %v", v.name, time.Since(began).Round(time.Millisecond))
			return
		}
		if time.Since(began) > limit {
			o.t.Errorf("%s: after %v it still says %s", v.name, limit, strings.Join(left, " "))
			return
		}
	}
}
