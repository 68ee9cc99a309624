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
	at  time.Time
	all []host.Mount
	on  map[string][]host.Mount // by target, the topmost last
	by  map[string][]host.Mount // by what carries knows a device by
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
	at := e.machine.Now()
	all, err := e.machine.Mounts(ctx)
	if err != nil {
		return nil, fmt.Errorf("mount table: %w", err)
	}
	next := &table{at: at, all: all}
	if last := e.lastTable; last != nil && slices.Equal(last.all, all) {
		next.all, next.on, next.by = last.all, last.on, last.by
	} else {
		next.on, next.by = make(map[string][]host.Mount, len(all)), make(map[string][]host.Mount, len(all))
		for _, m := range all {
			next.on[m.Target] = append(next.on[m.Target], m)
			next.by[m.DevNum] = append(next.by[m.DevNum], m)
			if name := nodeIn(m); name != "" {
				next.by[name] = append(next.by[name], m)
			}
		}
	}
	e.lastTable = next
	return next, nil
}

// touched forgets the table that others may still look at.
func (e *Engine) touched() {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	e.lastTable = nil
}

// top is what is seen at a path.
func (t *table) top(target string) (host.Mount, bool) {
	on := t.on[target]
	if len(on) == 0 {
		return host.Mount{}, false
	}
	return on[len(on)-1], true
}

// of are the mounts of a device.
func (t *table) of(d device) []host.Mount {
	if d.num == "" {
		return nil
	}
	return slices.Concat(t.by[d.num], t.by[d.name])
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

// shows is the device whose node is bound there; "" for everything else. What is
// unlinked meanwhile says so in its root.
func shows(m host.Mount) string {
	if m.FS != "devtmpfs" && m.FS != "tmpfs" || m.Root == "/" {
		return ""
	}
	return path.Base(strings.TrimSuffix(m.Root, "//deleted"))
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
