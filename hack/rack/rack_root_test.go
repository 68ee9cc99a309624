//go:build root

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRootRack: what `make run` starts prints its banner last, the commands of the banner work in a shell, and
// ctrl-c ends it with status 0, also with a volume mounted: no loop device and no mount
// remains.
func TestRootRack(t *testing.T) {
	work := t.TempDir()
	for dir, program := range map[string]string{".": "rack", "../../cmd/drivebay": "drivebay"} {
		build := exec.Command("go", "build", "-o", filepath.Join(work, "bin", program), ".")
		build.Dir = dir
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	log, err := os.Create(filepath.Join(work, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("bin/rack", "-bays", "3", "-size", "1073741824", "-dir", "state", "./bin/drivebay")
	cmd.Dir, cmd.Stdout, cmd.Stderr = work, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	text := func() string { b, _ := os.ReadFile(log.Name()); return string(b) }
	for end := time.Now().Add(time.Minute); !strings.Contains(text(), "explain data-1"); time.Sleep(50 * time.Millisecond) {
		if len(ended) > 0 || time.Now().After(end) {
			t.Fatalf("no banner:\n%s", text())
		}
	}
	if !strings.HasSuffix(text(), "explain data-1\n\n") {
		t.Errorf("the banner is not the last thing printed:\n%s", text())
	}
	stage := `{"volume_id":"axermtt2noe3xvuw4gy3uvropu","staging_target_path":"` + work + `/state/mnt/stage","volume_capability":{"mount":{"fs_type":"ext4"},"access_mode":{"mode":"SINGLE_NODE_WRITER"}}}`
	script := "set -ex\n"
	for line := range strings.Lines(text()[strings.Index(text(), "The daemon is ready"):]) {
		if command, ok := strings.CutPrefix(line, "  "); ok {
			script += strings.ReplaceAll(command, "--size 1GiB", "--size 100MiB")
		}
	}
	out, err := exec.Command("sh", "-c", script+"bin/drivebay csi NodeStageVolume '"+stage+"'\ngrep "+work+"/state/mnt/stage /proc/mounts\n").CombinedOutput()
	if err != nil {
		t.Errorf("the commands of the banner: %v\n%s", err, out)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("after ctrl-c: %v\n%s", err, text())
		}
	case <-time.After(time.Minute):
		t.Fatalf("it does not end:\n%s", text())
	}
	for _, file := range []string{"/proc/mounts"} {
		if b, err := os.ReadFile(file); err != nil || strings.Contains(string(b), work) {
			t.Errorf("%v, still mounted:\n%s", err, b)
		}
	}
	if out, err := exec.Command("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").CombinedOutput(); err != nil || strings.Contains(string(out), work) {
		t.Errorf("%v, still attached:\n%s", err, out)
	}
}
