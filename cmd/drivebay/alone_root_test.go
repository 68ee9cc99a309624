//go:build root

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestRootSecondDaemon: a second daemon on this machine is refused, whatever its state
// directory, socket and namespaces are, and starts when the first one was killed.
func TestRootSecondDaemon(t *testing.T) {
	daemon := func(name string, wrap ...string) (*exec.Cmd, *safeBuffer) {
		dir := shortDir(t)
		args := append(wrap, os.Args[0], "serve", "--state-dir", dir+"/state", "--api", "unix://"+dir+"/s")
		c := exec.Command(args[0], args[1:]...)
		c.Env = append(os.Environ(), asProgram+"=1")
		var out safeBuffer
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
		return c, &out
	}
	watches := func(out *safeBuffer) func() bool {
		return func() bool { return strings.Contains(out.String(), "try: drivebay drives") }
	}
	first, out := daemon("first")
	eventually(t, 30*time.Second, watches(out), out.String)
	for name, wrap := range map[string][]string{
		"in the same namespaces": nil,
		"as in a container":      {"unshare", "--mount", "--net", "--ipc", "--uts", "--pid", "--fork"},
		"with loop devices":      {"env", "DRIVEBAY_LOOP=true"},
	} {
		second, out := daemon(name, wrap...)
		late := time.AfterFunc(30*time.Second, func() { _ = second.Process.Kill() })
		err := second.Wait()
		late.Stop()
		want := fmt.Sprintf("another daemon manages the drives (pid %d, ", first.Process.Pid)
		if err == nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v: %s", name, err, out.String())
		}
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, out = daemon("after it")
	eventually(t, 30*time.Second, watches(out), out.String)
}
