package apisuite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// Daemon is `drivebay serve` as a node of the cluster, on a simulated machine.
type Daemon struct {
	Node string

	api     *API
	program *program
	binary  string
	dir     string
	sim     string
	config  string // kubeconfig
	args    []string
}

// Daemon starts a daemon that connects with a kubeconfig; more are further arguments of `drivebay serve`.
func (a *API) Daemon(t *testing.T, node, sim, kubeconfig string, more ...string) *Daemon {
	t.Helper()
	d := &Daemon{Node: node, api: a, dir: t.TempDir(), binary: a.file("drivebay"), sim: sim, config: kubeconfig, args: more}
	a.buildDaemon(t)
	d.Start(t)
	return d
}

// buildDaemon builds the program, as it is released.
func (a *API) buildDaemon(t *testing.T) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-tags", "grpcnotrace", "-o", a.file("drivebay"), "./cmd/drivebay")
	build.Dir = a.Root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
}

// Start starts the daemon, with what it kept in its state directory, and waits until it answers.
func (d *Daemon) Start(t *testing.T) {
	t.Helper()
	args := append([]string{"serve", "--sim", d.sim, "--state-dir", filepath.Join(d.dir, "state"), "--api", d.address(), "--node-id", d.Node}, d.args...)
	if d.config != "" {
		args = append(args, "--kubernetes", "--kubeconfig", d.config)
	}
	d.program = d.api.startProgram(t, d.binary, filepath.Join(d.dir, "drivebay.log"), args...)
	Eventually(t, 30*time.Second, "the daemon answers", func() string {
		if out, err := d.cli(t, "drives"); err != nil {
			return out + "\n" + d.program.tail()
		}
		return ""
	})
}

// Stop ends the daemon as the system does.
func (d *Daemon) Stop(t *testing.T) {
	t.Helper()
	d.program.signal(t, syscall.SIGTERM)
	select {
	case <-d.program.ended:
	case <-time.After(20 * time.Second):
		t.Fatalf("the daemon did not end: %s", d.program.tail())
	}
}

// Kill ends the daemon as a failure of power does.
func (d *Daemon) Kill() { d.program.kill() }

// PID is the process of the daemon.
func (d *Daemon) PID() int { return d.program.cmd.Process.Pid }

// resident returns the memory of a program that is in RAM, in MiB, and the most that it was.
func (p *program) resident(t *testing.T) (now, most float64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		for name, into := range map[string]*float64{"VmRSS:": &now, "VmHWM:": &most} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
				if err != nil {
					t.Fatal(err)
				}
				*into = kib / 1024
			}
		}
	}
	return now, most
}

// Log returns the end of the daemon's log.
func (d *Daemon) Log() string { return d.program.tail() }

// CLI runs a command of drivebay on the daemon.
func (d *Daemon) CLI(t *testing.T, args ...string) string {
	t.Helper()
	out, err := d.cli(t, args...)
	if err != nil {
		t.Fatalf("drivebay %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// Snapshot returns what the daemon knows of its drives.
func (d *Daemon) Snapshot(t *testing.T) *drivebay.Snapshot {
	t.Helper()
	var s drivebay.Snapshot
	if err := json.Unmarshal([]byte(d.CLI(t, "drives", "--output", "json")), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func (d *Daemon) address() string { return "unix://" + filepath.Join(d.dir, "api.sock") }

func (d *Daemon) cli(t *testing.T, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), d.binary, append([]string{"--api", d.address()}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// Eventually fails the test unless check returns "" within a limit. It returns how long that took.
func Eventually(t *testing.T, limit time.Duration, what string, check func() (not string)) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		not := check()
		took := time.Since(began)
		if not == "" {
			return took
		}
		if took > limit {
			t.Fatalf("%s: not within %v: %s", what, limit, not)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
