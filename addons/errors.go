package addons

import (
	"context"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/grpc/codes"
)

// errorCodes is what the errors of the dictionary are on the wire. The first that
// matches counts. The tables of CSI-Addons have the first six rows and UNKNOWN; the
// others are gRPC's own meanings, which say more.
var errorCodes = rpc.Codes{
	{drivebay.ErrUnavailable, codes.Unavailable}, // first: what is away is not found either
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

func codeOf(_ string, err error) codes.Code {
	if code, ok := errorCodes.Find(err); ok {
		return code
	}
	return codes.Unknown
}
