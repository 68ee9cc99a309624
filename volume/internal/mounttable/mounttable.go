package mounttable

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

// Device is a block device, such as that of a volume.
type Device struct {
	Dev  string // "/dev/sda1", "/dev/dm-3"
	Num  string // "8:1"
	Name string // in sysfs
	Size uint64 // bytes
}

// table is the mount table at one moment.
type MountTable struct {
	at      time.Time
	Changes uint64 // how many mounts and unmounts the engine had done before it was read
	*MountSet
}

// MountSet is the content of a mount table. Tables with equal content share one.
type MountSet struct {
	read []host.Mount            // as the kernel has them
	all  []host.Mount            // with the kernel's names of devices
	On   map[string][]host.Mount // by target, the topmost last
	by   map[string][]host.Mount // by the device number, and by the device name where nodeIn returns one
	last map[string]int          // by target, index of the topmost in all

	naming sync.Once
	named  map[string][]host.Mount // see namedMounts
}

// At returns when the table was read.
func (t *MountTable) At() time.Time { return t.at }

const (
	// mountAge is the maximum age of the table for calls that only read it. The engine's own
	// mounts are always in it.
	mountAge = 500 * time.Millisecond
	// mountSoon is the age at which the table is read again in the background. Reading a thousand
	// mounts takes milliseconds, for which concurrent calls would wait otherwise. Until mountAge the
	// calls use the last table, also while a busy machine is slow to read the next one.
	mountSoon = 100 * time.Millisecond
)

// FreshTable reads the mount table. That accesses no filesystem.
func (e *Reader) FreshTable(ctx context.Context) (*MountTable, error) {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	return e.readTable(ctx)
}

// RecentTable returns a recent table, so that concurrent callers share one reading. A caller waits
// only if there is no recent table.
func (e *Reader) RecentTable(ctx context.Context) (*MountTable, error) {
	if t := e.recent(); t != nil {
		return t, nil
	}
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	if t := e.recent(); t != nil { // another caller has read it meanwhile
		return t, nil
	}
	return e.readTable(ctx)
}

// recent returns the last table unless it is too old, and has an older one read again.
func (e *Reader) recent() *MountTable {
	t := e.lastTable.Load()
	if t == nil {
		return nil
	}
	switch age := e.Machine.Now().Sub(t.at); {
	case age >= mountAge:
		return nil
	case age >= mountSoon:
		e.readAside()
	}
	return t
}

// readAside reads the table in the background. After an error the next call reads the table itself
// and returns the error.
func (e *Reader) readAside() {
	if !e.readAhead.CompareAndSwap(false, true) {
		return
	}
	e.Ledger.InBackground("mount table", func() {
		defer e.readAhead.Store(false)
		at, changes := e.Machine.Now(), e.MountChanges.Load()
		all, err := e.Machine.Mounts(e.Ctx)
		e.tableMu.Lock()
		defer e.tableMu.Unlock()
		if t := e.lastTable.Load(); err == nil && t != nil && t.at.Before(at) && changes == e.MountChanges.Load() {
			e.keepMounts(at, changes, all)
		}
	})
}

// TableAfter returns a table that was read after a moment. Callers that wait for one share one
// reading.
func (e *Reader) TableAfter(ctx context.Context, moment time.Time) (*MountTable, error) {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	if t := e.lastTable.Load(); t != nil && !t.at.Before(moment) {
		return t, nil
	}
	return e.readTable(ctx)
}

func (e *Reader) readTable(ctx context.Context) (*MountTable, error) {
	at, changes := e.Machine.Now(), e.MountChanges.Load()
	all, err := e.Machine.Mounts(ctx)
	if err != nil {
		return nil, fmt.Errorf("mount table: %w", err)
	}
	e.keepMounts(at, changes, all)
	return e.lastTable.Load(), nil
}

func (e *Reader) keepMounts(at time.Time, changes uint64, all []host.Mount) {
	if e.lastSet == nil || !sameMounts(e.lastSet.read, all) {
		e.lastSet = newMountSet(e.withKernelNames(all))
		e.lastSet.read = all
	}
	e.lastTable.Store(&MountTable{at, changes, e.lastSet})
}

// sameMounts compares two tables. The machine returns the same slice while nothing changes.
func sameMounts(a, b []host.Mount) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// withKernelNames replaces the names of device-mapper in a mount table. Since Linux 6.13 a btrfs shows
// /dev/mapper/NAME when it was mounted as /dev/dm-N (fs/btrfs/volumes.c, get_canonical_dev_path), and
// before that after udev has named its device (btrfs-progs, 64-btrfs-dm.rules).
func (e *Reader) withKernelNames(all []host.Mount) []host.Mount {
	const mapper = "/dev/mapper/"
	mapped := func(m host.Mount) bool { return m.FS == "btrfs" && strings.HasPrefix(m.Source, mapper) }
	if !slices.ContainsFunc(all, mapped) {
		return all
	}
	kernel := map[string]string{}
	names, _ := e.Machine.ReadDir("sys/block") // without it the names stay as they are
	for _, name := range names {
		if strings.HasPrefix(name, "dm-") {
			if title, err := e.MapperName("sys/block/" + name); err == nil {
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

func newMountSet(all []host.Mount) *MountSet {
	s := &MountSet{all: all, On: make(map[string][]host.Mount, len(all)), by: make(map[string][]host.Mount, len(all)), last: make(map[string]int, len(all))}
	for i, m := range all {
		s.On[m.Target] = append(s.On[m.Target], m)
		s.last[m.Target] = i
		s.by[m.DevNum] = append(s.by[m.DevNum], m)
		if name := nodeIn(m); name != "" {
			s.by[name] = append(s.by[name], m)
		}
	}
	return s
}

// Touched drops the last table: the engine has changed the mounts.
func (e *Reader) Touched() {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	e.lastTable.Store(nil)
	e.MountChanges.Add(1)
}

// Above returns the mount that hides a path: it was made later, on a folder that the path is in. The
// mount table has the mounts in the order in which they were made.
func (s *MountSet) Above(target string) (host.Mount, bool) {
	for dir := path.Dir(target); dir != "/" && dir != "."; dir = path.Dir(dir) {
		if i, ok := s.last[dir]; ok && i > s.last[target] {
			return s.all[i], true
		}
	}
	return host.Mount{}, false
}

// Top returns the topmost mount at a path.
func (s *MountSet) Top(target string) (host.Mount, bool) {
	on := s.On[target]
	if len(on) == 0 {
		return host.Mount{}, false
	}
	return on[len(on)-1], true
}

// Of returns the mounts of a device.
func (s *MountSet) Of(d Device) []host.Mount {
	if d.Num == "" {
		return nil
	}
	return slices.Concat(s.by[d.Num], s.by[d.Name])
}

// Carries reports whether a mount shows a device: its filesystem or its node.
func Carries(m host.Mount, d Device) bool {
	return d.Num != "" && (m.DevNum == d.Num || d.Name != "" && nodeIn(m) == d.Name)
}

// nodeIn returns the device of a mount that has another number: a btrfs has its own number, but the
// mount table names its device; a device node is a file of devtmpfs.
func nodeIn(m host.Mount) string {
	if m.FS == "btrfs" {
		return path.Base(m.Source)
	}
	return Shows(m)
}

// Unlinked ends the root of a mount whose file was removed (Linux, fs/d_path.c, dentry_path).
const Unlinked = "//deleted"

// IsUnlinked reports whether a mount shows the node of a device that is gone: devtmpfs has unlinked
// it. A device that has the name by now is another one.
func IsUnlinked(m host.Mount) bool { return m.FS == "devtmpfs" && strings.HasSuffix(m.Root, Unlinked) }

// Shows returns the device whose node is bound at a mount; "" for any other mount. The root of a node
// that was unlinked since ends in unlinked.
func Shows(m host.Mount) string {
	if m.FS != "devtmpfs" && m.FS != "tmpfs" || m.Root == "/" {
		return ""
	}
	return path.Base(strings.TrimSuffix(m.Root, Unlinked))
}

// What names a mount for people.
func What(m host.Mount) string {
	if node := Shows(m); node != "" {
		return "the block device " + node
	}
	return m.FS + " of " + m.Source
}

// KernelMadeReadOnly reports whether the kernel stopped writing to a filesystem that was mounted for
// writing: the mount is still rw, its superblock says ro. Since Linux 6.15 the superblock of an ext4
// stays rw as well, and has another word (fs/ext4/super.c, ext4_handle_error and _ext4_show_options).
func KernelMadeReadOnly(m host.Mount) bool {
	return !IsReadOnly(m) && (hasOption(m, "ro") || hasOption(m, "emergency_ro"))
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

// IsReadOnly reports whether the mount itself is read-only: its options come first.
func IsReadOnly(m host.Mount) bool { return m.Opts == "ro" || strings.HasPrefix(m.Opts, "ro,") }

// MapperName returns device-mapper's name of a device.
func (e *Reader) MapperName(dir string) (string, error) {
	b, err := e.Machine.ReadFile(dir + "/dm/name")
	return strings.TrimSpace(string(b)), err
}

// UnderDRBD returns the device under a DRBD device, and any other device itself. A DRBD device without a disk has nothing under it.
func (e *Reader) UnderDRBD(name string) string {
	if !strings.HasPrefix(name, "drbd") {
		return name
	}
	below, err := e.Machine.ReadDir("sys/class/block/" + name + "/slaves")
	if err != nil || len(below) != 1 {
		return name
	}
	return below[0]
}
