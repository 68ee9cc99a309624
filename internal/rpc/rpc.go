// Package rpc holds what our gRPC servers have in common: a guard around every call, the
// gRPC codes of errors, and the removal of secrets from error texts.
package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path"
	"runtime/debug"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// MaxMessage limits the size of a request; legal requests are much smaller.
const MaxMessage = 1 << 20

// Guard wraps every call. A panic ends only its own call. The log has calls and their
// results but never the requests, because they contain secrets.
type Guard struct {
	What string // name of the interface, for the log
	Log  *slog.Logger
	// Admit refuses requests that are wrong by themselves.
	Admit func(method string, req proto.Message) error
	// Code returns the code of an error of a call; op is its short name.
	Code func(op string, err error) codes.Code
	// Ours are the codes of faults of the daemon, which the log has as errors.
	Ours []codes.Code
	// Latencies counts the calls and how long they took; nil: not counted.
	Latencies *Latencies
}

// Intercept runs one call. It is a grpc.UnaryServerInterceptor.
func (g *Guard) Intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	began, op := time.Now(), path.Base(info.FullMethod)
	defer func() {
		if p := recover(); p != nil {
			g.Log.Error("a call panicked", "op", op, "err", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			resp, err = nil, status.Errorf(codes.Internal, "%s internal error: see the log of the daemon", op)
		}
		took := time.Since(began)
		g.note(ctx, op, err, took)
		g.Latencies.observe(info.FullMethod, status.Code(err), took)
	}()
	message := req.(proto.Message)
	if err = g.Admit(info.FullMethod, message); err == nil {
		resp, err = handler(ctx, req)
	}
	if err != nil {
		return nil, refusal(message, g.Code(op, err), err)
	}
	return resp, nil
}

// note logs a call, at the level ERROR if the daemon is at fault.
func (g *Guard) note(ctx context.Context, op string, err error, took time.Duration) {
	level := slog.LevelDebug
	attrs := []any{"op", op, "code", status.Code(err).String(), "took", took.String()}
	if slices.Contains(g.Ours, status.Code(err)) {
		level, attrs = slog.LevelError, append(attrs, "err", status.Convert(err).Message())
	}
	g.Log.Log(ctx, level, g.What+" call", attrs...)
}

const (
	maxStreams  = 100              // calls under way on one connection
	connectTime = 10 * time.Second // from the connection to the first frame of HTTP/2
	pingTime    = time.Minute      // without traffic, after which the server pings the client
	pongTime    = 30 * time.Second // for the answer to the ping
)

// NewServer returns a server that limits what a client may send, how many calls it may
// have under way, and how long the server waits for a client that stalls. An idle
// connection that answers pings stays open: sidecars exit when they lose theirs.
func (g *Guard) NewServer() *grpc.Server {
	return grpc.NewServer(grpc.UnaryInterceptor(g.Intercept), grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams), grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window), grpc.ConnectionTimeout(connectTime),
		grpc.ReadBufferSize(bufferSize), grpc.WriteBufferSize(bufferSize),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingTime, Timeout: pongTime}))
}

// bufferSize is the size of the buffers of a connection. The kubelet opens a connection for each
// call, and each would allocate gRPC's default of 32 KiB in both directions. Most messages fit 4 KiB.
const bufferSize = 4 << 10

// window is how much a client may send before the server has read it: what HTTP/2 begins with (RFC 9113 6.9.2).
// Without it, gRPC measures each connection with pings in order to allow more.
const window = 65535

// grace is how long calls under way may still run after ctx ends.
const grace = 5 * time.Second

// Serve answers calls until ctx ends.
func Serve(ctx context.Context, s *grpc.Server, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() {
		force := time.AfterFunc(grace, s.Stop)
		s.GracefulStop()
		force.Stop()
	})
	defer stop()
	if err := s.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}
