package addons

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/csi-addons/spec/lib/go/identity"
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
	if err := s.admit(info.FullMethod, message); err != nil {
		return nil, statusOf(message, err)
	}
	if resp, err = handler(ctx, req); err != nil {
		return nil, statusOf(message, err)
	}
	return resp, nil
}

// admit refuses calls that are not real here, and requests that no engine has to
// see to know that they are wrong.
func (s *Server) admit(method string, req proto.Message) error {
	ofVolumes := !strings.HasPrefix(method, "/"+identity.Identity_ServiceDesc.ServiceName+"/")
	if ofVolumes && s.opt.Volumes == nil {
		return status.Errorf(codes.Unimplemented, "%s is not available on this machine: it has no volumes", path.Base(method))
	}
	if err := checkFields(req.ProtoReflect()); err != nil {
		return err
	}
	if ofVolumes && s.opt.Volumes.Volumes().Seq == 0 {
		return status.Error(codes.Unavailable, "the volumes of this machine are not listed yet")
	}
	return nil
}

// note writes a call down; a failure of ours so that it is seen.
func (s *Server) note(ctx context.Context, op string, err error, took time.Duration) {
	level := slog.LevelDebug
	attrs := []any{"op", op, "code", status.Code(err).String(), "took", took.String()}
	if code := status.Code(err); code == codes.Internal || code == codes.Unknown {
		level, attrs = slog.LevelError, append(attrs, "err", status.Convert(err).Message())
	}
	s.opt.Log.Log(ctx, level, "csi-addons call", attrs...)
}
