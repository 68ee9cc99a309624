// Package csi serves the Container Storage Interface, version 1.13. It translates
// between CSI messages and the dictionary and decides nothing. A machine advertises
// only the capabilities that it has.
//
// A call first passes the guard, which refuses requests that violate the specification.
// Then a handler translates the request, calls the engine and writes the answer.
// Handlers return errors of the dictionary; the guard translates them to gRPC codes.
package csi

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Engine is what the server needs of the drive manager. No method waits for a drive.
type Engine interface {
	Snapshot() *drivebay.Snapshot
	Unready() []string // why the plugin cannot work, apart from the first listing
}

// Options are the settings of a Server.
type Options struct {
	Version string
	NodeID  string
	Volumes Volumes // nil: no volumes can be made on this machine
	// Cluster serves the controller service for the volumes of all nodes, in place of Volumes. The server then
	// has no node service and needs no Engine.
	Cluster Cluster
	// NodeOnly leaves the controller service to a server with a Cluster.
	NodeOnly bool
	Log      *slog.Logger
	// Latencies counts the calls; nil: not counted.
	Latencies *rpc.Latencies
}

// Name is the name of the plugin. TopologyKey is the topology key of a volume's node.
const (
	Name        = "drivebay.io"
	TopologyKey = "topology.drivebay.io/node"
)

// Server answers CSI calls.
type Server struct {
	engine Engine
	opt    Options
	guard  rpc.Guard
	grpc   *grpc.Server
}

// New returns a server. The engine may be nil for a Cluster.
func New(engine Engine, opt Options) *Server {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{engine: engine, opt: opt}
	s.guard = rpc.Guard{What: "csi", Log: opt.Log, Admit: s.admit, Code: codeOf, Ours: []codes.Code{codes.Internal}, Latencies: opt.Latencies}
	s.grpc = s.guard.NewServer()
	wire.RegisterIdentityServer(s.grpc, &identity{Server: s})
	if !opt.NodeOnly {
		wire.RegisterControllerServer(s.grpc, newController(s))
	}
	if opt.Cluster == nil {
		wire.RegisterNodeServer(s.grpc, newNode(s))
	}
	return s
}

// Serve answers calls until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := rpc.Serve(ctx, s.grpc, l); err != nil {
		return fmt.Errorf("csi: %w", err)
	}
	return nil
}

// snapshot returns the newest state of the drives, an error before the first listing.
func (s *Server) snapshot() (*drivebay.Snapshot, error) {
	snap := s.engine.Snapshot()
	if snap.Seq == 0 {
		return nil, status.Error(codes.Unavailable, "the first inventory of this machine is not complete yet")
	}
	return snap, nil
}
