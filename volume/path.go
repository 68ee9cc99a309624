package volume

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// defaultRoot is the folder of the kubelet (--root-dir).
const defaultRoot = "/var/lib/kubelet"

// mountPath is a path that the engine may change, and its name in the mount table.
type mountPath struct {
	host.Place
	target string
}

const longestName = 255 // bytes of one part of a path: NAME_MAX

// checkPath refuses every path that is not below a root of the configuration. Links in the path are
// handled where it is opened.
func (e *Engine) checkPath(name string) (mountPath, error) {
	roots := e.allRoots()
	if slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return len(part) > longestName }) {
		return mountPath{}, fmt.Errorf("path %.80q...: %w: a component of the path has more than %d bytes", name, drivebay.ErrInvalid, longestName)
	}
	if !path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..") || strings.ContainsRune(name, 0) {
		return mountPath{}, fmt.Errorf("path %q: %w: it must be absolute and without \"..\"", name, drivebay.ErrInvalid)
	}
	var best mountPath
	for _, root := range roots {
		below, ok := strings.CutPrefix(path.Clean(name), strings.TrimSuffix(path.Clean(root), "/")+"/")
		if ok && len(root) > len(best.Root) {
			best = mountPath{Place: host.Place{Root: path.Clean(root), Name: below}}
		}
	}
	if best.Root == "" {
		return mountPath{}, fmt.Errorf("path %q: %w: it must be below %s", name, drivebay.ErrInvalid, strings.Join(roots, " or "))
	}
	best.target = e.realRoot(best.Root) + "/" + best.Name
	return best, nil
}

// checkVolumePath is checkPath for a path at which a volume should be: below no root is no volume
// (CSI specification, errors of NodeGetVolumeStats and NodeExpandVolume).
func (e *Engine) checkVolumePath(id, name string) (mountPath, error) {
	at, err := e.checkPath(name)
	if err != nil {
		return at, fmt.Errorf("volume %s: %w: no volume is there: %v", id, drivebay.ErrNotFound, err)
	}
	return at, nil
}

// realRoot returns where a root leads: /var/lib/kubelet is often a link to a larger disk, and the
// mount table has no links.
func (e *Engine) realRoot(root string) string {
	if real, ok := e.roots.Load(root); ok {
		return real.(string)
	}
	real := root
	if name, err := e.machine.Resolve(strings.TrimPrefix(root, "/")); err == nil {
		real = "/" + name
	}
	e.roots.Store(root, real)
	return real
}

// pathOfTarget returns the path that has a name in the mount table.
func (e *Engine) pathOfTarget(target string) (mountPath, bool) {
	for _, root := range e.allRoots() {
		if below, ok := strings.CutPrefix(target, e.realRoot(path.Clean(root))+"/"); ok {
			return mountPath{host.Place{Root: path.Clean(root), Name: below}, target}, true
		}
	}
	return mountPath{}, false
}

func (e *Engine) allRoots() []string {
	if len(e.opt.Roots) == 0 {
		return []string{defaultRoot}
	}
	return e.opt.Roots
}
