package volume

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// table is the mount table at one moment.
type table struct {
	at    time.Time
	deeds uint64 // how many of our own mounts and unmounts had been done before it was read
	*mountSet
}

// mountSet is what is mounted: two tables that say the same have the same one.
type mountSet struct {
	all  []host.Mount
	on   map[string][]host.Mount // by target, the topmost last
	by   map[string][]host.Mount // by what carries knows a device by
	last map[string]int          // by target, where in the table the topmost is
}

// mountAge is how old the table may be for whoever only looks. Our own mounts are
// always in it.
const mountAge = 200 * time.Millisecond

// freshTable reads the mount table. Nothing of that asks a filesystem.
func (e *Engine) freshTable(ctx context.Context) (*table, error) {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	return e.readTable(ctx)
}

// recentTable saves reading it for each of a thousand who ask at once.
func (e *Engine) recentTable(ctx context.Context) (*table, error) {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	if t := e.lastTable; t != nil && e.machine.Now().Sub(t.at) < mountAge {
		return t, nil
	}
	return e.readTable(ctx)
}

// tableAfter is a table that was read after a moment: one reading serves all who
// wait for it.
func (e *Engine) tableAfter(ctx context.Context, moment time.Time) (*table, error) {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	if t := e.lastTable; t != nil && !t.at.Before(moment) {
		return t, nil
	}
	return e.readTable(ctx)
}

func (e *Engine) readTable(ctx context.Context) (*table, error) {
	at, deeds := e.machine.Now(), e.deeds.Load()
	all, err := e.machine.Mounts(ctx)
	if err != nil {
		return nil, fmt.Errorf("mount table: %w", err)
	}
	if e.lastSet == nil || !slices.Equal(e.lastSet.all, all) {
		e.lastSet = newMountSet(all)
	}
	e.lastTable = &table{at, deeds, e.lastSet}
	return e.lastTable, nil
}

func newMountSet(all []host.Mount) *mountSet {
	s := &mountSet{all: all, on: make(map[string][]host.Mount, len(all)), by: make(map[string][]host.Mount, len(all)), last: make(map[string]int, len(all))}
	for i, m := range all {
		s.on[m.Target] = append(s.on[m.Target], m)
		s.last[m.Target] = i
		s.by[m.DevNum] = append(s.by[m.DevNum], m)
		if name := nodeIn(m); name != "" {
			s.by[name] = append(s.by[name], m)
		}
	}
	return s
}

// touched says that we have changed the mount table.
func (e *Engine) touched() {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	e.lastTable = nil
	e.deeds.Add(1)
}

// above is what hides a path: it was mounted later, on a folder that the path is in.
// The mount table has the mounts in the order in which they were made.
func (s *mountSet) above(target string) (host.Mount, bool) {
	for dir := path.Dir(target); dir != "/" && dir != "."; dir = path.Dir(dir) {
		if i, ok := s.last[dir]; ok && i > s.last[target] {
			return s.all[i], true
		}
	}
	return host.Mount{}, false
}

// top is what is seen at a path.
func (s *mountSet) top(target string) (host.Mount, bool) {
	on := s.on[target]
	if len(on) == 0 {
		return host.Mount{}, false
	}
	return on[len(on)-1], true
}

// of are the mounts of a device.
func (s *mountSet) of(d device) []host.Mount {
	if d.num == "" {
		return nil
	}
	return slices.Concat(s.by[d.num], s.by[d.name])
}

// carries says whether a mount shows a device: its filesystem, or its node.
func carries(m host.Mount, d device) bool {
	return d.num != "" && (m.DevNum == d.num || d.name != "" && nodeIn(m) == d.name)
}

// nodeIn is the device of a mount that has another number: a btrfs has one of its own,
// but the mount table names its device; a node is a file of devtmpfs.
func nodeIn(m host.Mount) string {
	if m.FS == "btrfs" {
		return path.Base(m.Source)
	}
	return shows(m)
}

// unlinked ends the root of a mount whose file was removed (Linux, fs/d_path.c, dentry_path).
const unlinked = "//deleted"

// shows is the device whose node is bound there; "" for everything else. What is
// unlinked meanwhile says so in its root.
func shows(m host.Mount) string {
	if m.FS != "devtmpfs" && m.FS != "tmpfs" || m.Root == "/" {
		return ""
	}
	return path.Base(strings.TrimSuffix(m.Root, unlinked))
}

// what names a mount for people.
func what(m host.Mount) string {
	if node := shows(m); node != "" {
		return "the block device " + node
	}
	return m.FS + " of " + m.Source
}

// kernelMadeReadOnly says that a filesystem that was mounted for writing is not
// written to any more: the mount is rw still, its superblock says ro. Since Linux
// 6.15 that of an ext4 stays rw as well, and has another word (fs/ext4/super.c,
// ext4_handle_error and _ext4_show_options).
func kernelMadeReadOnly(m host.Mount) bool {
	return !isReadOnly(m) && (hasOption(m, "ro") || hasOption(m, "emergency_ro"))
}

// hasOption is so of the mount or of its superblock. Every mount is asked at every tick.
func hasOption(m host.Mount, name string) bool {
	for rest, more := m.Opts, true; more; {
		var option string
		if option, rest, more = strings.Cut(rest, ","); option == name {
			return true
		}
	}
	return false
}

// isReadOnly is so of the mount itself: its options come first.
func isReadOnly(m host.Mount) bool { return m.Opts == "ro" || strings.HasPrefix(m.Opts, "ro,") }
