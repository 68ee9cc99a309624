//lint:file-ignore SA1019 callers of the old form still send volume_id

package addons

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/csi-addons/spec/lib/go/identity"
	"github.com/csi-addons/spec/lib/go/replication"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/replication/parameters"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// replicator calls replication.Controller for one volume.
type replicator struct {
	*plugin
	replication.ControllerClient
	id string
}

var sharedSecret = map[string]string{drivebay.SecretReplication: "correct-horse"}

func classOf(change ...string) map[string]string {
	out := map[string]string{parameters.Local: "10.0.0.1:7800", parameters.Peer: "10.0.0.2:7800", parameters.Role: "source"}
	for _, c := range change {
		key, value, _ := strings.Cut(c, "=")
		if out[key] = value; value == "" {
			delete(out, key)
		}
	}
	return out
}

func sourceOf(id string) *replication.ReplicationSource {
	return &replication.ReplicationSource{Type: &replication.ReplicationSource_Volume{Volume: &replication.ReplicationSource_VolumeSource{VolumeId: id}}}
}

func groupOf(id string) *replication.ReplicationSource {
	return &replication.ReplicationSource{Type: &replication.ReplicationSource_Volumegroup{Volumegroup: &replication.ReplicationSource_VolumeGroupSource{VolumeGroupId: id}}}
}

func (r *replicator) want(what string, err error, code codes.Code) {
	r.Helper()
	if status.Code(err) != code {
		r.Errorf("%s: %v, want %v", what, err, code)
	}
}

func (r *replicator) unstage(path string) {
	r.Helper()
	if _, err := wire.NewNodeClient(r.csi).NodeUnstageVolume(r.Context(), &wire.NodeUnstageVolumeRequest{VolumeId: r.id, StagingTargetPath: path}); err != nil {
		r.Fatal(err)
	}
}

// calls are all RPCs that change something, for one volume and its secrets.
func (r *replicator) calls(id string, source *replication.ReplicationSource, parameters, secrets map[string]string) map[string]func() error {
	c := r.ControllerClient
	ctx := r.Context()
	return map[string]func() error{
		"enable": func() error {
			_, err := c.EnableVolumeReplication(ctx, &replication.EnableVolumeReplicationRequest{VolumeId: id, ReplicationSource: source, Parameters: parameters, Secrets: secrets})
			return err
		},
		"disable": func() error {
			_, err := c.DisableVolumeReplication(ctx, &replication.DisableVolumeReplicationRequest{VolumeId: id, ReplicationSource: source, Parameters: parameters, Secrets: secrets})
			return err
		},
		"promote": func() error {
			_, err := c.PromoteVolume(ctx, &replication.PromoteVolumeRequest{VolumeId: id, ReplicationSource: source, Parameters: parameters, Secrets: secrets})
			return err
		},
		"demote": func() error {
			_, err := c.DemoteVolume(ctx, &replication.DemoteVolumeRequest{VolumeId: id, ReplicationSource: source, Parameters: parameters, Secrets: secrets})
			return err
		},
		"resync": func() error {
			_, err := c.ResyncVolume(ctx, &replication.ResyncVolumeRequest{VolumeId: id, ReplicationSource: source, Parameters: parameters, Secrets: secrets})
			return err
		},
	}
}

// TestReplicationErrors has the rows of the tables of errors of all calls, on the wire, by the engine on a simulated machine, but
// those of TestReplicationPending and TestReplicationUnknown.
func TestReplicationErrors(t *testing.T) {
	p := newPlugin(t)
	id, path := p.use("replicated", nil, nil)
	r := &replicator{p, replication.NewControllerClient(p.addons), id}

	for name, call := range r.calls("", nil, classOf(), sharedSecret) {
		r.want(name+" without a volume", call(), codes.InvalidArgument)
	}
	for name, call := range r.calls("other", sourceOf(id), classOf(), sharedSecret) {
		r.want(name+" of two volumes", call(), codes.InvalidArgument)
	}
	for name, call := range r.calls(id, nil, classOf("pool=1"), sharedSecret) {
		r.want(name+" with an unknown parameter", call(), codes.InvalidArgument)
	}
	for name, call := range r.calls("elsewhere", nil, classOf(), sharedSecret) {
		r.want(name+" of no volume", call(), codes.NotFound)
	}
	for name, call := range r.calls("", sourceOf("elsewhere"), classOf(), sharedSecret) {
		r.want(name+" of no volume", call(), codes.NotFound)
	}
	for name, call := range r.calls("", groupOf("group"), classOf(), sharedSecret) {
		r.want(name+" of a volume group", call(), codes.Unimplemented)
	}
	for _, secrets := range []map[string]string{nil, {"passphrase": "x"}, {drivebay.SecretReplication: strings.Repeat("x", 64)}} {
		for name, call := range r.calls(id, nil, classOf(), secrets) {
			r.want(name+" without its secret", call(), codes.Unauthenticated)
		}
	}
	for name, call := range r.calls(id, nil, classOf(), sharedSecret) {
		if name != "enable" && name != "disable" {
			r.want(name+" of a volume that is not replicated", call(), codes.FailedPrecondition)
		}
	}
	for _, bad := range []string{parameters.Local + "=", parameters.Local + "=host:7800", parameters.Peer + "=10.0.0.2", parameters.Peer + "=10.0.0.1:7800", parameters.Peer + "=[fd00::1]:7800",
		parameters.Protocol + "=B", parameters.Pair + "=two words", parameters.Rate + "=fast", parameters.Rate + "=0", parameters.Role + "=", parameters.Role + "=both", parameters.Local + "=0.0.0.0:7800", parameters.Local + "=10.0.0.1:0"} {
		r.want("enable with "+bad, r.calls(id, nil, classOf(bad), sharedSecret)["enable"](), codes.InvalidArgument)
	}
	r.want("enable in use", r.calls(id, nil, classOf(), sharedSecret)["enable"](), codes.FailedPrecondition)
	_, err := r.GetVolumeReplicationInfo(t.Context(), &replication.GetVolumeReplicationInfoRequest{VolumeId: id})
	r.want("info of a volume that is not replicated", err, codes.FailedPrecondition)
	_, err = r.GetVolumeReplicationInfo(t.Context(), &replication.GetVolumeReplicationInfoRequest{})
	r.want("info of nothing", err, codes.InvalidArgument)
	_, err = r.GetReplicationDestinationInfo(t.Context(), &replication.GetReplicationDestinationInfoRequest{ReplicationSource: groupOf("group")})
	r.want("destination of a group", err, codes.Unimplemented)
	r.unstage(path)

	// Both fields that name the volume work, and each call can be repeated.
	for _, calls := range []map[string]func() error{r.calls(id, nil, classOf(), sharedSecret), r.calls("", sourceOf(id), classOf(), sharedSecret)} {
		for _, name := range []string{"enable", "enable", "promote", "promote", "demote", "demote"} {
			r.want(name, calls[name](), codes.OK)
		}
		r.want("promote without force, and without the peer", calls["promote"](), codes.FailedPrecondition)
		_, err := r.PromoteVolume(t.Context(), &replication.PromoteVolumeRequest{VolumeId: id, Force: true, Secrets: sharedSecret})
		r.want("promote with force", err, codes.OK)
		r.want("resync of a primary", calls["resync"](), codes.FailedPrecondition)
		r.want("demote", calls["demote"](), codes.OK)
		if resp, err := r.ResyncVolume(t.Context(), &replication.ResyncVolumeRequest{VolumeId: id, Secrets: sharedSecret}); err != nil || resp.Ready {
			t.Errorf("resync without the peer: %v %v", resp, err)
		}
		info, err := r.GetVolumeReplicationInfo(t.Context(), &replication.GetVolumeReplicationInfoRequest{VolumeId: id})
		if err != nil || info.Status != replication.GetVolumeReplicationInfoResponse_DEGRADED || info.StatusMessage == "" || info.LastSyncTime != nil {
			t.Errorf("info without the peer: %v %v", info, err)
		}
		to, err := r.GetReplicationDestinationInfo(t.Context(), &replication.GetReplicationDestinationInfoRequest{ReplicationSource: sourceOf(id)})
		if err != nil || to.GetReplicationDestination().GetVolume().GetVolumeId() != id {
			t.Errorf("destination: %v %v", to, err)
		}
		for _, name := range []string{"disable", "disable"} {
			r.want(name, calls[name](), codes.OK)
		}
	}
}

// TestReplicationAdvertised: the capability is there where volumes can be replicated, and the service where it is offered.
func TestReplicationAdvertised(t *testing.T) {
	has := func(p *plugin, opt Options) (kinds map[identity.Capability_VolumeReplication_Type]bool, err error) {
		conn := dial(t, serve(t, New(p.server.engine, opt)))
		resp, err := identity.NewIdentityClient(conn).GetCapabilities(t.Context(), &identity.GetCapabilitiesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		kinds = map[identity.Capability_VolumeReplication_Type]bool{}
		for _, c := range resp.Capabilities {
			if x := c.GetVolumeReplication(); x != nil {
				kinds[x.Type] = true
			}
		}
		_, err = replication.NewControllerClient(conn).PromoteVolume(t.Context(), &replication.PromoteVolumeRequest{VolumeId: "v", Secrets: sharedSecret})
		return kinds, err
	}
	both := map[identity.Capability_VolumeReplication_Type]bool{identity.Capability_VolumeReplication_VOLUME_REPLICATION: true, identity.Capability_VolumeReplication_GET_REPLICATION_DESTINATION_INFO: true}
	p := newPlugin(t)
	p.eventually("the volumes are listed", func() bool { _, ready := p.volumes.Unread(); return ready })
	if kinds, err := has(p, Options{Volumes: p.volumes, Replication: p.volumes}); !maps.Equal(kinds, both) || status.Code(err) != codes.NotFound {
		t.Errorf("with DRBD: %v, promote: %v", kinds, err)
	}
	if kinds, err := has(p, Options{Volumes: p.volumes}); len(kinds) > 0 || status.Code(err) != codes.Unimplemented {
		t.Errorf("not offered: %v, promote: %v", kinds, err)
	}
	p = newPlugin(t, "drbd")
	p.eventually("the volumes are listed", func() bool { _, ready := p.volumes.Unread(); return ready })
	if kinds, err := has(p, Options{Volumes: p.volumes, Replication: p.volumes}); len(kinds) > 0 || status.Code(err) != codes.NotFound {
		t.Errorf("without DRBD: %v, promote: %v", kinds, err)
	}
}

// TestReplicationPending: a second call for a volume is refused while the first one waits for its drive.
func TestReplicationPending(t *testing.T) {
	p := newPlugin(t)
	id, path := p.use("replicated", nil, nil)
	r := &replicator{p, replication.NewControllerClient(p.addons), id}
	r.unstage(path)
	calls := r.calls(id, nil, classOf(), sharedSecret)
	for _, fault := range []string{"hang", "heal"} {
		if fault == "heal" {
			for name, call := range calls {
				r.want(name+" beside another call", call(), codes.Aborted)
			}
		}
		for _, name := range []string{"nvme0n1", "nvme1n1"} {
			p.inject(hostsim.Fault{Drive: name, Fault: fault})
		}
		if fault == "hang" {
			first := make(chan error, 1)
			go func() {
				err := calls["enable"]()
				for status.Code(err) == codes.Aborted { // a promotion below came first
					err = calls["enable"]()
				}
				first <- err
			}()
			p.eventually("the first call is under way", func() bool { return status.Code(calls["promote"]()) == codes.Aborted })
			defer func() { r.want("the call that waited", <-first, codes.OK) }()
		}
	}
}

// gremlin is an engine that fails in a way that is not in the dictionary, and that has the secret in its error.
type gremlin struct{ Replication }

func (gremlin) PromoteVolume(context.Context, drivebay.ReplicationCall) error {
	return errors.New("a gremlin with correct-horse")
}

// TestReplicationUnknown: an error that is not in the dictionary is UNKNOWN, and discloses no secret.
func TestReplicationUnknown(t *testing.T) {
	p := newPlugin(t)
	p.eventually("the volumes are listed", func() bool { _, ready := p.volumes.Unread(); return ready })
	log := &lockedBuffer{}
	conn := dial(t, serve(t, New(p.server.engine, Options{Volumes: p.volumes, Replication: gremlin{p.volumes}, Log: slog.New(slog.NewTextHandler(log, nil))})))
	_, err := replication.NewControllerClient(conn).PromoteVolume(t.Context(), &replication.PromoteVolumeRequest{VolumeId: "v", Secrets: sharedSecret})
	if status.Code(err) != codes.Unknown || strings.Contains(err.Error()+log.String(), "correct-horse") || !strings.Contains(log.String(), "a gremlin") {
		t.Errorf("%v; log: %s", err, log)
	}
}

// synchronized is an engine whose volumes were synchronized once.
type synchronized struct{ Replication }

func (synchronized) ReplicationInfo(context.Context, string) (drivebay.ReplicationInfo, error) {
	return drivebay.ReplicationInfo{Status: drivebay.ReplicationHealthy,
		ReplicationPast: drivebay.ReplicationPast{LastSync: time.Unix(1e9, 0), Bytes: 4096, Duration: 1500 * time.Millisecond}}, nil
}

// TestReplicationInfo: the answer has the time, the bytes and the duration of the last synchronization.
func TestReplicationInfo(t *testing.T) {
	p := newPlugin(t)
	p.eventually("the volumes are listed", func() bool { _, ready := p.volumes.Unread(); return ready })
	conn := dial(t, serve(t, New(p.server.engine, Options{Volumes: p.volumes, Replication: synchronized{p.volumes}})))
	info, err := replication.NewControllerClient(conn).GetVolumeReplicationInfo(t.Context(), &replication.GetVolumeReplicationInfoRequest{VolumeId: "v"})
	if err != nil || info.LastSyncTime.GetSeconds() != 1e9 || info.LastSyncBytes != 4096 || info.LastSyncDuration.AsDuration() != 1500*time.Millisecond || info.Status != replication.GetVolumeReplicationInfoResponse_HEALTHY {
		t.Errorf("%v, %v", info, err)
	}
}
