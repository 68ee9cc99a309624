package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestServeRefuses(t *testing.T) {
	dir := shortDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := recording(t) // not this machine, of which another daemon may have the lock
	env := map[string]string{"DRIVEBAY_STATE_DIR": filepath.Join(dir, "state"), "DRIVEBAY_API": "unix://" + filepath.Join(dir, "s")}
	for _, tc := range []struct {
		args string
		code int
		want []string
	}{
		{"serve --root " + root + " --state-dir " + file + "/below", exitFailure, []string{"state directory " + file + "/below cannot be written: ", "--state-dir"}},
		{"serve --state-dir relative", exitFailure, []string{`--state-dir: stateDir: "relative" is not an absolute path`}},
		{"serve --log-level loud --listen nowhere", exitFailure, []string{`--log-level: log.level: "loud"`, `--listen: listen: "nowhere"`}},
		{"serve --config /nowhere.yaml", exitFailure, []string{"config file: open /nowhere.yaml"}},
		{"serve --sim /nowhere.yaml", exitFailure, []string{"simulated machine", "/nowhere.yaml"}},
		{"serve --sim /x --root /y", exitFailure, []string{"exclude each other"}},
		{"serve --root " + root + " --api unix://" + file, exitFailure, []string{"socket " + file, "--api"}},
		{"serve --api http://127.0.0.1:1", exitFailure, []string{"is not a socket"}},
		{"serve --local", exitUsage, []string{"--local cannot be used with `drivebay serve`"}},
		{"serve now", exitUsage, []string{"unknown command"}},
	} {
		t.Run(tc.args, func(t *testing.T) {
			_, errs, code := call(t, env, strings.Fields(tc.args)...)
			if code != tc.code {
				t.Errorf("exit status %d, want %d: %s", code, tc.code, errs)
			}
			for _, w := range tc.want {
				if !strings.Contains(errs, w) {
					t.Errorf("%q is not in %q", w, errs)
				}
			}
		})
	}
}

// stubborn makes this test binary a program that hears the first signal and
// does not end.
const stubborn = "DRIVEBAY_TEST_STUBBORN"

// asProgram makes it the program itself, for tests that want it in a process of
// its own.
const asProgram = "DRIVEBAY_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	if os.Getenv(stubborn) != "" {
		ctx := untilSignal(context.Background())
		fmt.Println("ready")
		<-ctx.Done()
		fmt.Println("heard")
		<-time.After(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), stubborn+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"ready", "heard"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("the second signal: %v", err)
	}
}
