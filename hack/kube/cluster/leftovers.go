package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// mountPoints are the folders into which the kubelet, containerd, CNI and the pods of drivebay write. The node mounts its own over them.
var mountPoints = []string{"/var/lib/kubelet", "/var/lib/cni", "/run/containerd", "/run/netns", "/var/log/pods", "/var/log/containers",
	"/var/lib/drivebay", "/run/drivebay", "/run/udev", "/run/lock/lvm"}

// makeMountPoints makes the folders that are missing. A machine with a kubelet of its own is refused: the
// cgroups of its pods have the names of ours.
func (c *Cluster) makeMountPoints() error {
	if entries, err := os.ReadDir("/var/lib/kubelet"); err == nil && len(entries) > 0 {
		return errors.New("/var/lib/kubelet is not empty: this machine is a node of another cluster")
	}
	for _, dir := range mountPoints {
		if _, err := os.Stat(dir); err == nil {
			continue
		}
		// The mark comes first: a folder that a killed run made is removed too.
		if err := errors.Join(os.WriteFile(c.mark(dir), nil, 0o600), os.MkdirAll(dir, 0o755)); err != nil {
			return err
		}
	}
	return nil
}

// mark is the file that says that a run made the folder.
func (c *Cluster) mark(dir string) string {
	return filepath.Join(c.dir, "made"+strings.ReplaceAll(dir, "/", "-"))
}

// removeLeftovers removes what the node's namespaces do not take with them: loop devices, mounts of
// fusedisk, cgroups, folders.
func (c *Cluster) removeLeftovers() error {
	errs := []error{c.detachLoops(), c.unmount(), removeCgroups()}
	for _, dir := range mountPoints {
		if _, err := os.Stat(c.mark(dir)); err == nil {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
				continue
			}
			errs = append(errs, os.Remove(c.mark(dir)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.RemoveAll(c.run)
}

// loops returns the loop devices of the cluster. Those that the kubelet makes for volumes of mode Block are first: they are over
// partitions of the others. They are known by that, because their names end with the namespaces of the node.
func (c *Cluster) loops() (devices []string, err error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	own, over := map[string]bool{}, map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // detached meanwhile
		}
		dir := filepath.Dir(filepath.Dir(f))
		device := "/dev/" + filepath.Base(dir)
		if !strings.HasPrefix(string(text), c.run+"/") {
			over[device] = backingDevice(device)
			continue
		}
		devices = append(devices, device)
		numbers, _ := filepath.Glob(dir + "/" + filepath.Base(dir) + "p*/dev")
		for _, file := range append(numbers, dir+"/dev") {
			if number, err := os.ReadFile(file); err == nil {
				own[strings.TrimSpace(string(number))] = true
			}
		}
	}
	for device, number := range over {
		if own[number] {
			devices = slices.Insert(devices, 0, device)
		}
	}
	return devices, err
}

// backingDevice is the number of the block device that a loop device is over, "" if it is over a file (loop(4), LOOP_GET_STATUS64).
func backingDevice(device string) string {
	f, err := os.Open(device)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := unix.IoctlLoopGetStatus64(int(f.Fd()))
	if err != nil || info.Rdevice == 0 {
		return ""
	}
	return fmt.Sprintf("%d:%d", unix.Major(info.Rdevice), unix.Minor(info.Rdevice))
}

// detachLoops detaches them and waits for the kernel, which detaches a device at its last close.
func (c *Cluster) detachLoops() error {
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		devices, err := c.loops()
		if err != nil || len(devices) == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("loop devices %v are still in use", devices)
		}
		for _, d := range devices {
			// The device may be gone meanwhile; if it is not, the next turn sees it.
			_ = exec.Command("losetup", "--detach", d).Run()
		}
	}
}

// unmount unmounts all below the folder of the run: removing the folder must not remove what is mounted there.
func (c *Cluster) unmount() error {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && strings.HasPrefix(fields[4], c.run+"/") {
			if err := syscall.Unmount(fields[4], syscall.MNT_DETACH); err != nil {
				errs = append(errs, fmt.Errorf("unmount %s: %w", fields[4], err))
			}
		}
	}
	return errors.Join(errs...)
}

// removeCgroups removes the cgroups of the pods. The kernel keeps those that have processes.
func removeCgroups() error {
	roots, err := filepath.Glob("/sys/fs/cgroup/*/kubepods")
	for _, root := range append(roots, "/sys/fs/cgroup/kubepods") {
		var dirs []string
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		slices.Reverse(dirs)
		for _, d := range dirs {
			// A cgroup stays busy for moments after its last process ended.
			for range 50 {
				if err = syscall.Rmdir(d); !errors.Is(err, syscall.EBUSY) {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("cgroup %s: %w", d, err)
			}
		}
	}
	return nil
}
