package addons

import (
	"context"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/grpc/codes"
)

// errorCodes holds the gRPC codes of the errors of the dictionary. The first match
// counts. The tables of CSI-Addons have the codes of the first seven rows and UNKNOWN;
// the other rows use the general meanings of gRPC, which are more precise than UNKNOWN.
var errorCodes = rpc.Codes{
	{drivebay.ErrUnavailable, codes.Unavailable}, // first: ErrNotFound matches as well for a missing drive
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
