package addons

import (
	"context"
	"errors"
	"slices"
	"strings"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// errorCodes is what the errors of the dictionary are on the wire. The first that
// matches counts. The tables of CSI-Addons have the first six rows and UNKNOWN; the
// others are gRPC's own meanings, which say more.
var errorCodes = []struct {
	err  error
	code codes.Code
}{
	{drivebay.ErrNotFound, codes.NotFound},
	{drivebay.ErrInvalid, codes.InvalidArgument},
	{drivebay.ErrAmbiguous, codes.InvalidArgument},
	{drivebay.ErrPending, codes.Aborted},
	{drivebay.ErrSecret, codes.Unauthenticated},
	{drivebay.ErrNoSupport, codes.Unimplemented},

	{drivebay.ErrBusy, codes.FailedPrecondition},
	{drivebay.ErrRefused, codes.FailedPrecondition},
	{drivebay.ErrNoSpace, codes.ResourceExhausted},
	{drivebay.ErrRange, codes.OutOfRange},
	{drivebay.ErrExists, codes.AlreadyExists},
	{drivebay.ErrPermission, codes.PermissionDenied},
	{drivebay.ErrTimeout, codes.DeadlineExceeded},
	{context.DeadlineExceeded, codes.DeadlineExceeded},
	{context.Canceled, codes.Canceled},
}

func codeOf(err error) codes.Code {
	var already interface{ GRPCStatus() *status.Status }
	if errors.As(err, &already) {
		return already.GRPCStatus().Code()
	}
	for _, c := range errorCodes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return codes.Unknown
}

// maxErrorText bounds a status message: it travels in a header.
const maxErrorText = 1024

// statusOf is an error on the wire. Whatever the engine has put into it, what the
// request brought in confidence does not go out with it.
func statusOf(req proto.Message, err error) error {
	text := err.Error()
	if s, ok := status.FromError(err); ok {
		text = s.Message()
	}
	for _, word := range confidential(req.ProtoReflect()) {
		text = strings.ReplaceAll(text, word, "(withheld)")
	}
	return status.Error(codeOf(err), clip(strings.ToValidUTF8(text, "�"), maxErrorText))
}

// confidential are the words of a request that are told to nobody: secrets, and
// mount flags, which can contain some. The longest come first. A word of one or two
// letters is everywhere, and no secret.
func confidential(m protoreflect.Message) []string {
	var words []string
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		secret, _ := proto.GetExtension(f.Options(), csi.E_CsiSecret).(bool)
		switch {
		case f.IsMap():
			v.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
				if secret || key.String() == tokensKey {
					words = append(words, v.String())
				}
				return true
			})
		case f.Name() == "mount_flags":
			for i := range v.List().Len() {
				flag := v.List().Get(i).String()
				_, value, _ := strings.Cut(flag, "=")
				words = append(words, flag, value)
			}
		case f.Message() != nil && !f.IsList():
			words = append(words, confidential(v.Message())...)
		case secret && f.Kind() == protoreflect.StringKind:
			words = append(words, v.String())
		}
		return true
	})
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) <= 2 })
	slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) })
	return words
}
