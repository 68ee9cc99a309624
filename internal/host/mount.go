package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/drivebay/drivebay/internal/host/mountoptions"
	"golang.org/x/sys/unix"
)

// Mounts are made through file descriptors (fsopen, open_tree, move_mount: Linux 5.2; mount_setattr:
// 5.12). A mount has all its attributes, read-only included, before a process can see it, and it is
// attached to the folder that was opened, not to a name. A kernel without these calls gives
// ErrImpossible.

// Mount returns no kernel messages about options: they repeat the options, which may be secrets.
func (r *real) Mount(ctx context.Context, m NewMount) error {
	if err := r.mount(ctx, m); err != nil {
		return fmt.Errorf("mount %s at %s: %w", m.Device, m.At, err)
	}
	return nil
}

func (r *real) mount(ctx context.Context, m NewMount) error {
	m.Options = r.knownLabels(m.Options)
	at, err := m.At.open(unix.O_PATH | unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	tree, err := r.detached(m)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return moveTo(ctx, tree, at)
}

// knownLabels removes SELinux labels where the kernel has no SELinux and would refuse them: mount(8)
// does the same (libmount/src/hook_selinux.c).
func (r *real) knownLabels(options []string) []string {
	if _, err := r.ReadFile("sys/fs/selinux/enforce"); err == nil {
		return options
	}
	return slices.DeleteFunc(slices.Clone(options), func(o string) bool { return strings.HasPrefix(o, "context=") })
}

// detached mounts a device and returns the mount unattached: no mount table lists it yet.
func (r *real) detached(m NewMount) (tree int, err error) {
	dev, err := r.openNode(m.Device, unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return -1, openError(err)
	}
	defer unix.Close(dev)
	source, err := sourceName(dev)
	if err != nil {
		return -1, err
	}
	if m.FS == "btrfs" {
		r.forgetBtrfs(source)
	}
	tree, err = newMount(m, source)
	if err != nil {
		return -1, err
	}
	if now, err := sourceName(dev); err != nil || now != source {
		unix.Close(tree)
		return -1, fmt.Errorf("%w: the device node now belongs to another device", ErrGone)
	}
	return tree, nil
}

// sourceName returns the name of a device for the mount table: the path of its node if that path still
// leads to this device, else the path of our handle, which no process can resolve after ours has
// ended.
func sourceName(dev int) (string, error) {
	num, err := blockDevice(dev)
	if err != nil {
		return "", err
	}
	handle := fmt.Sprintf("/proc/self/fd/%d", dev)
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlink(handle, buf)
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	name := string(buf[:n])
	if unix.Stat(name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFBLK && devNum(st.Rdev) == num {
		return name, nil
	}
	return handle, nil
}

// newMount returns an unattached mount of a filesystem.
func newMount(m NewMount, source string) (int, error) {
	o := mountoptions.Sort(m.Options, m.ReadOnly)
	config, err := unix.Fsopen(m.FS, unix.FSOPEN_CLOEXEC)
	if err == unix.ENODEV {
		return -1, fmt.Errorf("%s: %w: the kernel has no such filesystem", m.FS, ErrImpossible)
	}
	if err != nil {
		return -1, fmt.Errorf("%s: %w", m.FS, workError(err))
	}
	defer unix.Close(config)
	if err := unix.FsconfigSetString(config, "source", source); err != nil {
		return -1, workError(err)
	}
	for i, option := range o.OfFS {
		if key, value, ok := strings.Cut(option, "="); ok {
			err = unix.FsconfigSetString(config, key, value)
		} else {
			err = unix.FsconfigSetFlag(config, key)
		}
		if err != nil {
			return -1, fmt.Errorf("the kernel refuses filesystem option number %d: %w", i+1, workError(err))
		}
	}
	if err := unix.FsconfigCreate(config); err != nil {
		return -1, workError(err)
	}
	tree, err := unix.Fsmount(config, unix.FSMOUNT_CLOEXEC, o.Attributes)
	return tree, workError(err)
}

// Bind copies only the topmost mount of the place, not the mounts below it.
func (r *real) Bind(ctx context.Context, from, to Place, readOnly bool) error {
	what, err := from.open(unix.O_PATH)
	if err == nil {
		defer unix.Close(what)
		err = bind(ctx, what, to, readOnly)
	}
	if err != nil {
		return fmt.Errorf("bind %s at %s: %w", from, to, err)
	}
	return nil
}

// BindDevice does not protect the device by a read-only mount: a write to a device node does not go
// through the filesystem that holds the node. Disk.SetReadOnly protects the device.
func (r *real) BindDevice(ctx context.Context, dev string, to Place, readOnly bool) error {
	what, err := r.openNode(dev, unix.O_PATH|unix.O_CLOEXEC)
	if err == nil {
		defer unix.Close(what)
		_, err = blockDevice(what)
	}
	if err == nil {
		err = bind(ctx, what, to, readOnly)
	}
	if err != nil {
		return fmt.Errorf("bind %s at %s: %w", dev, to, openError(err))
	}
	return nil
}

func bind(ctx context.Context, what int, to Place, readOnly bool) error {
	at, err := to.open(unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	tree, err := unix.OpenTree(what, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return workError(err)
	}
	defer unix.Close(tree)
	if readOnly {
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return workError(err)
		}
	}
	return moveTo(ctx, tree, at)
}

// moveTo attaches a mount to an open file or folder. A directory is attached to a directory and any other file to
// any other file, else the kernel returns EINVAL. Nothing is attached for a caller that has gone.
func moveTo(ctx context.Context, tree, at int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return workError(unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
}

// Unmount names the last part of the path within its open folder: a handle on the mount itself would
// keep it busy. It asks the filesystem nothing first, which may have shut down.
func (r *real) Unmount(_ context.Context, p Place) error {
	folder, last, err := p.folder()
	if err == nil {
		defer unix.Close(folder)
		err = again(func() error {
			return unix.Unmount(fmt.Sprintf("/proc/self/fd/%d/%s", folder, last), unix.UMOUNT_NOFOLLOW)
		})
		if err == unix.EINVAL || err == unix.EPERM { // for a link as well, which is not followed
			if kind, _ := r.Look(p); kind == PlaceOther {
				err = unix.ELOOP
			}
		}
		if err == unix.EINVAL {
			err = ErrNotMounted
		}
		err = placeError(p, err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", ErrNotMounted, err)
	}
	if err != nil {
		return fmt.Errorf("unmount %w", err)
	}
	return nil
}
