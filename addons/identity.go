package addons

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/csi-addons/spec/lib/go/identity"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type identityServer struct {
	identity.UnimplementedIdentityServer
	*Server
}

func (i *identityServer) GetIdentity(context.Context, *identity.GetIdentityRequest) (*identity.GetIdentityResponse, error) {
	return &identity.GetIdentityResponse{Name: i.opt.Name, VendorVersion: rpc.Clip(i.opt.Version, maxString)}, nil
}

// capabilityTime limits the check of what a machine supports: a sidecar calls GetCapabilities
// before everything else.
const capabilityTime = time.Second

// GetCapabilities does not list healing: CSI-Addons has no capability for it, and clients
// call it without one.
func (i *identityServer) GetCapabilities(ctx context.Context, _ *identity.GetCapabilitiesRequest) (*identity.GetCapabilitiesResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, capabilityTime)
	defer cancel()
	resp := &identity.GetCapabilitiesResponse{}
	switch {
	case i.opt.Cluster != nil:
		resp.Capabilities = controllerCapabilities(ctx, i.opt.Cluster)
	case i.opt.Volumes != nil:
		if !i.opt.NodeOnly {
			resp.Capabilities = controllerCapabilities(ctx, i.opt.Replication)
		}
		resp.Capabilities = append(resp.Capabilities, serviceOf(identity.Capability_Service_NODE_SERVICE), reclaimOf(identity.Capability_ReclaimSpace_ONLINE))
		if i.opt.Volumes.Encrypts(ctx) == nil {
			resp.Capabilities = append(resp.Capabilities, &identity.Capability{Type: &identity.Capability_EncryptionKeyRotation_{
				EncryptionKeyRotation: &identity.Capability_EncryptionKeyRotation{Type: identity.Capability_EncryptionKeyRotation_ENCRYPTIONKEYROTATION}}})
		}
	}
	return resp, nil
}

// controllerCapabilities are those of calls for a volume wherever it is. kubernetes-csi-addons sends them to the one sidecar that
// leads of those that list the service (internal/connection/connection_pool.go of v0.14.0).
func controllerCapabilities(ctx context.Context, r Replication) []*identity.Capability {
	all := []*identity.Capability{serviceOf(identity.Capability_Service_CONTROLLER_SERVICE), reclaimOf(identity.Capability_ReclaimSpace_OFFLINE)}
	if r != nil && r.Replicates(ctx) == nil {
		all = append(all, replicationOf(identity.Capability_VolumeReplication_VOLUME_REPLICATION), replicationOf(identity.Capability_VolumeReplication_GET_REPLICATION_DESTINATION_INFO))
	}
	return all
}

func replicationOf(kind identity.Capability_VolumeReplication_Type) *identity.Capability {
	return &identity.Capability{Type: &identity.Capability_VolumeReplication_{VolumeReplication: &identity.Capability_VolumeReplication{Type: kind}}}
}

func serviceOf(kind identity.Capability_Service_Type) *identity.Capability {
	return &identity.Capability{Type: &identity.Capability_Service_{Service: &identity.Capability_Service{Type: kind}}}
}

func reclaimOf(kind identity.Capability_ReclaimSpace_Type) *identity.Capability {
	return &identity.Capability{Type: &identity.Capability_ReclaimSpace_{ReclaimSpace: &identity.Capability_ReclaimSpace{Type: kind}}}
}

// Probe answers "not ready" until the first listing of all drives is complete, and fails
// while the machine lacks something that only an administrator can provide. It waits for
// no drive.
func (i *identityServer) Probe(ctx context.Context, _ *identity.ProbeRequest) (*identity.ProbeResponse, error) {
	if c := i.opt.Cluster; c != nil { // before, it would not know what the nodes can do
		return &identity.ProbeResponse{Ready: wrapperspb.Bool(c.Listed() == nil)}, nil
	}
	missing := append(i.engine.Unready(), rpc.Lacking(i.opt.Volumes)...)
	if missing = append(missing, i.unreplicated(ctx)...); len(missing) > 0 {
		return nil, status.Error(codes.FailedPrecondition, strings.Join(missing, "; "))
	}
	ready := i.engine.Snapshot().Seq > 0
	if ready && i.opt.Volumes != nil {
		_, ready = i.opt.Volumes.Unread()
	}
	return &identity.ProbeResponse{Ready: wrapperspb.Bool(ready)}, nil
}

// unreplicated returns why the volumes of the machine that are replicated cannot be used; nil if they can, or none is.
func (i *identityServer) unreplicated(ctx context.Context) []string {
	if i.opt.Replication == nil || i.opt.Volumes == nil || !slices.ContainsFunc(i.opt.Volumes.Volumes().Volumes, func(v *drivebay.VolumeView) bool { return v.Replicates() }) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, capabilityTime)
	defer cancel()
	if err := i.opt.Replication.Replicates(ctx); errors.Is(err, drivebay.ErrNoSupport) {
		return []string{err.Error()}
	}
	return nil
}
