package addons

import (
	"path"
	"strings"

	"github.com/csi-addons/spec/lib/go/identity"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// admit refuses calls that are not available on this machine, and requests that are
// wrong by themselves.
func (s *Server) admit(method string, req proto.Message) error {
	ofVolumes := !strings.HasPrefix(method, "/"+identity.Identity_ServiceDesc.ServiceName+"/")
	if ofVolumes && s.opt.Volumes == nil && s.opt.Cluster == nil {
		return status.Errorf(codes.Unimplemented, "%s: not available on this machine: the daemon manages no volumes here", path.Base(method))
	}
	if err := checkFields(req.ProtoReflect()); err != nil {
		return err
	}
	if ofVolumes && s.opt.Cluster == nil && s.opt.Volumes.Volumes().Seq == 0 {
		return status.Error(codes.Unavailable, "the volumes of this machine are not listed yet")
	}
	return nil
}
