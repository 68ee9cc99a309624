package mounttable

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// After the records are lost, only the path of a mount whose device is gone shows which volume
// it held: container orchestrators name the paths of a volume after it.

// pathName is the part of a path that identifies a volume. An id or the checksum of an id
// belongs to one volume. The name of a PersistentVolume is in most clusters the name that the
// volume was created with.
type pathName struct {
	text   string
	OfThis bool // text is an id or a checksum
}

// NameOfPath returns the part of a target or staging path that identifies a volume. The forms
// with a name are kubelet's: pods/<uid>/volumes/kubernetes.io~csi/<name>/mount,
// volumeDevices/publish/<name>/<uid> and volumeDevices/staging/<name>; its staging path of a
// filesystem ends in sha256(id)/globalmount (Kubernetes, pkg/volume/csi, csi_mounter.go and
// csi_block.go).
func NameOfPath(target string) (n pathName, ok bool) {
	parts := strings.Split(target, "/")
	last := len(parts) - 1
	part := func(i int) string { return parts[max(i, 0)] }
	isKey := func(s string) bool { return ledger.IsID(s) || len(s) == hex.EncodedLen(sha256.Size) }
	switch {
	case isKey(part(last)):
		return pathName{part(last), true}, true
	case (part(last) == "mount" || part(last) == "globalmount") && isKey(part(last-1)):
		return pathName{part(last - 1), true}, true
	case part(last) == "mount" && part(last-2) == "kubernetes.io~csi", part(last-2) == "publish" && part(last-3) == "volumeDevices":
		return pathName{part(last - 1), false}, true
	case part(last-1) == "staging" && part(last-2) == "volumeDevices":
		return pathName{part(last), false}, true
	}
	return n, false
}

// IsStaging reports whether a path has the form of kubelet's staging path of a filesystem.
func IsStaging(target string) bool { return path.Base(target) == "globalmount" }

func checksumOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// namedMounts returns the mounts at paths that are named after a volume, by its id or the
// checksum of it.
func (s *MountSet) namedMounts() map[string][]host.Mount {
	s.naming.Do(func() {
		s.named = map[string][]host.Mount{}
		for _, m := range s.all {
			if n, ok := NameOfPath(m.Target); ok {
				key := n.text
				if !n.OfThis {
					key = drivebay.VolumeID(key)
				}
				s.named[key] = append(s.named[key], m)
			}
		}
	})
	return s.named
}

// NamedAfter returns the mounts at paths that are named after the volume.
func (s *MountSet) NamedAfter(id string) []host.Mount {
	named := s.namedMounts()
	return slices.Concat(named[id], named[checksumOf(id)])
}
