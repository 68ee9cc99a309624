package csi

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// guard is around every call: a panic is that call's end and nobody else's, and
// the log names calls and outcomes but never what was sent: requests carry secrets.
func (s *Server) guard(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	began, op := time.Now(), path.Base(info.FullMethod)
	defer func() {
		if p := recover(); p != nil {
			s.opt.Log.Error("a call panicked", "op", op, "err", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			resp, err = nil, status.Errorf(codes.Internal, "%s failed in a way that it should not: see the log of the daemon", op)
		}
		s.note(ctx, op, err, time.Since(began))
	}()
	message := req.(proto.Message)
	if err := s.admit(op, message); err != nil {
		return nil, statusOf(op, message, err)
	}
	if resp, err = handler(ctx, req); err != nil {
		return nil, statusOf(op, message, err)
	}
	return resp, nil
}

// admit refuses calls that are not real here, and requests that no engine has to
// see to know that they are wrong.
func (s *Server) admit(op string, req proto.Message) error {
	if needs, ok := implemented[op]; !ok || s.power() < needs {
		return status.Errorf(codes.Unimplemented, "%s is not available on this machine", op)
	}
	return checkFields(req.ProtoReflect())
}

// note writes a call down; a failure of ours so that it is seen.
func (s *Server) note(ctx context.Context, op string, err error, took time.Duration) {
	level := slog.LevelDebug
	attrs := []any{"op", op, "code", status.Code(err).String(), "took", took.String()}
	if status.Code(err) == codes.Internal {
		level, attrs = slog.LevelError, append(attrs, "err", status.Convert(err).Message())
	}
	s.opt.Log.Log(ctx, level, "csi call", attrs...)
}
