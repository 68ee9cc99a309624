// Package csi serves the Container Storage Interface, version 1.13: it translates
// between the interface's messages and the dictionary and decides nothing. What is
// not real on a machine is not advertised there.
//
// A call goes through guard, which refuses what the specification forbids of every
// request, to a handler, which reads the request into the dictionary, asks the
// engine and writes its answer. Handlers return errors of the dictionary; guard
// gives them their codes.
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

// Engine is what the server asks. No method waits for a drive.
type Engine interface {
	Snapshot() *drivebay.Snapshot
	Unready() []string // what keeps the plugin from working, besides the first listing
}

// Options name the plugin to its callers, and say what it has.
type Options struct {
	Version string
	NodeID  string
	Volumes Volumes // nil: no volumes can be made on this machine
	Log     *slog.Logger
}

// Name is the plugin's, TopologyKey that of the node a volume lives on.
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

// New makes a server.
func New(engine Engine, opt Options) *Server {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{engine: engine, opt: opt}
	s.guard = rpc.Guard{What: "csi", Log: opt.Log, Admit: s.admit, Code: codeOf, Ours: []codes.Code{codes.Internal}}
	s.grpc = s.guard.NewServer()
	wire.RegisterIdentityServer(s.grpc, &identity{Server: s})
	wire.RegisterControllerServer(s.grpc, &controller{Server: s})
	wire.RegisterNodeServer(s.grpc, &node{Server: s})
	return s
}

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := rpc.Serve(ctx, s.grpc, l); err != nil {
		return fmt.Errorf("csi: %w", err)
	}
	return nil
}

// snapshot is the newest state, once there is one.
func (s *Server) snapshot() (*drivebay.Snapshot, error) {
	snap := s.engine.Snapshot()
	if snap.Seq == 0 {
		return nil, status.Error(codes.Unavailable, "the first inventory of this machine is not complete yet")
	}
	return snap, nil
}
