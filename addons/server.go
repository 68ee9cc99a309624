// Package addons serves CSI-Addons, what orchestrators ask of a plugin beyond the
// Container Storage Interface: to heal a volume, to give unused space back, to change
// the passphrase of an encrypted one. It translates between these messages and the
// dictionary and decides nothing. What is not real on a machine is not advertised there.
//
// A call goes through guard, which refuses what no engine has to see, to a handler,
// which reads the request, asks the engine and writes its answer. Handlers return
// errors of the dictionary; guard gives them their codes.
package addons

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/csi-addons/spec/lib/go/encryptionkeyrotation"
	"github.com/csi-addons/spec/lib/go/identity"
	"github.com/csi-addons/spec/lib/go/reclaimspace"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/addons/healer"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// Engine is what the server asks about drives. No method waits for one.
type Engine interface {
	Snapshot() *drivebay.Snapshot
	Unready() []string // what keeps the plugin from working, besides the first listing
}

// Volumes is what the server needs of the volume engine. Errors are those of the
// dictionary; a second call for a volume while one is under way is ErrPending.
type Volumes interface {
	Volumes() *drivebay.VolumeSet
	// Unread says of each drive that may carry unknown volumes why it was not read, and
	// whether the engine is ready: the first look over all drives has ended.
	Unread() (why []string, ready bool)
	// Encrypts is nil where volumes can be encrypted, and else says why not.
	Encrypts(ctx context.Context) error
	Heal(ctx context.Context, r drivebay.HealRequest) (drivebay.HealReport, error)
	// Stats knows at once what a healing came to.
	Stats(ctx context.Context, r drivebay.StatsRequest) (drivebay.VolumeStats, error)
	// Reclaim is ErrNoSupport where nothing can be discarded.
	Reclaim(ctx context.Context, r drivebay.ReclaimRequest) (drivebay.Reclaimed, error)
	RotateKey(ctx context.Context, r drivebay.KeyRequest) error
}

// Options name the plugin to its callers, and say what it has.
type Options struct {
	Name    string // the plugin's, as CSI tells it
	Version string
	Volumes Volumes // nil: there are no volumes on this machine
	Log     *slog.Logger
}

// Server answers CSI-Addons calls.
type Server struct {
	engine Engine
	opt    Options
	guard  rpc.Guard
	grpc   *grpc.Server
}

// services are all that there are, as gRPC knows them, and who answers them.
func (s *Server) services() map[*grpc.ServiceDesc]any {
	return map[*grpc.ServiceDesc]any{
		&identity.Identity_ServiceDesc:                                     &identityServer{Server: s},
		&healer.HealerNode_ServiceDesc:                                     &healerServer{Server: s},
		&reclaimspace.ReclaimSpaceNode_ServiceDesc:                         &reclaimNode{Server: s},
		&reclaimspace.ReclaimSpaceController_ServiceDesc:                   &reclaimController{Server: s},
		&encryptionkeyrotation.EncryptionKeyRotationController_ServiceDesc: &keyServer{Server: s},
	}
}

// New makes a server.
func New(engine Engine, opt Options) *Server {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{engine: engine, opt: opt}
	s.guard = rpc.Guard{What: "csi-addons", Log: opt.Log, Admit: s.admit, Code: codeOf, Ours: []codes.Code{codes.Internal, codes.Unknown}}
	s.grpc = s.guard.NewServer()
	for desc, server := range s.services() {
		s.grpc.RegisterService(desc, server)
	}
	return s
}

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := rpc.Serve(ctx, s.grpc, l); err != nil {
		return fmt.Errorf("csi-addons: %w", err)
	}
	return nil
}
