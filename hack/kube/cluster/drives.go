package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/drivebay/drivebay/hack/fusedisk"
)

const (
	bays      = 6
	driveSize = 8 << 30 // of a sparse file
)

// Rack is the folder of the files below the drives.
func (c *Cluster) Rack() string { return filepath.Join(c.run, "rack") }

// showDrives attaches the drives and hides the other loop devices of the machine.
func (c *Cluster) showDrives(ctx context.Context) error {
	devices, err := c.attachDrives(ctx)
	if err != nil {
		return err
	}
	script, err := files.ReadFile("drives.sh")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "nsenter", "--target", fmt.Sprint(c.node.Process.Pid), "--mount", "--", "bash", "-c", string(script), "drives", strings.Join(devices, " "))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("hide loop devices: %w: %s", err, out)
	}
	return nil
}

// attachDrives makes the drives: loop devices over sparse files, and one over a file that can fail and hang.
// That file is mounted now, for the node to have no copy of the mount: the kubelet asks every filesystem for its size.
func (c *Cluster) attachDrives(ctx context.Context) (devices []string, err error) {
	fuse := filepath.Join(c.Rack(), "fuse")
	if err := os.MkdirAll(fuse, 0o700); err != nil {
		return nil, err
	}
	var backing []string
	for i := range bays {
		file := filepath.Join(c.Rack(), fmt.Sprintf("bay%d", i+1))
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, driveSize)); err != nil {
			return nil, err
		}
		backing = append(backing, file)
	}
	if c.Disk, err = fusedisk.New(fuse, driveSize); err != nil {
		return nil, err
	}
	for _, file := range append(backing, c.Disk.Path()) {
		out, err := exec.CommandContext(ctx, "losetup", "--find", "--show", "--partscan", "--direct-io=on", file).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("loop device over %s: %w: %s", file, err, out)
		}
		devices = append(devices, filepath.Base(strings.TrimSpace(string(out))))
	}
	return devices, nil
}
