// Package rpc is what our gRPC servers have in common, whatever they speak: a guard
// around every call, errors of the dictionary as codes, and words that are told to
// nobody.
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

// MaxMessage bounds what a caller may send; no legal request comes near.
const MaxMessage = 1 << 20

// Guard is around every call: a panic is that call's end and nobody else's, and the
// log names calls and outcomes but never what was sent: requests carry secrets.
type Guard struct {
	What string // is called, for the log
	Log  *slog.Logger
	// Admit refuses what no handler has to see to know that it is wrong.
	Admit func(method string, req proto.Message) error
	// Code is that of an error of a call, by its short name.
	Code func(op string, err error) codes.Code
	// Ours are the codes of failures that are ours, which the log tells loudly.
	Ours []codes.Code
}

// Intercept is a grpc.UnaryServerInterceptor.
func (g *Guard) Intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	began, op := time.Now(), path.Base(info.FullMethod)
	defer func() {
		if p := recover(); p != nil {
			g.Log.Error("a call panicked", "op", op, "err", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			resp, err = nil, status.Errorf(codes.Internal, "%s failed in a way that it should not: see the log of the daemon", op)
		}
		g.note(ctx, op, err, time.Since(began))
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

// note writes a call down; a failure of ours so that it is seen.
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
	pingTime    = time.Minute      // of silence, after which the server asks whether the client is there
	pongTime    = 30 * time.Second // to answer that
)

// NewServer makes a server whose clients are bounded: what they send, how many calls they
// have under way, and how long a client that stalls is waited for. An idle connection
// that answers stays open: sidecars end when they lose theirs.
func (g *Guard) NewServer() *grpc.Server {
	return grpc.NewServer(grpc.UnaryInterceptor(g.Intercept), grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(connectTime),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingTime, Timeout: pongTime}))
}

// grace is how long calls under way may take to end.
const grace = 5 * time.Second

// Serve answers until ctx ends.
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
