package volume

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// table is the mount table at one moment.
type mountTable struct {
	at      time.Time
	changes uint64 // how many mounts and unmounts the engine had done before it was read
	*mountSet
}

// mountSet is the content of a mount table. Tables with equal content share one.
type mountSet struct {
	read []host.Mount            // as the kernel has them
	all  []host.Mount            // with the kernel's names of devices
	on   map[string][]host.Mount // by target, the topmost last
	by   map[string][]host.Mount // by the device number, and by the device name where nodeIn returns one
	last map[string]int          // by target, index of the topmost in all

	naming sync.Once
	named  map[string][]host.Mount // see namedMounts
}

const (
	// mountAge is the maximum age of the table for calls that only read it. The engine's own
	// mounts are always in it.
	mountAge = 200 * time.Millisecond
	// mountSoon is the age at which the table is read again in the background. Reading a thousand
	// mounts takes milliseconds, for which concurrent calls would wait otherwise.
	mountSoon = 100 * time.Millisecond
)

// freshTable reads the mount table. That accesses no filesystem.
func (e *Engine) freshTable(ctx context.Context) (*mountTable, error) {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	return e.readTable(ctx)
}

// recentTable returns a recent table, so that concurrent callers share one reading.
func (e *Engine) recentTable(ctx context.Context) (*mountTable, error) {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	if t := e.lastTable; t != nil {
		switch age := e.machine.Now().Sub(t.at); {
		case age < mountSoon:
			return t, nil
		case age < mountAge:
			e.readAside()
			return t, nil
		}
	}
	return e.readTable(ctx)
}

// readAside reads the table in the background. After an error the next call reads the table itself
// and returns the error.
func (e *Engine) readAside() {
	if !e.readAhead.CompareAndSwap(false, true) {
		return
	}
	e.inBackground("mount table", func() {
		defer e.readAhead.Store(false)
		at, changes := e.machine.Now(), e.mountChanges.Load()
		all, err := e.machine.Mounts(e.ctx)
		e.tableMu.Lock()
		defer e.tableMu.Unlock()
		if t := e.lastTable; err == nil && t != nil && t.at.Before(at) && changes == e.mountChanges.Load() {
			e.keepMounts(at, changes, all)
		}
	})
}

// tableAfter returns a table that was read after a moment. Callers that wait for one share one
// reading.
func (e *Engine) tableAfter(ctx context.Context, moment time.Time) (*mountTable, error) {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	if t := e.lastTable; t != nil && !t.at.Before(moment) {
		return t, nil
	}
	return e.readTable(ctx)
}

func (e *Engine) readTable(ctx context.Context) (*mountTable, error) {
	at, changes := e.machine.Now(), e.mountChanges.Load()
	all, err := e.machine.Mounts(ctx)
	if err != nil {
		return nil, fmt.Errorf("mount table: %w", err)
	}
	e.keepMounts(at, changes, all)
	return e.lastTable, nil
}

func (e *Engine) keepMounts(at time.Time, changes uint64, all []host.Mount) {
	if e.lastSet == nil || !sameMounts(e.lastSet.read, all) {
		e.lastSet = newMountSet(e.withKernelNames(all))
		e.lastSet.read = all
	}
	e.lastTable = &mountTable{at, changes, e.lastSet}
}

// sameMounts compares two tables. The machine returns the same slice while nothing changes.
func sameMounts(a, b []host.Mount) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// withKernelNames replaces the names of device-mapper in a mount table. Since Linux 6.13 a btrfs shows
// /dev/mapper/NAME when it was mounted as /dev/dm-N (fs/btrfs/volumes.c, get_canonical_dev_path), and
// before that after udev has named its device (btrfs-progs, 64-btrfs-dm.rules).
func (e *Engine) withKernelNames(all []host.Mount) []host.Mount {
	const mapper = "/dev/mapper/"
	mapped := func(m host.Mount) bool { return m.FS == "btrfs" && strings.HasPrefix(m.Source, mapper) }
	if !slices.ContainsFunc(all, mapped) {
		return all
	}
	kernel := map[string]string{}
	names, _ := e.machine.ReadDir("sys/block") // without it the names stay as they are
	for _, name := range names {
		if strings.HasPrefix(name, "dm-") {
			if title, err := e.mapperName("sys/block/" + name); err == nil {
				kernel[mapper+title] = "/dev/" + name
			}
		}
	}
	out := slices.Clone(all)
	for i := range out {
		if name := kernel[out[i].Source]; name != "" && mapped(out[i]) {
			out[i].Source = name
		}
	}
	return out
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

// touched drops the last table: the engine has changed the mounts.
func (e *Engine) touched() {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	e.lastTable = nil
	e.mountChanges.Add(1)
}

// above returns the mount that hides a path: it was made later, on a folder that the path is in. The
// mount table has the mounts in the order in which they were made.
func (s *mountSet) above(target string) (host.Mount, bool) {
	for dir := path.Dir(target); dir != "/" && dir != "."; dir = path.Dir(dir) {
		if i, ok := s.last[dir]; ok && i > s.last[target] {
			return s.all[i], true
		}
	}
	return host.Mount{}, false
}

// top returns the topmost mount at a path.
func (s *mountSet) top(target string) (host.Mount, bool) {
	on := s.on[target]
	if len(on) == 0 {
		return host.Mount{}, false
	}
	return on[len(on)-1], true
}

// of returns the mounts of a device.
func (s *mountSet) of(d device) []host.Mount {
	if d.num == "" {
		return nil
	}
	return slices.Concat(s.by[d.num], s.by[d.name])
}

// carries reports whether a mount shows a device: its filesystem or its node.
func carries(m host.Mount, d device) bool {
	return d.num != "" && (m.DevNum == d.num || d.name != "" && nodeIn(m) == d.name)
}

// nodeIn returns the device of a mount that has another number: a btrfs has its own number, but the
// mount table names its device; a device node is a file of devtmpfs.
func nodeIn(m host.Mount) string {
	if m.FS == "btrfs" {
		return path.Base(m.Source)
	}
	return shows(m)
}

// unlinked ends the root of a mount whose file was removed (Linux, fs/d_path.c, dentry_path).
const unlinked = "//deleted"

// isUnlinked reports whether a mount shows the node of a device that is gone: devtmpfs has unlinked
// it. A device that has the name by now is another one.
func isUnlinked(m host.Mount) bool { return m.FS == "devtmpfs" && strings.HasSuffix(m.Root, unlinked) }

// shows returns the device whose node is bound at a mount; "" for any other mount. The root of a node
// that was unlinked since ends in unlinked.
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

// kernelMadeReadOnly reports whether the kernel stopped writing to a filesystem that was mounted for
// writing: the mount is still rw, its superblock says ro. Since Linux 6.15 the superblock of an ext4
// stays rw as well, and has another word (fs/ext4/super.c, ext4_handle_error and _ext4_show_options).
func kernelMadeReadOnly(m host.Mount) bool {
	return !isReadOnly(m) && (hasOption(m, "ro") || hasOption(m, "emergency_ro"))
}

// hasOption reports whether a mount or its superblock has an option. It runs for every mount at every
// tick.
func hasOption(m host.Mount, name string) bool {
	for rest, more := m.Opts, true; more; {
		var option string
		if option, rest, more = strings.Cut(rest, ","); option == name {
			return true
		}
	}
	return false
}

// isReadOnly reports whether the mount itself is read-only: its options come first.
func isReadOnly(m host.Mount) bool { return m.Opts == "ro" || strings.HasPrefix(m.Opts, "ro,") }
