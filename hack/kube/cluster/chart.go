package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Namespace is that of the release of the chart.
const Namespace = "drivebay"

// installChart installs the chart as docs/kubernetes.md does, with the values of config/values.yaml, and waits until its pods are ready.
func (c *Cluster) installChart(ctx context.Context) error {
	if out, err := c.Run(ctx, "helm install drivebay deploy/chart/drivebay --namespace "+Namespace+" --create-namespace --values "+c.Values()); err != nil {
		return fmt.Errorf("install the chart: %w: %s", err, out)
	}
	return c.Installed(ctx)
}

// Values is the file of the values of the chart.
func (c *Cluster) Values() string { return filepath.Join(c.run, "values.yaml") }

// Installed waits until all pods of the chart are ready and the kubelet knows the driver.
func (c *Cluster) Installed(ctx context.Context) error {
	for _, kind := range []string{"daemonset/drivebay", "deployment/drivebay-controller"} {
		if err := c.wait(ctx, 3*time.Minute, kind, func() error {
			_, err := c.Kubectl(ctx, "", "--namespace", Namespace, "rollout", "status", "--timeout=5s", kind)
			return err
		}); err != nil {
			pods, _ := c.Kubectl(ctx, "", "--namespace", Namespace, "describe", "pods")
			return fmt.Errorf("%w\n%s", err, pods)
		}
	}
	return c.wait(ctx, time.Minute, "registration of the driver", func() error {
		out, err := c.Kubectl(ctx, "", "get", "csinode", NodeName, "-o", "jsonpath={.spec.drivers[*].name}")
		if err == nil && out != Driver {
			err = fmt.Errorf("the CSINode has the drivers %q", out)
		}
		return err
	})
}

// Addons is the folder of the manifests of CSI-Addons.
func (c *Cluster) Addons() string { return filepath.Join(c.dir, "csi-addons") }

// Run runs a command line in the folder of the repository, with kubectl and helm of the cluster, as a reader of docs/kubernetes.md does.
func (c *Cluster) Run(ctx context.Context, line string) (string, error) {
	out, err := c.Shell(ctx, line).CombinedOutput()
	return string(out), err
}

// Shell returns the command that runs a command line as Run does.
func (c *Cluster) Shell(ctx context.Context, line string) *exec.Cmd {
	cmd := c.Command(ctx, "bash", "-euc", line)
	cmd.Dir = c.root
	home := filepath.Join(c.run, "home")
	cmd.Env = append(cmd.Env, "PATH="+filepath.Join(c.run, "path")+":"+os.Getenv("PATH"), "HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	return cmd
}

// Dial connects to an address in the node's network, in which 127.0.0.1 is not that of this process.
func (c *Cluster) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", c.node.Process.Pid))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var conn net.Conn
	done := make(chan error, 1)
	go func() {
		// A socket belongs to the network of the thread that makes it. The thread goes back into its own network: if it ended, the
		// kernel would end the programs that it has started (PR_SET_PDEATHSIG of prctl(2) is about the parent's thread).
		runtime.LockOSThread()
		own, err := os.Open("/proc/thread-self/ns/net")
		if err == nil {
			defer own.Close()
			err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			runtime.UnlockOSThread()
			done <- fmt.Errorf("enter the network of the node: %w", err)
			return
		}
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	err = <-done
	return conn, err
}

// linkCommands puts the programs of the cluster under their usual names into the path of Run.
func (c *Cluster) linkCommands() error {
	dir := filepath.Join(c.run, "path")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, program := range map[string]string{"kubectl": c.hyper(), "kubectl-drivebay": c.bin("drivebay"), "helm": c.bin("helm"), "ginkgo": c.bin("ginkgo")} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// Drivebay returns a command of drivebay on the daemon of the node.
func (c *Cluster) Drivebay(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, c.bin("drivebay"), append([]string{"--api", c.API()}, args...)...)
}

// API is the address of the daemon's API.
func (c *Cluster) API() string {
	return "unix://" + filepath.Join(c.run, "node/run/drivebay/drivebay.sock")
}
