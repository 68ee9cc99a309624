package filesystem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// Mounted is a mounted filesystem, at one place or more.
type Mounted struct {
	sysfs.Entries
	content.Super
	table    *mountTable
	dev      *block.Device
	num      string // device number in the mount table; btrfs has an anonymous one
	ReadOnly bool   // the superblock: no mount of it is writable
	Wanted   bool   // it was mounted read-only
	Hidden   bool   // the mount table does not show readOnly
	opts     []string
	mounts   int // number of mounts that show it
}

// show adds the sysfs files of a mounted filesystem.
func (f *Mounted) show() {
	switch dir := "sys/fs/" + f.Kind + "/" + f.dev.Name; f.Kind {
	case "ext4": // Documentation/ABI/testing/sysfs-fs-ext4
		for name, n := range map[string]func() int64{
			"errors_count": func() int64 { return int64(f.Errors) }, "warning_count": func() int64 { return int64(f.Warnings) },
			"first_error_time": func() int64 { return f.First }, "last_error_time": func() int64 { return f.Last },
		} {
			f.Live(dir+"/"+name, func() string { return fmt.Sprintln(n()) })
		}
	case "xfs":
		f.File(dir+"/log/log_head_lsn", "1:2\n")
	case "btrfs":
		dir = "sys/fs/btrfs/" + content.UUIDText(f.UUID)
		f.File(dir+"/label", f.Label+"\n")
		f.Link(dir+"/devices/"+f.dev.Name, f.dev.Dir)
		f.Live(dir+"/devinfo/1/error_stats", func() string {
			return fmt.Sprintf("write_errs 0\nread_errs 0\nflush_errs 0\ncorruption_errs %d\ngeneration_errs 0\n", f.Errors)
		})
	}
}

// options returns the options of the superblock, as the mount table shows them.
func (f *Mounted) options() string {
	out := []string{readWrite(f.ReadOnly && !f.Hidden)}
	for _, o := range f.opts {
		if value, is := strings.CutPrefix(o, "context="); is && strings.Contains(value, ",") { // show_sid
			o = `context="` + value + `"`
		}
		out = append(out, o)
	}
	return strings.Join(out, ",")
}

func readWrite(readOnly bool) string {
	if readOnly {
		return "ro"
	}
	return "rw"
}

// save writes the changes if the device allows it.
func (f *Mounted) save() {
	drives, err := f.dev.Ask(block.Access{Write: true})
	if err != nil || slices.ContainsFunc(drives, func(d *block.Drive) bool { return d.Faults.Hang != nil }) {
		return // the changes stay in memory, as in the kernel
	}
	// A device error is ignored here: the device returns it at the next access.
	_ = f.write()
}

// write writes the superblock of a mounted filesystem to its device. The kernel is the writer, not a
// program.
func (f *Mounted) write() error {
	before := f.dev.Devices.Writer
	f.dev.Devices.Writer = block.WriterFilesystem
	defer func() { f.dev.Devices.Writer = before }()
	return f.Store(f.dev.Write)
}

// Fail does what the kernel does about an error that it finds in a filesystem (fs/ext4/super.c,
// ext4_handle_error).
func (f *Mounted) Fail(n uint64, what string) {
	m := f.dev.Devices
	now := m.Clock.Now().Unix()
	if f.Errors == 0 {
		f.First = now
	}
	f.Errors += n
	f.Last = now
	switch f.Kind {
	case "ext4":
		m.Logf(kernel.LevelErr, "EXT4-fs error (device %s): %s", f.dev.Name, what)
		if slices.Contains(f.opts, "errors=remount-ro") {
			f.TurnReadOnly()
		}
	case "xfs":
		m.Logf(kernel.LevelErr, "XFS (%s): Metadata corruption detected at xfs_agi_verify: %s", f.dev.Name, what)
	case "btrfs":
		m.Logf(kernel.LevelErr, "BTRFS error (device %s): parent transid verify failed: %s", f.dev.Name, what)
	}
	f.save()
}

func (f *Mounted) TurnReadOnly() {
	if f.ReadOnly {
		return
	}
	f.ReadOnly = true
	m := f.dev.Devices
	switch f.Kind {
	case "ext4":
		m.Logf(kernel.LevelErr, "EXT4-fs (%s): Remounting filesystem read-only", f.dev.Name)
	case "xfs":
		m.Logf(kernel.LevelErr, "XFS (%s): Filesystem has been shut down due to log error (0x2).", f.dev.Name)
	case "btrfs":
		m.Logf(kernel.LevelErr, "BTRFS info (device %s): forced readonly", f.dev.Name)
	}
}

// touch reads or writes a mounted filesystem. A removed device is an input/output error to users of
// the filesystem.
func (f *Mounted) touch(ctx context.Context, write bool, work func() error) error {
	err := f.dev.Do(ctx, block.Access{Write: write, N: 4096}, func() error {
		if write && f.ReadOnly {
			return errReadFS
		}
		return work()
	})
	if errors.Is(err, kernel.ErrIO) {
		f.dev.Devices.Mu.Lock()
		defer f.dev.Devices.Mu.Unlock()
		if f.table.on[f.dev] == f {
			f.Fail(1, "ext4_find_entry: inode #2: comm drivebay: reading directory lblock 0")
		}
	}
	if errors.Is(err, host.ErrGone) {
		err = kernel.ErrIO
	}
	return err
}

// mountedOptions are the options that each filesystem accepts, by the beginning of the word.
var mountedOptions = map[string][]string{
	"ext4": {"discard", "nodiscard", "errors=", "data=", "commit=", "barrier", "nobarrier", "noload", "norecovery", "delalloc", "nodelalloc",
		"user_xattr", "acl", "init_itable", "noinit_itable", "stripe=", "quota", "usrquota", "grpquota", "prjquota", "inode_readahead_blks="},
	"xfs": {"discard", "nodiscard", "nouuid", "norecovery", "logbufs=", "logbsize=", "inode64", "inode32", "allocsize=", "noquota", "quota",
		"uquota", "gquota", "pquota", "usrquota", "grpquota", "prjquota", "noalign", "sunit=", "swidth=", "attr2", "largeio"},
	"btrfs": {"discard", "nodiscard", "compress", "ssd", "nossd", "space_cache", "subvol", "commit=", "autodefrag", "noautodefrag",
		"nodatacow", "nodatasum", "degraded", "skip_balance", "rescue="},
}

var (
	ofMount   = []string{"nosuid", "nodev", "noexec", "noatime", "nodiratime", "relatime", "strictatime", "nosymfollow"}
	ofNobody  = []string{"", "defaults", "rw", "ro", "suid", "dev", "exec", "atime", "diratime", "symfollow", "auto", "noauto", "nofail", "_netdev"}
	errOption = fmt.Errorf("%w: the filesystem does not know an option", kernel.ErrInvalid)
)

// sortOptions separates the options of the mount from those of the filesystem.
func sortOptions(kind string, list []string) (own, fs []string, err error) {
	for _, o := range list {
		switch {
		case slices.Contains(ofMount, o):
			own = append(own, o)
		case strings.HasPrefix(o, "context=") && !strings.Contains(o, `"`): // security/selinux/hooks.c: the label and no quotes
			fs = append(fs, o)
		case slices.Contains(ofNobody, o), strings.HasPrefix(o, "x-"):
		case slices.ContainsFunc(mountedOptions[kind], func(known string) bool { return o == known || strings.HasPrefix(o, strings.TrimSuffix(known, "=")+"=") }):
			fs = append(fs, o)
		default:
			return nil, nil, errOption
		}
	}
	if !slices.ContainsFunc(own, func(o string) bool { return strings.HasSuffix(o, "atime") && o != "nodiratime" }) {
		own = append(own, "relatime")
	}
	return own, fs, nil
}
