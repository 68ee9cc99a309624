package csi

import (
	"path"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// admit refuses calls that are not real here, and requests that no engine has to
// see to know that they are wrong.
func (s *Server) admit(method string, req proto.Message) error {
	op := path.Base(method)
	if needs, ok := implemented[op]; !ok || s.power() < needs {
		return status.Errorf(codes.Unimplemented, "%s is not available on this machine", op)
	}
	return checkFields(req.ProtoReflect())
}
