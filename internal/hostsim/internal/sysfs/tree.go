package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/drivebay/drivebay/internal/host"
)

// Node is a file, a folder or a link of the machine.
type Node struct {
	Path  string
	up    *Node
	kids  map[string]*Node // of a folder
	Link  string           // target text of a link
	Text  string           // content of a file, unless read is set
	Read  func() string
	Write func(string) error // nil: read-only
	owner owner              // what its flicker hides; nil for the machine's own
	Keep  bool               // a folder that stays when it is empty
}

// owner is a drive that files belong to. While it flickers, some reads do not find them.
type owner interface{ Flickers() bool }

// Tree holds the machine's files, from the root folder down.
type Tree struct {
	root *Node

	mu    sync.Mutex // guards found: reads happen at the same time
	found map[walked]*Node
}

// walked is a name that Walk has followed. The result holds until the tree changes.
type walked struct {
	name   string
	follow bool
}

func NewTree() *Tree { return &Tree{root: &Node{kids: map[string]*Node{}, Keep: true}} }

var (
	errIsFolder  = errors.New("is a directory")
	ErrNotFolder = fmt.Errorf("%w: not a directory", host.ErrOccupied)
	errNotLink   = errors.New("not a link")
	errLoop      = errors.New("too many levels of links")
)

// maxHops is the limit of links that a name may follow, as in the kernel (MAXSYMLINKS).
const maxHops = 40

// Walk returns the node of a name. With follow it also follows a link at the end.
func (t *Tree) Walk(name string, follow bool) (*Node, error) {
	key := walked{name, follow}
	t.mu.Lock()
	n := t.found[key]
	t.mu.Unlock()
	if n != nil {
		return n, nil
	}
	hops := maxHops
	n, err := t.from(t.root, name, follow, &hops)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.found == nil {
		t.found = map[walked]*Node{}
	}
	t.found[key] = n
	return n, nil
}

// changed forgets where names lead.
func (t *Tree) changed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found = nil
}

func (t *Tree) from(at *Node, rest string, follow bool, hops *int) (*Node, error) {
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		switch {
		case part == "" || part == ".":
			continue
		case at.kids == nil:
			return nil, ErrNotFolder
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
		if next.Link != "" && (rest != "" || follow) {
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
func (t *Tree) hop(n *Node, hops *int) (*Node, error) {
	if *hops--; *hops < 0 {
		return nil, errLoop
	}
	start := n.up
	if strings.HasPrefix(n.Link, "/") {
		start = t.root
	}
	return t.from(start, n.Link, true, hops)
}

// folder returns the folder of that name and makes its missing parts.
func (t *Tree) folder(path string) *Node {
	at := t.root
	for part := range strings.SplitSeq(path, "/") {
		next := at.kids[part]
		if next == nil {
			next = &Node{Path: join(at.Path, part), up: at, kids: map[string]*Node{}}
			at.kids[part] = next
			t.changed()
		}
		at = next
	}
	return at
}

// Keep makes folders that stay when they are empty.
func (t *Tree) Keep(paths ...string) {
	for _, p := range paths {
		for n := t.folder(p); n != nil; n = n.up {
			n.Keep = true
		}
	}
}

// Put adds or replaces a file or a link.
func (t *Tree) Put(path string, n *Node) *Node {
	dir, base := Split(path)
	n.Path, n.up = path, t.folder(dir)
	n.up.kids[base] = n
	t.changed()
	return n
}

// Drop removes a node and the parents that become empty.
func (t *Tree) Drop(n *Node) {
	for n.up != nil && !n.Keep && len(n.kids) == 0 {
		_, base := Split(n.Path)
		if n.up.kids[base] == n {
			delete(n.up.kids, base)
			t.changed()
		}
		n = n.up
	}
}

func (n *Node) names() []string { return slices.Sorted(maps.Keys(n.kids)) }

func (n *Node) content() string {
	if n.Read != nil {
		return n.Read()
	}
	return n.Text
}

func join(dir, base string) string {
	if dir == "" {
		return base
	}
	return dir + "/" + base
}

func Split(path string) (dir, base string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// Relative returns the text of a link at path to target, in the form of sysfs links.
func Relative(path, target string) string {
	dir, _ := Split(path)
	from, to := strings.Split(dir, "/"), strings.Split(target, "/")
	same := 0
	for same < len(from) && same < len(to) && from[same] == to[same] {
		same++
	}
	return strings.Repeat("../", len(from)-same) + strings.Join(to[same:], "/")
}
