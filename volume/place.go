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

// spot refuses every path that is not below a root of the configuration. What
// links there could lead elsewhere is seen to where the path is opened.
func (e *Engine) spot(name string) (spot, error) {
	roots := e.opt.Roots
	if len(roots) == 0 {
		roots = []string{defaultRoot}
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

// realRoot is where a root leads: many a /var/lib/kubelet is a link to a larger
// disk, and the mount table knows no links.
func (e *Engine) realRoot(root string) string {
	if name, err := e.machine.Resolve(strings.TrimPrefix(root, "/")); err == nil {
		return "/" + name
	}
	return root
}
