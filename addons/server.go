// Package addons serves CSI-Addons, the calls of orchestrators beyond the Container
// Storage Interface: heal a volume, reclaim unused space, change the passphrase of an
// encrypted volume. It translates between these messages and the dictionary and decides
// nothing. A machine advertises only the capabilities that it has.
//
// A call first passes the guard, which refuses requests that are wrong by themselves.
// Then a handler reads the request, calls the engine and writes the answer. Handlers
// return errors of the dictionary; the guard translates them to gRPC codes.
package addons

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/csi-addons/spec/lib/go/encryptionkeyrotation"
	"github.com/csi-addons/spec/lib/go/identity"
	"github.com/csi-addons/spec/lib/go/reclaimspace"
	"github.com/csi-addons/spec/lib/go/replication"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/addons/healer"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// Engine is what the server needs of the drive manager. No method waits for a drive.
type Engine interface {
	Snapshot() *drivebay.Snapshot
	Unready() []string // why the plugin cannot work, apart from the first listing
}

// Volumes is what the server needs of the volume engine. It returns errors of the
// dictionary: ErrPending for a second call for a volume while one is under way.
type Volumes interface {
	Volumes() *drivebay.VolumeSet
	// Unread returns why each drive that may have unknown volumes was not read, and
	// whether the engine is ready: the first listing of all drives is complete.
	Unread() (why []string, ready bool)
	// Encrypts returns why volumes cannot be encrypted, nil if they can.
	Encrypts(ctx context.Context) error
	Heal(ctx context.Context, r drivebay.HealRequest) (drivebay.HealReport, error)
	// Stats includes the result of a Heal as soon as Heal has returned.
	Stats(ctx context.Context, r drivebay.StatsRequest) (drivebay.VolumeStats, error)
	// Reclaim returns ErrNoSupport if the volume or its drive cannot discard.
	Reclaim(ctx context.Context, r drivebay.ReclaimRequest) (drivebay.Reclaimed, error)
	RotateKey(ctx context.Context, r drivebay.KeyRequest) error
}

// Cluster is the volumes of the nodes of a cluster.
type Cluster interface {
	Replication
	// Listed returns an error until the volumes of all nodes are known.
	Listed() error
	Reclaim(ctx context.Context, r drivebay.ReclaimRequest) (drivebay.Reclaimed, error)
}

// Options are the settings of a Server.
type Options struct {
	Name    string // name of the plugin, the same as in CSI
	Version string
	Volumes Volumes // nil: there are no volumes on this machine
	// Replication replicates them; nil: the service is not there.
	Replication Replication
	// Cluster has the volumes of all nodes, in place of Volumes and Replication: the server is that of a controller.
	Cluster Cluster
	// NodeOnly leaves the calls that any node gets for all volumes to a controller.
	NodeOnly bool
	Log      *slog.Logger
	// Latencies counts the calls; nil: not counted.
	Latencies *rpc.Latencies
}

// Server answers CSI-Addons calls.
type Server struct {
	engine Engine
	opt    Options
	guard  rpc.Guard
	grpc   *grpc.Server
}

// services returns all services of the server, by their gRPC description.
func (s *Server) services() map[*grpc.ServiceDesc]any {
	if c := s.opt.Cluster; c != nil {
		return map[*grpc.ServiceDesc]any{
			&identity.Identity_ServiceDesc:                   &identityServer{Server: s},
			&reclaimspace.ReclaimSpaceController_ServiceDesc: &reclaimController{volumes: c},
			&replication.Controller_ServiceDesc:              &replicationServer{of: c},
		}
	}
	all := map[*grpc.ServiceDesc]any{
		&identity.Identity_ServiceDesc:                                     &identityServer{Server: s},
		&healer.HealerNode_ServiceDesc:                                     &healerServer{Server: s},
		&reclaimspace.ReclaimSpaceNode_ServiceDesc:                         &reclaimNode{Server: s},
		&reclaimspace.ReclaimSpaceController_ServiceDesc:                   &reclaimController{volumes: s.opt.Volumes},
		&encryptionkeyrotation.EncryptionKeyRotationController_ServiceDesc: &keyServer{Server: s},
	}
	if s.opt.Replication != nil {
		all[&replication.Controller_ServiceDesc] = &replicationServer{of: s.opt.Replication}
	}
	return all
}

// New returns a server. That of a cluster has no engine.
func New(engine Engine, opt Options) *Server {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{engine: engine, opt: opt}
	s.guard = rpc.Guard{What: "csi-addons", Log: opt.Log, Admit: s.admit, Code: codeOf, Ours: []codes.Code{codes.Internal, codes.Unknown}, Latencies: opt.Latencies}
	s.grpc = s.guard.NewServer()
	for desc, server := range s.services() {
		s.grpc.RegisterService(desc, server)
	}
	return s
}

// Serve answers calls until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := rpc.Serve(ctx, s.grpc, l); err != nil {
		return fmt.Errorf("csi-addons: %w", err)
	}
	return nil
}
