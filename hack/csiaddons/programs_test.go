package csiaddons

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// station is a daemon on a simulated machine, and the programs that call it.
type station struct {
	dir     string // with the programs and the sockets
	cluster *cluster
}

func newStation(t *testing.T) *station {
	dir, err := os.MkdirTemp("", "addons-") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &station{dir: dir, cluster: newCluster(t, filepath.Join(dir, "account"))}
	s.build(t, "-C", "../..", "-o", filepath.Join(dir, "drivebay"), "./cmd/drivebay")
	s.build(t, "-o", dir+"/", "tool")
	write(t, filepath.Join(dir, "rack.yaml"), "machine: rack\nclaim: all\ndrives:\n  - {count: 4, kind: nvme, size: 60GB}\n")
	s.start(t, filepath.Join(dir, "drivebay"), "serve", "--sim", filepath.Join(dir, "rack.yaml"), "--state-dir", filepath.Join(dir, "state"),
		"--api", "unix://"+dir+"/api.sock", "--csi-endpoint", "unix://"+dir+"/csi.sock", "--addons-endpoint", "unix://"+s.socket())
	return s
}

func (s *station) socket() string { return s.dir + "/addons.sock" }

func (s *station) build(t *testing.T, args ...string) {
	t.Helper()
	// -C has to be the first.
	if args[0] == "-C" {
		args = append(args[:2:2], append([]string{"-buildvcs=false"}, args[2:]...)...)
	}
	cmd := exec.Command("go", append([]string{"build"}, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %v: %v\n%s", args, err, out)
	}
}

// start runs a program until the test ends.
func (s *station) start(t *testing.T, name string, args ...string) *bytes.Buffer {
	t.Helper()
	out := &bytes.Buffer{}
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), s.cluster.environ()...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(name), out)
		}
	})
	return out
}

// inPod is the command line that runs one of the programs with the folder that a
// cluster puts into its pods, whose path they have built in.
func (s *station) inPod(program string, args ...string) []string {
	const enter = `mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io && cp -r "$0" /run/secrets/kubernetes.io/serviceaccount && exec "$@"`
	return append([]string{"unshare", "--mount", "sh", "-c", enter, s.cluster.account, filepath.Join(s.dir, program)}, args...)
}

// ask runs csi-addons once.
func (s *station) ask(t *testing.T, operation string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	line := s.inPod("csi-addons", append([]string{"-endpoint", "unix://" + s.socket(), "-operation", operation}, args...)...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), s.cluster.environ()...)
	out, err := cmd.CombinedOutput()
	// The text of a protobuf message has spaces at random.
	return strings.ReplaceAll(string(out), " ", ""), err
}

// csi makes a CSI call, and unpacks its answer.
func (s *station) csi(t *testing.T, call string, request, answer any) error {
	t.Helper()
	b, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(s.dir, "drivebay"), "csi", call, "-", "--endpoint", "unix://"+s.dir+"/csi.sock")
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(b), &errs
	out, err := cmd.Output()
	if err != nil {
		return &callError{call, errs.String()}
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(out, answer)
}

type callError struct{ call, text string }

func (e *callError) Error() string { return e.call + ": " + e.text }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
