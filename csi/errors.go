package csi

import (
	"context"
	"errors"
	"slices"
	"strings"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// errorCodes is what the errors of the dictionary are on the wire. The first that
// matches counts.
var errorCodes = []struct {
	err  error
	code codes.Code
}{
	{drivebay.ErrNotFound, codes.NotFound},
	{drivebay.ErrInvalid, codes.InvalidArgument},
	{drivebay.ErrAmbiguous, codes.InvalidArgument},
	{drivebay.ErrNoSupport, codes.InvalidArgument},
	{drivebay.ErrExists, codes.AlreadyExists},
	{drivebay.ErrPending, codes.Aborted},
	{drivebay.ErrBusy, codes.FailedPrecondition},
	{drivebay.ErrRefused, codes.FailedPrecondition},
	{drivebay.ErrNoSpace, codes.ResourceExhausted},
	{drivebay.ErrRange, codes.OutOfRange},
	{drivebay.ErrTimeout, codes.DeadlineExceeded},
	{context.DeadlineExceeded, codes.DeadlineExceeded},
	{context.Canceled, codes.Canceled},
	{drivebay.ErrPermission, codes.PermissionDenied},
	{drivebay.ErrSecret, codes.Unauthenticated}, // spec.md, "Not authenticated": the secrets are not valid
}

// exceeds are the calls whose table of errors has FAILED_PRECONDITION for what
// the volume does not support ("Exceeds capabilities").
var exceeds = []string{"NodeStageVolume", "NodePublishVolume"}

func codeOf(op string, err error) codes.Code {
	var already interface{ GRPCStatus() *status.Status }
	if errors.As(err, &already) {
		return already.GRPCStatus().Code()
	}
	for _, c := range errorCodes {
		if errors.Is(err, c.err) {
			if c.err == drivebay.ErrNoSupport && slices.Contains(exceeds, op) {
				return codes.FailedPrecondition
			}
			return c.code
		}
	}
	return codes.Internal
}

// maxErrorText bounds a status message: it travels in a header.
const maxErrorText = 1024

// statusOf is an error on the wire. Whatever the engine has put into it, what the
// request brought in confidence does not go out with it.
func statusOf(op string, req proto.Message, err error) error {
	text := err.Error()
	if s, ok := status.FromError(err); ok {
		text = s.Message()
	}
	for _, word := range confidential(req.ProtoReflect()) {
		text = strings.ReplaceAll(text, word, "(withheld)")
	}
	return status.Error(codeOf(op, err), clip(text, maxErrorText))
}

// confidential are the words of a request that are told to nobody: secrets, and
// mount flags, which can contain some. The longest come first. A word of one or
// two letters is everywhere, and no secret.
func confidential(m protoreflect.Message) []string {
	var words []string
	add := func(word string) {
		if len(word) > 2 {
			words = append(words, word)
		}
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			secret, _ := proto.GetExtension(f.Options(), wire.E_CsiSecret).(bool)
			v.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
				if secret || strings.HasPrefix(key.String(), tokensKey) {
					add(v.String())
				}
				return true
			})
		case f.Name() == "mount_flags":
			for i := range v.List().Len() {
				flag := v.List().Get(i).String()
				_, value, _ := strings.Cut(flag, "=")
				add(flag)
				add(value)
			}
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				words = append(words, confidential(v.List().Get(i).Message())...)
			}
		case f.Message() != nil && !f.IsList():
			words = append(words, confidential(v.Message())...)
		}
		return true
	})
	slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) })
	return words
}
