package addons

import (
	"context"
	"strings"
	"time"

	"github.com/csi-addons/spec/lib/go/identity"
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
	resp := &identity.GetCapabilitiesResponse{}
	if i.opt.Volumes == nil {
		return resp, nil
	}
	resp.Capabilities = []*identity.Capability{
		serviceOf(identity.Capability_Service_CONTROLLER_SERVICE), serviceOf(identity.Capability_Service_NODE_SERVICE),
		reclaimOf(identity.Capability_ReclaimSpace_OFFLINE), reclaimOf(identity.Capability_ReclaimSpace_ONLINE),
	}
	ctx, cancel := context.WithTimeout(ctx, capabilityTime)
	defer cancel()
	if i.opt.Volumes.Encrypts(ctx) == nil {
		resp.Capabilities = append(resp.Capabilities, &identity.Capability{Type: &identity.Capability_EncryptionKeyRotation_{
			EncryptionKeyRotation: &identity.Capability_EncryptionKeyRotation{Type: identity.Capability_EncryptionKeyRotation_ENCRYPTIONKEYROTATION}}})
	}
	return resp, nil
}

func serviceOf(kind identity.Capability_Service_Type) *identity.Capability {
	return &identity.Capability{Type: &identity.Capability_Service_{Service: &identity.Capability_Service{Type: kind}}}
}

func reclaimOf(kind identity.Capability_ReclaimSpace_Type) *identity.Capability {
	return &identity.Capability{Type: &identity.Capability_ReclaimSpace_{ReclaimSpace: &identity.Capability_ReclaimSpace{Type: kind}}}
}

// Probe answers "not ready" until the first listing of all drives is complete, and fails
// while the machine lacks something that only an administrator can provide. It waits for
// nothing.
func (i *identityServer) Probe(context.Context, *identity.ProbeRequest) (*identity.ProbeResponse, error) {
	if missing := append(i.engine.Unready(), rpc.Lacking(i.opt.Volumes)...); len(missing) > 0 {
		return nil, status.Error(codes.FailedPrecondition, strings.Join(missing, "; "))
	}
	ready := i.engine.Snapshot().Seq > 0
	if ready && i.opt.Volumes != nil {
		_, ready = i.opt.Volumes.Unread()
	}
	return &identity.ProbeResponse{Ready: wrapperspb.Bool(ready)}, nil
}
