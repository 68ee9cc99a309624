package hostsim

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
)

// node is a file, a folder or a link of the machine.
type node struct {
	path  string
	up    *node
	kids  map[string]*node // of a folder
	link  string           // target text of a link
	text  string           // content of a file, unless read is set
	read  func() string
	write func(string) error // nil: read-only
	owner owner              // what its flicker hides; nil for the machine's own
	keep  bool               // a folder that stays when it is empty
}

// owner is a drive that files belong to. While it flickers, some reads do not find them.
type owner interface{ flickers() bool }

// tree holds the machine's files, from the root folder down.
type tree struct{ root *node }

func newTree() *tree { return &tree{root: &node{kids: map[string]*node{}, keep: true}} }

var (
	errIsFolder  = errors.New("is a directory")
	errNotFolder = fmt.Errorf("%w: not a directory", host.ErrOccupied)
	errNotLink   = errors.New("not a link")
	errLoop      = errors.New("too many levels of links")
)

// maxHops is the limit of links that a name may follow, as in the kernel (MAXSYMLINKS).
const maxHops = 40

// walk returns the node of a name. With follow it also follows a link at the end.
func (t *tree) walk(name string, follow bool) (*node, error) {
	hops := maxHops
	return t.from(t.root, name, follow, &hops)
}

func (t *tree) from(at *node, rest string, follow bool, hops *int) (*node, error) {
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		switch {
		case part == "" || part == ".":
			continue
		case at.kids == nil:
			return nil, errNotFolder
		case part == "..":
			if at.up != nil { // nothing is above the root
				at = at.up
			}
			continue
		}
		next := at.kids[part]
		if next == nil {
			return nil, fs.ErrNotExist
		}
		if next.link != "" && (rest != "" || follow) {
			var err error
			if next, err = t.hop(next, hops); err != nil {
				return nil, err
			}
		}
		at = next
	}
	return at, nil
}

// hop returns the target of a link.
func (t *tree) hop(n *node, hops *int) (*node, error) {
	if *hops--; *hops < 0 {
		return nil, errLoop
	}
	start := n.up
	if strings.HasPrefix(n.link, "/") {
		start = t.root
	}
	return t.from(start, n.link, true, hops)
}

// folder returns the folder of that name and makes its missing parts.
func (t *tree) folder(path string) *node {
	at := t.root
	for part := range strings.SplitSeq(path, "/") {
		next := at.kids[part]
		if next == nil {
			next = &node{path: join(at.path, part), up: at, kids: map[string]*node{}}
			at.kids[part] = next
		}
		at = next
	}
	return at
}

// keep makes folders that stay when they are empty.
func (t *tree) keep(paths ...string) {
	for _, p := range paths {
		for n := t.folder(p); n != nil; n = n.up {
			n.keep = true
		}
	}
}

// put adds or replaces a file or a link.
func (t *tree) put(path string, n *node) *node {
	dir, base := split(path)
	n.path, n.up = path, t.folder(dir)
	n.up.kids[base] = n
	return n
}

// drop removes a node and the parents that become empty.
func (t *tree) drop(n *node) {
	for n.up != nil && !n.keep && len(n.kids) == 0 {
		_, base := split(n.path)
		if n.up.kids[base] == n {
			delete(n.up.kids, base)
		}
		n = n.up
	}
}

func (n *node) names() []string { return slices.Sorted(maps.Keys(n.kids)) }

func (n *node) content() string {
	if n.read != nil {
		return n.read()
	}
	return n.text
}

func join(dir, base string) string {
	if dir == "" {
		return base
	}
	return dir + "/" + base
}

func split(path string) (dir, base string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// relative returns the text of a link at path to target, in the form of sysfs links.
func relative(path, target string) string {
	dir, _ := split(path)
	from, to := strings.Split(dir, "/"), strings.Split(target, "/")
	same := 0
	for same < len(from) && same < len(to) && from[same] == to[same] {
		same++
	}
	return strings.Repeat("../", len(from)-same) + strings.Join(to[same:], "/")
}
