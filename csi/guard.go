package csi

import (
	"path"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// admit refuses calls that are not available on this machine, and requests that are
// wrong by themselves.
func (s *Server) admit(method string, req proto.Message) error {
	op := path.Base(method)
	switch needs, ok := implemented[op]; {
	case !ok:
		return status.Errorf(codes.Unimplemented, "%s: not implemented", op)
	case needs > withDrives && s.pluginLevel() == withDrives:
		return status.Errorf(codes.Unimplemented, "%s: not available on this machine: the daemon manages no volumes here", op)
	case needs > withVolumes:
		if has, err := s.level(); err != nil {
			return err
		} else if has < needs {
			return status.Errorf(codes.Unimplemented, "%s: not available: %s", op, s.whyNoSnapshots())
		}
	}
	return checkFields(req.ProtoReflect())
}

// whyNoSnapshots says why snapshots and clones are not available.
func (s *Server) whyNoSnapshots() string {
	if s.opt.Cluster != nil {
		return "the controller of a cluster has no snapshots and clones yet"
	}
	return "this machine has no snapshots and clones: these require drivebay.io/backing: thin, which requires LVM and device-mapper"
}
