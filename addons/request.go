package addons

import (
	"fmt"
	"slices"
	"strings"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

// using is a request that says how its caller uses the volume.
type using interface {
	GetVolumeId() string
	GetVolumeCapability() *csi.VolumeCapability
}

// usable says whether the caller takes the volume for a block device, nil where he
// does not say, and refuses what the volume is not. The access mode does not matter
// here, and the sidecar sends capabilities with nothing else. A volume that is not in
// the newest set may be in the next one: that is for the engine to say.
func (s *Server) usable(req using) (block *bool, err error) {
	c := req.GetVolumeCapability()
	if c.GetAccessType() == nil {
		return nil, nil
	}
	is := c.GetBlock() != nil
	v, ok := s.opt.Volumes.Volumes().Get(req.GetVolumeId())
	if !ok || v.Mode == drivebay.ModeUnknown {
		return &is, nil
	}
	fs := c.GetMount().GetFsType()
	switch {
	case is && v.Mode == drivebay.ModeFS:
		err = fmt.Errorf("volume %s: %w: it has a filesystem and is no block device", v.ID, drivebay.ErrInvalid)
	case !is && v.Mode != drivebay.ModeFS:
		err = fmt.Errorf("volume %s: %w: it is a block device and has no filesystem", v.ID, drivebay.ErrInvalid)
	case fs != "" && fs != v.FSType:
		err = fmt.Errorf("volume %s: %w: its filesystem is %s", v.ID, drivebay.ErrInvalid, v.FSType)
	}
	return &is, err
}

// Keys of a volume's context that are the orchestrator's and not ours: Kubernetes
// adds them by itself (external-provisioner; CSIDriver.spec.podInfoOnMount and
// tokenRequests).
var contextOfOthers = []string{"csi.storage.k8s.io/", "storage.kubernetes.io/"}

// checkContext holds what a caller remembers of a volume against that of ours: they
// have none. The sidecar sends it as parameters.
func checkContext(field string, context map[string]string) error {
	for key := range context {
		if !slices.ContainsFunc(contextOfOthers, func(p string) bool { return strings.HasPrefix(key, p) }) {
			return fmt.Errorf("%s: %w: %q is not of this volume", field, drivebay.ErrInvalid, key)
		}
	}
	return nil
}
