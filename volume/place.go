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

// spot is a path that we may touch, and what the mount table calls it.
type spot struct {
	host.Place
	target string
}

const longestName = 255 // bytes of one part of a path: NAME_MAX

// spot refuses every path that is not below a root of the configuration. What
// links there could lead elsewhere is seen to where the path is opened.
func (e *Engine) spot(name string) (spot, error) {
	roots := e.allRoots()
	if slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return len(part) > longestName }) {
		return spot{}, fmt.Errorf("path %.80q...: %w: a part of it has more than %d bytes", name, drivebay.ErrInvalid, longestName)
	}
	if !path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..") || strings.ContainsRune(name, 0) {
		return spot{}, fmt.Errorf("path %q: %w: it must be absolute and without \"..\"", name, drivebay.ErrInvalid)
	}
	var best spot
	for _, root := range roots {
		below, ok := strings.CutPrefix(path.Clean(name), strings.TrimSuffix(path.Clean(root), "/")+"/")
		if ok && len(root) > len(best.Root) {
			best = spot{Place: host.Place{Root: path.Clean(root), Name: below}}
		}
	}
	if best.Root == "" {
		return spot{}, fmt.Errorf("path %q: %w: it must be below %s", name, drivebay.ErrInvalid, strings.Join(roots, " or "))
	}
	best.target = e.realRoot(best.Root) + "/" + best.Name
	return best, nil
}

// spotOfVolume is spot for who says that a volume is there: below no root there is
// none (CSI specification, errors of NodeGetVolumeStats and NodeExpandVolume).
func (e *Engine) spotOfVolume(id, name string) (spot, error) {
	at, err := e.spot(name)
	if err != nil {
		return at, fmt.Errorf("volume %s: %w: no volume is there: %v", id, drivebay.ErrNotFound, err)
	}
	return at, nil
}

// realRoot is where a root leads: many a /var/lib/kubelet is a link to a larger
// disk, and the mount table knows no links.
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

// spotOf is the path that the mount table calls by a name.
func (e *Engine) spotOf(target string) (spot, bool) {
	for _, root := range e.allRoots() {
		if below, ok := strings.CutPrefix(target, e.realRoot(path.Clean(root))+"/"); ok {
			return spot{host.Place{Root: path.Clean(root), Name: below}, target}, true
		}
	}
	return spot{}, false
}

func (e *Engine) allRoots() []string {
	if len(e.opt.Roots) == 0 {
		return []string{defaultRoot}
	}
	return e.opt.Roots
}
