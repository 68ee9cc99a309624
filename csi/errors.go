package csi

import (
	"context"
	"errors"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/grpc/codes"
)

// errorCodes holds the gRPC codes of the errors of the dictionary. The first match counts.
var errorCodes = rpc.Codes{
	{drivebay.ErrUnavailable, codes.Unavailable}, // first: ErrNotFound matches as well for a missing drive
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

// exceeds lists the calls whose error table has FAILED_PRECONDITION for a request that
// the volume does not support ("Exceeds capabilities").
var exceeds = []string{"NodeStageVolume", "NodePublishVolume"}

func codeOf(op string, err error) codes.Code {
	code, ok := errorCodes.Find(err)
	switch {
	case !ok:
		return codes.Internal
	case code == codes.InvalidArgument && errors.Is(err, drivebay.ErrNoSupport) && slices.Contains(exceeds, op):
		return codes.FailedPrecondition
	}
	return code
}
