// Package cluster runs a Kubernetes cluster of one node on this machine, in which the chart of drivebay is installed. The
// node has a network, mount and PID namespace of its own: all of it ends with one process.
package cluster

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/drivebay/drivebay/hack/fusedisk"
)

const (
	// NodeName is the name of the node.
	NodeName = "node1"
	// Driver is the name of the CSI driver.
	Driver = "drivebay.io"

	nodeIP    = "10.123.0.1"
	serviceIP = "10.96.0.1"
)

//go:embed config node.sh drives.sh kubelet.sh
var files embed.FS

// Cluster is a running cluster.
type Cluster struct {
	// Disk is under a drive that can fail and hang.
	Disk *fusedisk.Disk

	root, dir, run, logs string
	version              string // of Kubernetes
	lock                 *os.File
	node                 *exec.Cmd
	alive                *os.File // the node ends when it is closed

	mu    sync.Mutex
	ended []string // programs that ended
}

// Up starts a cluster, from what Build made, and waits until its node is ready. It first removes
// what a run left that was killed.
func Up(ctx context.Context, root, version string) (*Cluster, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("a cluster needs root")
	}
	c := newCluster(root)
	c.version = version
	if err := c.takeLock(ctx); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Down())
	}
	return c, nil
}

func newCluster(root string) *Cluster {
	dir := filepath.Join(root, ".cache/kube")
	return &Cluster{root: root, dir: dir, run: filepath.Join(dir, "run"), logs: filepath.Join(dir, "logs")}
}

func (c *Cluster) start(ctx context.Context) error {
	if err := errors.Join(c.removeLeftovers(), os.RemoveAll(c.logs), os.MkdirAll(c.logs, 0o755), c.writeConfig(), c.linkCommands()); err != nil {
		return err
	}
	if err := c.startNode(ctx); err != nil {
		return err
	}
	if err := c.startControlPlane(ctx); err != nil {
		return err
	}
	if err := c.showDrives(ctx); err != nil {
		return err
	}
	if err := c.startKubelet(ctx); err != nil {
		return err
	}
	return c.installChart(ctx)
}

// takeLock takes the lock of this machine's only cluster: the folders over which a node mounts, and the cgroups of
// its pods, are the same for all checkouts. The node holds the lock too: when it is free, a run that was killed has ended.
func (c *Cluster) takeLock(ctx context.Context) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile("/run/drivebay-kube.lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err = poll(ctx, "another cluster runs", func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) })
	if err != nil {
		f.Close()
		return err
	}
	c.lock = f
	return nil
}

func (c *Cluster) writeConfig() error {
	entries, err := files.ReadDir("config")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.run, 0o755); err != nil {
		return err
	}
	fill := strings.NewReplacer("@RUN@", c.run, "@DEBIAN@", filepath.Join(c.dir, "debian"), "@RACK@", c.Rack(), "@IMAGE@", daemonImage, "@TAG@", daemonTag)
	for _, e := range entries {
		text, err := files.ReadFile("config/" + e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(c.run, e.Name()), []byte(fill.Replace(string(text))), 0o600); err != nil {
			return err
		}
	}
	return writeIdentities(c.pki())
}

func (c *Cluster) pki(name ...string) string {
	return filepath.Join(append([]string{c.run, "pki"}, name...)...)
}

// hyper is the program of Kubernetes.
func (c *Cluster) hyper() string { return c.bin(program(c.version)) }

func (c *Cluster) bin(name string) string { return filepath.Join(c.dir, "bin", name) }

// startNode starts process 1 of the node and waits until its namespaces are ready.
func (c *Cluster) startNode(ctx context.Context) error {
	if err := c.makeMountPoints(); err != nil {
		return err
	}
	script, err := files.ReadFile("node.sh")
	if err != nil {
		return err
	}
	stdin, alive, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	stdout, ready, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdout.Close()
	log, err := os.Create(filepath.Join(c.logs, "node.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	c.alive = alive
	cmd := exec.Command("bash", append([]string{"-c", string(script), "node", c.run}, mountPoints...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = stdin, ready, log, []*os.File{c.lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET, Setsid: true}
	if err := errors.Join(cmd.Start(), ready.Close()); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	c.node = cmd
	if err := stdout.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if n, err := stdout.Read(make([]byte, 16)); n == 0 {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("node: namespaces: %w: %s", err, text)
	}
	return ctx.Err()
}

// startProgram starts a program in the node's namespaces. It ends with the node.
func (c *Cluster) startProgram(name string, args ...string) error {
	log, err := os.Create(filepath.Join(c.logs, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("nsenter", append([]string{"--target", fmt.Sprint(c.node.Process.Pid), "--mount", "--pid", "--net", "--"}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // ctrl-c does not reach it
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(c.dir, "debian/usr/bin")+":"+filepath.Join(c.dir, "debian/usr/sbin")+":"+os.Getenv("PATH"))
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		err := cmd.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = append(c.ended, fmt.Sprintf("%s ended (%v): see %s", name, err, log.Name()))
	}()
	return nil
}

// programsEnded is an error if a program ended by itself.
func (c *Cluster) programsEnded() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ended) == 0 {
		return nil
	}
	return errors.New(strings.Join(c.ended, "\n"))
}

// Command returns a command that runs in the node's network, with the cluster's kubeconfig.
func (c *Cluster) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--target", fmt.Sprint(c.node.Process.Pid), "--net", "--", name}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.pki("admin.kubeconfig"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Kubectl runs kubectl and returns what it printed.
func (c *Cluster) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := c.Command(ctx, c.hyper(), append([]string{"kubectl"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

// wait calls check until it gives no error, a program of the cluster ended, or the time is over.
func (c *Cluster) wait(ctx context.Context, limit time.Duration, what string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var ended error
	err := poll(ctx, what, func() error {
		if ended = c.programsEnded(); ended != nil {
			return nil
		}
		return check()
	})
	return errors.Join(err, ended)
}

// poll calls check until it gives no error or ctx ends.
func poll(ctx context.Context, what string, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (%w)", what, err, context.Cause(ctx))
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// startControlPlane starts etcd, the API server, the controllers and the scheduler.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	hyper := c.hyper()
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	err := errors.Join(
		c.startProgram("etcd", hyper, "etcd", "--data-dir", filepath.Join(c.run, "etcd"), "--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--unsafe-no-fsync"),
		c.startProgram("containerd", "containerd", "-c", filepath.Join(c.run, "containerd.toml")),
		c.startProgram("apiserver", hyper, "kube-apiserver", "--etcd-servers", client, "--bind-address", "0.0.0.0", "--secure-port", "443", "--advertise-address", nodeIP,
			"--service-cluster-ip-range", "10.96.0.0/16", "--client-ca-file", c.pki("ca.crt"), "--tls-cert-file", c.pki("apiserver.crt"), "--tls-private-key-file", c.pki("apiserver.key"),
			"--service-account-key-file", c.pki("accounts.pub"), "--service-account-signing-key-file", c.pki("accounts.key"), "--service-account-issuer", "https://kubernetes.default.svc",
			"--authorization-mode", "Node,RBAC", "--allow-privileged", "--kubelet-client-certificate", c.pki("apiserver-kubelet.crt"), "--kubelet-client-key", c.pki("apiserver-kubelet.key"),
			"--kubelet-certificate-authority", c.pki("ca.crt"), "--kubelet-preferred-address-types", "InternalIP", "--feature-gates", "CSIVolumeHealth=true"))
	if err != nil {
		return err
	}
	if err := c.wait(ctx, 3*time.Minute, "API server", func() error {
		_, err := c.Kubectl(ctx, "", "get", "--raw", "/readyz")
		return err
	}); err != nil {
		return err
	}
	as := func(file string) []string {
		k := c.pki(file + ".kubeconfig")
		return []string{"--kubeconfig", k, "--authentication-kubeconfig", k, "--authorization-kubeconfig", k, "--bind-address", "127.0.0.1", "--leader-elect=false"}
	}
	return errors.Join(
		c.startProgram("controllers", slices.Concat([]string{hyper, "kube-controller-manager"}, as("controllers"),
			[]string{"--service-account-private-key-file", c.pki("accounts.key"), "--root-ca-file", c.pki("ca.crt"), "--use-service-account-credentials"})...),
		c.startProgram("scheduler", slices.Concat([]string{hyper, "kube-scheduler"}, as("scheduler"))...))
}

// startKubelet loads the images, starts the kubelet and waits until the node is ready and pods may be made.
func (c *Cluster) startKubelet(ctx context.Context) error {
	for _, archive := range []string{"images.tar", "daemon.tar"} {
		if err := c.wait(ctx, 2*time.Minute, archive, func() error { return c.importImages(ctx, archive) }); err != nil {
			return err
		}
	}
	script, err := files.ReadFile("kubelet.sh")
	if err != nil {
		return err
	}
	if err := c.startProgram("kubelet", "unshare", "--mount", "--propagation", "unchanged", "bash", "-c", string(script), "kubelet", c.hyper(), "kubelet",
		"--config", filepath.Join(c.run, "kubelet.yaml"), "--kubeconfig", c.pki("kubelet.kubeconfig"), "--hostname-override", NodeName, "--node-ip", nodeIP); err != nil {
		return err
	}
	return c.wait(ctx, 3*time.Minute, "node", func() error {
		_, err := c.Kubectl(ctx, "", "wait", "--for=condition=Ready", "--timeout=1s", "node/"+NodeName)
		if err == nil {
			_, err = c.Kubectl(ctx, "", "get", "serviceaccount", "default")
		}
		return err
	})
}

func (c *Cluster) importImages(ctx context.Context, archive string) error {
	cmd := exec.CommandContext(ctx, "nsenter", "--target", fmt.Sprint(c.node.Process.Pid), "--mount", "--", filepath.Join(c.dir, "debian/usr/bin/ctr"),
		"--namespace", "k8s.io", "images", "import", filepath.Join(c.dir, archive))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// Down ends the cluster and removes what it made, except the logs. A program that ended before is an error.
func (c *Cluster) Down() error {
	errs := []error{c.programsEnded()}
	if c.Disk != nil {
		c.Disk.Fail(false)
		c.Disk.Hang(false)
	}
	if c.alive != nil {
		errs = append(errs, c.alive.Close())
	}
	if c.node != nil {
		_ = c.node.Wait() // it ends with its input; the kernel ends the others before
	}
	if err := os.Rename(filepath.Join(c.run, "node/var/log/pods"), filepath.Join(c.logs, "pods")); err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	errs = append(errs, c.detachLoops())
	if c.Disk != nil {
		errs = append(errs, c.Disk.Close())
	}
	return errors.Join(append(errs, c.removeLeftovers(), c.lock.Close())...)
}

// Clean removes what a run left that was killed.
func Clean(ctx context.Context, root string) error {
	c := newCluster(root)
	if err := c.takeLock(ctx); err != nil {
		return err
	}
	return errors.Join(c.removeLeftovers(), c.lock.Close())
}
