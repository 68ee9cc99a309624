package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
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

// Run runs a command line in the folder of the repository, with kubectl and helm of the cluster, as a reader of docs/kubernetes.md does.
func (c *Cluster) Run(ctx context.Context, line string) (string, error) {
	cmd := c.Command(ctx, "bash", "-euc", line)
	cmd.Dir = c.root
	home := filepath.Join(c.run, "home")
	cmd.Env = append(cmd.Env, "PATH="+filepath.Join(c.run, "path")+":"+os.Getenv("PATH"), "HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// linkCommands puts the programs of the cluster under their usual names into the path of Run.
func (c *Cluster) linkCommands() error {
	dir := filepath.Join(c.run, "path")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, program := range map[string]string{"kubectl": c.hyper(), "helm": c.bin("helm"), "ginkgo": c.bin("ginkgo")} {
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
