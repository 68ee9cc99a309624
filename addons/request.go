package addons

import (
	"fmt"
	"slices"
	"strings"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
)

// using is a request with a capability, which says how the caller uses the volume.
type using interface {
	GetVolumeId() string
	GetVolumeCapability() *csi.VolumeCapability
}

// usable returns whether the caller uses the volume as a block device, nil if the request
// does not say, and refuses a capability that does not fit the volume. The access mode
// does not matter here, and the sidecar sends capabilities with nothing else. It
// accepts a volume that is not in the newest set: the engine checks whether the volume exists.
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
	case is && v.HasFilesystem():
		err = fmt.Errorf("volume %s: %w: the request is for a block device, but the volume has a filesystem", v.ID, drivebay.ErrInvalid)
	case !is && !v.HasFilesystem():
		err = fmt.Errorf("volume %s: %w: the volume is a block device without a filesystem", v.ID, drivebay.ErrInvalid)
	case fs != "" && fs != v.FSType:
		err = fmt.Errorf("volume %s: %w: the filesystem of the volume is %s", v.ID, drivebay.ErrInvalid, v.FSType)
	}
	return &is, err
}

// contextOfOthers holds the prefixes of volume_context keys that Kubernetes adds itself
// (external-provisioner; CSIDriver.spec.podInfoOnMount and tokenRequests).
var contextOfOthers = []string{"csi.storage.k8s.io/", "storage.kubernetes.io/"}

// checkContext refuses a volume context with keys other than those of Kubernetes: our
// volumes have none. The sidecar sends the context as parameters.
func checkContext(field string, context map[string]string) error {
	for key := range context {
		if !slices.ContainsFunc(contextOfOthers, func(p string) bool { return strings.HasPrefix(key, p) }) {
			return fmt.Errorf("%s: %w: unknown key %q: drivebay volumes have no context", field, drivebay.ErrInvalid, key)
		}
	}
	return nil
}
