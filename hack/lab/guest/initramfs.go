package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// enterRoot runs on the initial file system: the root disk is only read, what
// the guest writes goes to memory, so that a saved machine and its disk agree
// however often it is restored.
func enterRoot() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("this program is PID 1 of a lab machine; run the lab with: go run ./hack/lab")
	}
	if err := mountAll([]mountPoint{{"dev", "/dev", "devtmpfs", ""}, {"proc", "/proc", "proc", ""}, {"sys", "/sys", "sysfs", ""}}); err != nil {
		return err
	}
	if err := loadModules("/modules"); err != nil {
		return err
	}
	if err := awaitFile("/dev/vda", 10*time.Second); err != nil {
		return err
	}
	for _, dir := range []string{"/lower", "/new"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := syscall.Mount("/dev/vda", "/lower", "ext4", syscall.MS_RDONLY|syscall.MS_NOATIME, ""); err != nil {
		return fmt.Errorf("mount the root disk: %w", err)
	}
	if err := mountAll([]mountPoint{{"memory", "/upper", "tmpfs", ""}}); err != nil {
		return err
	}
	for _, dir := range []string{"/upper/up", "/upper/work"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := mountAll([]mountPoint{{"root", "/new", "overlay", "lowerdir=/lower,upperdir=/upper/up,workdir=/upper/work"}}); err != nil {
		return err
	}
	if err := copySelf("/new" + self); err != nil {
		return err
	}
	return switchRoot("/new")
}

// switchRoot makes root the root for good (Documentation/filesystems/ramfs-rootfs-initramfs.rst).
func switchRoot(root string) error {
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		if err := syscall.Mount(dir, root+dir, "", syscall.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", dir, err)
		}
	}
	os.RemoveAll("/modules") // the initial file system is memory
	os.Remove("/init")
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := syscall.Mount(root, "/", "", syscall.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := syscall.Chroot("."); err != nil {
		return err
	}
	return syscall.Exec(self, []string{self, "init"}, nil)
}

// loadModules loads the files of a folder in the order of their names.
func loadModules(dir string) error {
	files, err := filepath.Glob(dir + "/*.ko")
	if err != nil {
		return err
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil && err != syscall.EEXIST {
			return fmt.Errorf("load %s: %w", name, err)
		}
	}
	return nil
}

func awaitFile(name string, wait time.Duration) error {
	for end := time.Now().Add(wait); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(name); err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("no %s after %v", name, wait)
		}
	}
}

func copySelf(to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open("/init")
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}
