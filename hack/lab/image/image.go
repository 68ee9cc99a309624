// Package image makes what a lab machine boots from: a kernel, an initial file
// system and a root disk, out of Debian packages that the machine's own apt
// fetches. What was made once is found again by what went into it.
package image

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Image is a set of files to boot.
type Image struct {
	Kernel string // an ELF file: QEMU starts it without unpacking anything
	Initrd string
	Root   string // ext4, only ever read
	ID     string // changes with the content
}

// recipe is part of every key: change it when the way of making changes.
const recipe = "drivebay lab image 3"

// packages of the root file system, beside Debian's essential ones.
var packages = strings.Fields(`
	systemd mount udev kmod iproute2 procps psmisc strace less iputils-ping
	lvm2 dmsetup thin-provisioning-tools cryptsetup-bin mdadm
	xfsprogs e2fsprogs btrfs-progs dosfstools parted gdisk fdisk
	smartmontools nvme-cli sg3-utils lsscsi hdparm ledmon drbd-utils wireguard-tools`)

// Tools are the programs that making and running a machine takes, and the
// Debian package of each.
var Tools = []struct{ Program, Package string }{
	{"qemu-system-x86_64", "qemu-system-x86"},
	{"mmdebstrap", "mmdebstrap"},
	{"mke2fs", "e2fsprogs"},
	{"depmod", "kmod"},
	{"objcopy", "binutils"},
	{"xz", "xz-utils"},
}

// Missing says which packages this machine lacks for the lab.
func Missing() []string {
	var out []string
	for _, t := range Tools {
		if _, err := lookPath(t.Program); err != nil {
			out = append(out, t.Package)
		}
	}
	return out
}

// lookPath also looks where an ordinary user's PATH does not.
func lookPath(program string) (string, error) {
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err == nil {
			return filepath.Join(dir, program), nil
		}
	}
	return exec.LookPath(program)
}

// Cache is the folder that everything is kept in, shared by all checkouts.
func Cache() (string, error) {
	if dir := os.Getenv("DRIVEBAY_LAB_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("where to keep the lab's images: %w (set DRIVEBAY_LAB_CACHE)", err)
	}
	return filepath.Join(dir, "drivebay-lab"), nil
}

// Make finds the image in the cache or makes it. guest is the program that the
// machine runs as PID 1. Progress goes to log.
func Make(ctx context.Context, cache, guest string, log io.Writer) (*Image, error) {
	if missing := Missing(); len(missing) > 0 {
		return nil, fmt.Errorf("the lab needs more of this machine: apt-get install --no-install-recommends %s", strings.Join(missing, " "))
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	unlock, err := Lock(ctx, cache, "image", log)
	if err != nil {
		return nil, err
	}
	defer unlock()
	base, err := makeBase(ctx, cache, log)
	if err != nil {
		return nil, err
	}
	return withGuest(base, guest)
}

// withGuest adds the program to a base: only this is made anew when it changes.
func withGuest(base, guest string) (*Image, error) {
	program, err := os.ReadFile(guest)
	if err != nil {
		return nil, err
	}
	id := Key(filepath.Base(base), string(program))
	img := &Image{Kernel: base + "/vmlinux", Root: base + "/root.img", Initrd: base + "/initrd-" + id, ID: id}
	touch(base)
	if _, err := os.Stat(img.Initrd); err == nil {
		return img, touch(img.Initrd)
	}
	Prune(base, "initrd-*", 7*24*time.Hour)
	return img, writeWhole(img.Initrd, func(w io.Writer) error { return writeInitrd(w, program, base+"/boot-modules") })
}

// Key is a short name for some content.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Lock keeps two builders of the same thing apart, in whichever process they run.
func Lock(ctx context.Context, cache, name string, log io.Writer) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(cache, name+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for said := false; ; said = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != syscall.EWOULDBLOCK || ctx.Err() != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), cmp.Or(context.Cause(ctx), error(err)))
		}
		if !said {
			fmt.Fprintf(log, "lab: somebody else is making the %s: waiting\n", name)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// writeWhole makes a file that is either absent or complete.
func writeWhole(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// touch marks a file as used; what was not used for long may be removed.
func touch(name string) error { return os.Chtimes(name, time.Now(), time.Now()) }

// Prune removes what matches and was not used for that long.
func Prune(dir, pattern string, age time.Duration) {
	names, _ := filepath.Glob(filepath.Join(dir, pattern))
	for _, name := range names {
		if st, err := os.Stat(name); err == nil && time.Since(st.ModTime()) > age {
			os.RemoveAll(name)
		}
	}
}
