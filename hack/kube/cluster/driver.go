package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/drivebay/drivebay/hack/fusedisk"
)

const (
	bays      = 6
	driveSize = 8 << 30 // of a sparse file
	csiSocket = "/var/lib/kubelet/plugins/" + Driver + "/csi.sock"
)

// startDaemon attaches the drives and starts the daemon.
func (c *Cluster) startDaemon(ctx context.Context) error {
	devices, err := c.attachDrives(ctx)
	if err != nil {
		return err
	}
	script, err := files.ReadFile("daemon.sh")
	if err != nil {
		return err
	}
	rack := c.rack()
	plugins := filepath.Join(c.run, "node/var/lib/kubelet/plugins", Driver)
	if err := errors.Join(os.MkdirAll(plugins, 0o750), os.MkdirAll(filepath.Join(c.run, "node/var/lib/kubelet/plugins_registry"), 0o750),
		c.startProgram("drivebay", "unshare", "--mount", "--propagation", "unchanged", "bash", "-c", string(script), "daemon", strings.Join(devices, " "),
			c.bin("drivebay"), "serve", "--loop", "--claim", fmt.Sprintf("transport=loop,serial=%[1]s/bay*; transport=loop,serial=%[1]s/fuse/*", rack),
			"--state-dir", filepath.Join(rack, "state"), "--api", c.API(), "--csi-endpoint", "unix://"+csiSocket, "--node-id", NodeName)); err != nil {
		return err
	}
	if err := c.wait(ctx, time.Minute, "socket of the daemon", func() error {
		_, err := os.Stat(filepath.Join(plugins, "csi.sock"))
		return err
	}); err != nil {
		return err
	}
	return nil
}

// registerDriver declares the driver to Kubernetes and starts its registrar.
func (c *Cluster) registerDriver(ctx context.Context) error {
	manifest, err := os.ReadFile(filepath.Join(c.run, "driver.yaml"))
	if err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, string(manifest), "apply", "-f", "-"); err != nil {
		return err
	}
	return c.startProgram("registrar", c.bin("registrar"), Driver, csiSocket, "/var/lib/kubelet/plugins_registry/"+Driver+"-reg.sock")
}

func (c *Cluster) rack() string { return filepath.Join(c.run, "rack") }

// API is the address of the daemon's API.
func (c *Cluster) API() string { return "unix://" + filepath.Join(c.run, "api.sock") }

// attachDrives makes the drives: loop devices over sparse files, and one over a file that can fail and hang.
// That file is mounted now, for the node to have no copy of the mount: the kubelet asks every filesystem for its size.
func (c *Cluster) attachDrives(ctx context.Context) (devices []string, err error) {
	fuse := filepath.Join(c.rack(), "fuse")
	if err := os.MkdirAll(fuse, 0o700); err != nil {
		return nil, err
	}
	var backing []string
	for i := range bays {
		file := filepath.Join(c.rack(), fmt.Sprintf("bay%d", i+1))
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
