package addons

import (
	"context"
	"slices"
	"testing"

	"github.com/csi-addons/spec/lib/go/identity"
	"github.com/csi-addons/spec/lib/go/reclaimspace"
	"github.com/csi-addons/spec/lib/go/replication"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/addons/healer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nodes are the volumes of a cluster.
type nodes struct {
	Replication
	listed, replicates error
	promoted           drivebay.ReplicationCall
}

func (n *nodes) Listed() error                    { return n.listed }
func (n *nodes) Replicates(context.Context) error { return n.replicates }

func (n *nodes) PromoteVolume(_ context.Context, c drivebay.ReplicationCall) error {
	n.promoted = c
	return nil
}

func (n *nodes) Reclaim(_ context.Context, r drivebay.ReclaimRequest) (out drivebay.Reclaimed, err error) {
	before := uint64(5)
	return drivebay.Reclaimed{Before: &before}, nil
}

func capabilities(t *testing.T, conn *grpc.ClientConn) (out []string) {
	t.Helper()
	r, err := identity.NewIdentityClient(conn).GetCapabilities(t.Context(), &identity.GetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Capabilities {
		if k, is := c.Type.(*identity.Capability_VolumeReplication_); is {
			out = append(out, k.VolumeReplication.Type.String())
		} else {
			out = append(out, kindOf(c))
		}
	}
	return out
}

// TestCluster: a controller answers the calls that need no node, for the volumes of all nodes, and a node leaves them to it.
func TestCluster(t *testing.T) {
	n := &nodes{listed: drivebay.ErrUnavailable, replicates: drivebay.ErrNoSupport}
	conn := dial(t, serve(t, New(nil, Options{Name: "drivebay.io", Cluster: n})))
	probe := func() bool {
		r, err := identity.NewIdentityClient(conn).Probe(t.Context(), &identity.ProbeRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Ready.GetValue()
	}
	if probe() {
		t.Error("ready before the nodes are listed")
	}
	n.listed = nil
	if !probe() {
		t.Error("not ready")
	}
	want := []string{"CONTROLLER_SERVICE", "OFFLINE"}
	if got := capabilities(t, conn); !slices.Equal(got, want) {
		t.Errorf("no node replicates: %v, want %v", got, want)
	}
	n.replicates = nil
	if got, want := capabilities(t, conn), append(want, "VOLUME_REPLICATION", "GET_REPLICATION_DESTINATION_INFO"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := replication.NewControllerClient(conn).PromoteVolume(t.Context(), &replication.PromoteVolumeRequest{ReplicationSource: sourceOf("v"), Force: true}); err != nil || n.promoted.Volume != "v" || !n.promoted.Force {
		t.Errorf("promoted %+v, %v", n.promoted, err)
	}
	if r, err := reclaimspace.NewReclaimSpaceControllerClient(conn).ControllerReclaimSpace(t.Context(), &reclaimspace.ControllerReclaimSpaceRequest{VolumeId: "v"}); err != nil || r.PreUsage.GetUsageBytes() != 5 {
		t.Errorf("reclaimed %v, %v", r, err)
	}
	if _, err := reclaimspace.NewReclaimSpaceControllerClient(conn).ControllerReclaimSpace(t.Context(), &reclaimspace.ControllerReclaimSpaceRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without a volume: %v", err)
	}
	if _, err := healer.NewHealerNodeClient(conn).NodeHealer(t.Context(), &healer.NodeHealerRequest{VolumeId: "v", VolumePath: "/p"}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a call for a node: %v", err)
	}

	e := &engine{}
	e.set(drivebay.Snapshot{Seq: 1})
	node := dial(t, serve(t, New(e, Options{Name: "drivebay.io", Volumes: there(), Replication: n, NodeOnly: true})))
	if got, want := capabilities(t, node), []string{"NODE_SERVICE", "ONLINE", "ENCRYPTIONKEYROTATION"}; !slices.Equal(got, want) {
		t.Errorf("a node: %v, want %v", got, want)
	}
}
