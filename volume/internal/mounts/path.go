package mounts

import (
	"fmt"
	"path"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// DefaultRoot is the folder of the kubelet (--root-dir).
const DefaultRoot = "/var/lib/kubelet"

// MountPath is a path that the engine may change, and its name in the mount table.
type MountPath struct {
	host.Place
	Target string
}

const longestName = 255 // bytes of one part of a path: NAME_MAX

// CheckPath refuses every path that is not below a root of the configuration, nor where a volume was mounted
// when the configuration had another root. Links in the path are handled where it is opened.
func (e *Mounter) CheckPath(name string) (MountPath, error) {
	roots, clean, up := e.Opt.Roots, path.Clean(name), false
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > longestName {
			return MountPath{}, fmt.Errorf("path %.80q...: %w: a component of the path has more than %d bytes", name, drivebay.ErrInvalid, longestName)
		}
		up = up || part == ".."
	}
	if !path.IsAbs(name) || up || strings.ContainsRune(name, 0) {
		return MountPath{}, fmt.Errorf("path %q: %w: it must be absolute and without \"..\"", name, drivebay.ErrInvalid)
	}
	var best MountPath
	for _, root := range roots {
		root = path.Clean(root)
		if below, ok := strings.CutPrefix(clean, strings.TrimSuffix(root, "/")); ok && strings.HasPrefix(below, "/") && len(root) > len(best.Root) {
			best = MountPath{Place: host.Place{Root: root, Name: below[1:]}}
		}
	}
	if best.Root == "" && e.Ledger.Publishes(clean) {
		best.Place = host.Place{Root: path.Dir(clean), Name: path.Base(clean)}
	}
	if best.Root == "" {
		return MountPath{}, fmt.Errorf("path %q: %w: it must be below %s", name, drivebay.ErrInvalid, strings.Join(roots, " or "))
	}
	best.Target = e.realRoot(best.Root) + "/" + best.Name
	return best, nil
}

// CheckVolumePath is CheckPath for a path at which a volume should be: below no root is no volume
// (CSI specification, errors of NodeGetVolumeStats and NodeExpandVolume).
func (e *Mounter) CheckVolumePath(id, name string) (MountPath, error) {
	at, err := e.CheckPath(name)
	if err != nil {
		return at, fmt.Errorf("volume %s: %w: no volume is there: %v", id, drivebay.ErrNotFound, err)
	}
	return at, nil
}

// realRoot returns where a root leads: /var/lib/kubelet is often a link to a larger disk, and the
// mount table has no links.
func (e *Mounter) realRoot(root string) string {
	if real, ok := e.Roots.Load(root); ok {
		return real.(string)
	}
	real := root
	if name, err := e.Machine.Resolve(strings.TrimPrefix(root, "/")); err == nil {
		real = "/" + name
	}
	e.Roots.Store(root, real)
	return real
}

// pathOfTarget returns the path that has a name in the mount table.
func (e *Mounter) pathOfTarget(target string) (MountPath, bool) {
	for _, root := range e.Opt.Roots {
		if below, ok := strings.CutPrefix(target, e.realRoot(path.Clean(root))+"/"); ok {
			return MountPath{host.Place{Root: path.Clean(root), Name: below}, target}, true
		}
	}
	return MountPath{}, false
}
