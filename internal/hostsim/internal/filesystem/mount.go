package filesystem

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// mountTable is what is mounted.
type mountTable struct {
	devices   *block.Devices
	list      []*mount
	byPath    map[string][]*mount
	last      int                        // number of mounts so far
	on        map[*block.Device]*Mounted // mounted filesystems
	anonymous int                        // anonymous device numbers allocated
}

// Mounter implements host.Mounter: the mount table, and the folders and files of the machine.
type Mounter struct {
	*mountTable
	own     map[string]host.PlaceKind // folders and files outside the drives' filesystems
	written map[string]bool           // files with content, by path
}

func New(d *block.Devices) *Mounter {
	return &Mounter{&mountTable{devices: d, byPath: map[string][]*mount{}, on: map[*block.Device]*Mounted{}}, map[string]host.PlaceKind{}, map[string]bool{}}
}

// mount is an entry of the mount table.
type mount struct {
	id       int
	at       string         // absolute path
	what     host.PlaceKind // kind of the place that it shows
	fs       *Mounted       // nil: the machine's own
	inner    string         // path inside the filesystem that it shows
	readOnly bool
	opts     []string // of this mount only
	users    int      // number of users inside it
	boot     string   // options of a filesystem that is mounted since boot
	own      host.Mount
	node     *block.Device // the device whose node is mounted
	nodeNum  string        // the node's device number at mount time
}

// options returns the options of the mount and those of its superblock.
func (x *mount) options() (own, super string) {
	own = strings.Join(append([]string{readWrite(x.readOnly)}, x.opts...), ",")
	if x.fs != nil {
		return own, x.fs.options()
	}
	return own, cmp.Or(x.boot, "rw")
}

// entry returns the mount as the table shows it.
func (x *mount) entry() host.Mount {
	e := x.own
	e.ID, e.Target = x.id, x.at
	if x.fs != nil {
		e.DevNum, e.FS, e.Source, e.Root = x.fs.num, x.fs.Kind, "/dev/"+x.fs.dev.Name, "/"+x.inner
		if d := x.fs.dev; x.fs.Kind == "btrfs" && d.Mapped != nil && d.Mapped.Title != "" { // Linux 6.13, fs/btrfs/volumes.c, get_canonical_dev_path
			e.Source = "/dev/mapper/" + d.Mapped.Title
		}
	}
	if x.node != nil && (x.node.Gone || x.node.Num != x.nodeNum) { // Linux, fs/d_path.c: devtmpfs unlinks the node of a device that is removed
		e.Root += "//deleted"
	}
	own, super := x.options()
	e.Opts = own + "," + super
	return e
}

// addMount adds a mount to the table.
func (m *mountTable) addMount(x *mount) {
	m.last++
	x.id = 20 + m.last
	m.list = append(m.list, x)
	m.byPath[x.at] = append(m.byPath[x.at], x)
	if x.fs != nil {
		x.fs.mounts++
	}
}

// drop removes a mount from the table, and the filesystem with its last mount.
func (m *mountTable) drop(x *mount) {
	is := func(y *mount) bool { return y == x }
	m.list = slices.DeleteFunc(m.list, is)
	if m.byPath[x.at] = slices.DeleteFunc(m.byPath[x.at], is); len(m.byPath[x.at]) == 0 {
		delete(m.byPath, x.at)
	}
	if x.fs == nil {
		return
	}
	if x.fs.mounts--; x.fs.mounts == 0 {
		x.fs.Leave()
		delete(m.on, x.fs.dev)
		x.fs.dev.Mounted = false
	}
}

// top returns the mount that is visible at a path, nil if nothing is mounted there.
func (m *mountTable) top(at string) *mount {
	if list := m.byPath[at]; len(list) > 0 {
		return list[len(list)-1]
	}
	return nil
}

// Mounts implements host.Machine.
func (m *mountTable) Mounts(ctx context.Context) ([]host.Mount, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("mounts: %w", err)
	}
	m.devices.Mu.RLock()
	defer m.devices.Mu.RUnlock()
	list := make([]host.Mount, 0, len(m.list))
	for _, x := range m.list {
		list = append(list, x.entry())
	}
	return list, nil
}

// mountinfo returns the text of proc_pid_mountinfo(5).
func (m *mountTable) mountinfo() string {
	var b strings.Builder
	for _, x := range m.list {
		e := x.entry()
		own, super := x.options()
		parent := 21
		if x.at == "/" {
			parent = 1
		}
		fmt.Fprintf(&b, "%d %d %s %s %s %s - %s %s %s\n", e.ID, parent, e.DevNum, escape(e.Root), escape(e.Target), own, e.FS, escape(e.Source), super)
	}
	return b.String()
}

// mountList returns the text of proc_pid_mounts(5).
func (m *mountTable) mountList() string {
	var b strings.Builder
	for _, x := range m.list {
		e := x.entry()
		fmt.Fprintf(&b, "%s %s %s %s 0 0\n", escape(e.Source), escape(e.Target), e.FS, e.Opts)
	}
	return b.String()
}

var escape = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace

// Mount implements host.Mounter.
func (m *Mounter) Mount(ctx context.Context, n host.NewMount) error {
	if err := m.mount(ctx, n); err != nil {
		return fmt.Errorf("mount %s at %s: %w", n.Device, n.At, err)
	}
	return nil
}

func (m *Mounter) mount(ctx context.Context, n host.NewMount) error {
	own, opts, err := sortOptions(n.FS, n.Options)
	readOnly := n.ReadOnly || slices.Contains(n.Options, "ro")
	if err != nil {
		return err
	}
	m.devices.Mu.RLock()
	dev := m.devices.Lookup(n.Device)
	m.devices.Mu.RUnlock()
	if dev == nil {
		return host.ErrGone
	}
	if _, ok := mountedOptions[n.FS]; !ok {
		return fmt.Errorf("%s: %w: the kernel has no such filesystem", n.FS, host.ErrImpossible)
	}
	return dev.Do(ctx, block.Access{N: 4096}, func() error {
		at, err := m.free(ctx, n.At, host.PlaceFolder)
		if err != nil {
			return err
		}
		f, err := m.filesystem(dev, n.FS, readOnly, opts)
		if err != nil {
			return err
		}
		if m.on[dev] == nil {
			m.on[dev], dev.Mounted = f, true
			f.show()
			m.logMounted(f)
		}
		m.addMount(&mount{at: at, what: host.PlaceFolder, fs: f, readOnly: readOnly, opts: own})
		return nil
	})
}

// free returns the path of a place where something can be mounted. Nothing is mounted after ctx has ended.
func (m *Mounter) free(ctx context.Context, p host.Place, kind host.PlaceKind) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	at, err := m.where(p)
	if err != nil {
		return "", err
	}
	switch have := m.kind(at); {
	case have == host.PlaceNothing:
		return "", fs.ErrNotExist
	case have == host.PlaceOther:
		return "", host.ErrOutsideRoot
	case (have == host.PlaceFolder) != (kind == host.PlaceFolder):
		return "", sysfs.ErrNotFolder
	}
	return at, nil
}

// labelOf returns the SELinux label among mount options.
func labelOf(opts []string) string {
	i := slices.IndexFunc(opts, func(o string) bool { return strings.HasPrefix(o, "context=") })
	if i < 0 {
		return ""
	}
	return opts[i]
}

// filesystem returns the filesystem of a device to mount: the one that is mounted already, or a new
// one.
func (m *mountTable) filesystem(d *block.Device, kind string, readOnly bool, opts []string) (*Mounted, error) {
	s, ok := content.ReadSuper(d.Read)
	have := m.on[d]
	switch {
	case have != nil && (have.Kind != kind || have.Wanted != readOnly): // get_tree_bdev: one superblock for all mounts
		return nil, host.ErrBusy
	case have != nil && labelOf(have.opts) != labelOf(opts): // selinux_set_mnt_opts: different security settings
		return nil, fmt.Errorf("%w: same superblock, different security settings", kernel.ErrInvalid)
	case have != nil:
		return have, nil
	case d.Busy():
		return nil, host.ErrBusy
	case !ok || s.Kind != kind || s.Size > d.Length():
		return nil, fmt.Errorf("%w: wrong filesystem, or a bad superblock", kernel.ErrInvalid)
	case d.RefusesWrites() && !readOnly: // EACCES
		return nil, fmt.Errorf("the device is read-only: %w", host.ErrPermission)
	}
	f := &Mounted{Entries: sysfs.Entries{Tree: d.Tree, Owner: d.Owner}, Super: s, table: m, dev: d, num: d.Num, ReadOnly: readOnly, Wanted: readOnly, opts: opts}
	for _, x := range m.list {
		if x.fs == nil || x.fs.UUID != s.UUID || x.fs.Kind != kind {
			continue
		}
		// xfs_uuid_mount (fs/xfs/xfs_mount.c): with nouuid the UUID is neither checked nor recorded.
		if kind == "xfs" && !slices.Contains(opts, "nouuid") && !slices.Contains(x.fs.opts, "nouuid") {
			m.devices.Logf(kernel.LevelWarn, "XFS (%s): Filesystem has duplicate UUID %s - can't mount", d.Name, content.UUIDText(s.UUID))
			return nil, fmt.Errorf("%w: its UUID is mounted already", kernel.ErrInvalid)
		}
		if kind == "btrfs" {
			return nil, fmt.Errorf("%w: its UUID is mounted already", errExists)
		}
	}
	if kind == "btrfs" {
		m.anonymous++
		f.num = fmt.Sprintf("0:%d", 40+m.anonymous)
	}
	return f, nil
}

func (m *mountTable) logMounted(f *Mounted) {
	switch f.Kind {
	case "ext4":
		m.devices.Logf(kernel.LevelInfo, "EXT4-fs (%s): mounted filesystem %s with ordered data mode. Quota mode: none.", f.dev.Name, content.UUIDText(f.UUID))
		if f.Errors > 0 {
			m.devices.Logf(kernel.LevelWarn, "EXT4-fs (%s): warning: mounting fs with errors, running e2fsck is recommended", f.dev.Name)
		}
	case "xfs":
		m.devices.Logf(kernel.LevelInfo, "XFS (%s): Ending clean mount", f.dev.Name)
	case "btrfs":
		m.devices.Logf(kernel.LevelInfo, "BTRFS info (device %s): using crc32c (crc32c-intel) checksum algorithm", f.dev.Name)
	}
}
