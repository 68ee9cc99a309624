// Package csi serves the Container Storage Interface, version 1.13, from the
// snapshot: it translates between the interface's messages and the dictionary
// and decides nothing. What is not real yet is not advertised.
package csi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path"
	"runtime/debug"
	"time"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Engine is what the server asks. No method waits for a drive.
type Engine interface {
	Snapshot() *drivebay.Snapshot
	Unready() []string // what keeps the plugin from working, besides the first listing
}

// Options name the plugin to its callers.
type Options struct {
	Version string
	NodeID  string
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
	grpc   *grpc.Server
}

// maxMessage bounds what a caller may send; no legal request comes near.
const maxMessage = 1 << 20

// New makes a server.
func New(engine Engine, opt Options) *Server {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{engine: engine, opt: opt}
	s.grpc = grpc.NewServer(grpc.UnaryInterceptor(s.guard), grpc.MaxRecvMsgSize(maxMessage))
	wire.RegisterIdentityServer(s.grpc, &identity{server: s})
	wire.RegisterNodeServer(s.grpc, &node{server: s})
	return s
}

// grace is how long calls under way may take to end.
const grace = 5 * time.Second

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() {
		force := time.AfterFunc(grace, s.grpc.Stop)
		s.grpc.GracefulStop()
		force.Stop()
	})
	defer stop()
	if err := s.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("csi: %w", err)
	}
	return nil
}

// guard is around every call: a panic is that call's end and nobody else's, and
// the log names calls and outcomes but never what was sent: requests carry secrets.
func (s *Server) guard(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	began := time.Now()
	op := path.Base(info.FullMethod)
	defer func() {
		if p := recover(); p != nil {
			s.opt.Log.Error("a call panicked", "op", op, "err", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			resp, err = nil, status.Errorf(codes.Internal, "%s failed in a way that it should not: see the log of the daemon", op)
		}
		s.opt.Log.Debug("csi call", "op", op, "code", status.Code(err).String(), "took", time.Since(began).String())
	}()
	return handler(ctx, req)
}

// snapshot is the newest state, once there is one.
func (s *Server) snapshot() (*drivebay.Snapshot, error) {
	snap := s.engine.Snapshot()
	if snap.Seq == 0 {
		return nil, status.Error(codes.Unavailable, "the first inventory of this machine is not complete yet")
	}
	return snap, nil
}
