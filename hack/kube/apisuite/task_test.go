//go:build kube

package apisuite

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/csi-addons/spec/lib/go/identity"
	"github.com/csi-addons/spec/lib/go/reclaimspace"
	"github.com/csi-addons/spec/lib/go/replication"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/addons"
	"github.com/drivebay/drivebay/internal/hostsim"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// side is a volume of a node, as the calls of CSI-Addons name it, and the parameters of its replication.
type side struct {
	*node
	id    string
	class map[string]string
}

func (s side) source() *replication.ReplicationSource {
	return &replication.ReplicationSource{Type: &replication.ReplicationSource_Volume{Volume: &replication.ReplicationSource_VolumeSource{VolumeId: s.id}}}
}

// TestKubeTasks: the controller passes the calls of CSI-Addons to the node that has the volume, whichever controller leads, and
// no object has a secret. Two nodes of the cluster are the two sites.
func TestKubeTasks(t *testing.T) {
	const secret = "correct-horse"
	a := Up(t)
	nodeWith := func(name string, secret func() (string, error)) *node {
		n := newNodeOn(simOf(t, name, 2), name)
		n.secret = secret
		n.startEngine(t)
		n.startKube(t, a)
		return n
	}
	own := func() (string, error) { return secret, nil }
	one, two, bare := nodeWith("node-1", own), nodeWith("node-2", own), nodeWith("node-3", nil)
	hostsim.Join(one.sim, two.sim)
	c, _ := newController(t, a.Config())
	ready(t, c, "node-1", "node-2", "node-3")
	sideOf := func(n *node, local, peer, role string) side {
		r := requestFor(n.name, gib)
		r.Nodes = []string{n.name}
		v, err := c.CreateVolume(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return side{n, v.ID, map[string]string{"drivebay.io/localAddress": local, "drivebay.io/peerAddress": peer, "drivebay.io/pair": "shop", "drivebay.io/role": role}}
	}
	x, y, z := sideOf(one, "10.0.0.1:7800", "10.0.0.2:7800", "source"), sideOf(two, "10.0.0.2:7800", "10.0.0.1:7800", "target"), sideOf(bare, "10.0.0.3:7800", "10.0.0.2:7800", "source")
	c.Follow("another controller leads") // kubernetes-csi-addons chooses the one that it calls

	conn := dial(t, serve(t, addons.New(nil, addons.Options{Name: "drivebay.io", Version: "test", Cluster: c, Log: logger(t)})))
	to, ctx := replication.NewControllerClient(conn), t.Context()
	caps, err := identity.NewIdentityClient(conn).GetCapabilities(ctx, &identity.GetCapabilitiesRequest{})
	if err != nil || !slices.ContainsFunc(caps.Capabilities, func(c *identity.Capability) bool {
		return c.GetVolumeReplication().GetType() == identity.Capability_VolumeReplication_VOLUME_REPLICATION
	}) {
		t.Errorf("%v, %v", caps, err)
	}
	want := func(what string, err error, code codes.Code) {
		t.Helper()
		if status.Code(err) != code {
			t.Errorf("%s: %v, want %v", what, err, code)
		}
	}
	secrets := map[string]string{drivebay.SecretReplication: secret}
	enable := func(s side) error {
		_, err := to.EnableVolumeReplication(ctx, &replication.EnableVolumeReplicationRequest{ReplicationSource: s.source(), Parameters: s.class, Secrets: secrets})
		return err
	}
	promote := func(ctx context.Context, s side, force bool) error {
		_, err := to.PromoteVolume(ctx, &replication.PromoteVolumeRequest{ReplicationSource: s.source(), Parameters: s.class, Secrets: secrets, Force: force})
		return err
	}
	demote := func(s side) error {
		_, err := to.DemoteVolume(ctx, &replication.DemoteVolumeRequest{ReplicationSource: s.source(), Parameters: s.class, Secrets: secrets})
		return err
	}
	healthy := func(s side) bool {
		info, err := to.GetVolumeReplicationInfo(ctx, &replication.GetVolumeReplicationInfoRequest{ReplicationSource: s.source()})
		return err == nil && info.Status == replication.GetVolumeReplicationInfoResponse_HEALTHY && time.Since(info.LastSyncTime.AsTime()) < time.Minute
	}
	_, err = to.GetVolumeReplicationInfo(ctx, &replication.GetVolumeReplicationInfoRequest{ReplicationSource: x.source()})
	want("info before", err, codes.FailedPrecondition)
	want("promoted before", promote(ctx, x, false), codes.FailedPrecondition)
	want("unknown volume", enable(side{nil, drivebay.VolumeID("none"), x.class}), codes.NotFound)
	want("a node without a secret", enable(z), codes.FailedPrecondition)
	for range 2 { // each call can be repeated
		want("enabled", enable(x), codes.OK)
		want("enabled", enable(y), codes.OK)
	}
	eventually(t, "both sides have the same data", func() bool { return healthy(x) && healthy(y) })

	want("promoted beside the primary", promote(ctx, y, false), codes.FailedPrecondition)
	want("demoted", demote(x), codes.OK)
	eventually(t, "promoted", func() bool { return promote(ctx, y, false) == nil })
	eventually(t, "resynchronized", func() bool {
		r, err := to.ResyncVolume(ctx, &replication.ResyncVolumeRequest{ReplicationSource: x.source(), Parameters: x.class, Secrets: secrets, Force: true})
		return err == nil && r.Ready
	})
	want("demoted", demote(y), codes.OK)
	eventually(t, "promoted again", func() bool { return promote(ctx, x, false) == nil })
	eventually(t, "both sides have the same data again", func() bool { return healthy(x) && healthy(y) })
	if _, err := reclaimspace.NewReclaimSpaceControllerClient(conn).ControllerReclaimSpace(ctx, &reclaimspace.ControllerReclaimSpaceRequest{VolumeId: z.id}); err != nil {
		t.Errorf("reclaim: %v", err)
	}

	// What a caller did not wait for is not done later.
	y.stopKube()
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	err = promote(short, y, true)
	cancel()
	if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Unavailable {
		t.Errorf("the node does not answer: %v", err)
	}
	eventually(t, "its task is taken back", func() bool {
		o, err := volumesOf(t, a).Get(ctx, y.id)
		return err == nil && o.Spec.Task == nil
	})
	y.startKube(t, a)
	eventually(t, "a task of the node that is back", func() bool { return demote(y) == nil })
	if v, _ := y.engine.Volumes().Get(y.id); v.Replication.Primary {
		t.Error("a task that was taken back was done")
	}
	for _, s := range []side{x, y} {
		o, err := volumesOf(t, a).Get(ctx, s.id)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(o); err != nil || strings.Contains(string(text), secret) {
			t.Errorf("the object has the secret: %v", err)
		}
	}
	for _, s := range []side{x, y} {
		eventually(t, "disabled", func() bool {
			_, err := to.DisableVolumeReplication(ctx, &replication.DisableVolumeReplicationRequest{ReplicationSource: s.source(), Parameters: s.class, Secrets: secrets})
			return err == nil
		})
	}
	_, err = to.GetVolumeReplicationInfo(ctx, &replication.GetVolumeReplicationInfoRequest{ReplicationSource: x.source()})
	want("info after", err, codes.FailedPrecondition)
}

// simOf returns a machine with some drives.
func simOf(t *testing.T, name string, drives int) *hostsim.Machine {
	t.Helper()
	sim, err := hostsim.New(hostsim.Spec{Drives: []hostsim.Group{{Count: drives, Kind: hostsim.KindNVMe, Serial: name + "-{n}", Size: "2TB"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	return sim
}
