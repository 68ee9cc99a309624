package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/api"
)

// running is a daemon in this process.
type running struct {
	env      map[string]string
	dir      string
	out, err safeBuffer
	stop     context.CancelFunc
	ended    chan int
}

// serve starts a daemon and waits until it has said where it is, and until it has listed volumes: a call for
// one is refused before that.
func serve(t *testing.T, args ...string) *running {
	t.Helper()
	return serveWith(t, func(*app) {}, args...)
}

// serveWith starts a daemon of a program that change has changed.
func serveWith(t *testing.T, change func(*app), args ...string) *running {
	t.Helper()
	dir := shortDir(t)
	r := &running{dir: dir, ended: make(chan int, 1), env: map[string]string{"DRIVEBAY_API": "unix://" + dir + "/s", "DRIVEBAY_STATE_DIR": dir + "/state"}}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	a := testApp(r.env, &r.out, &r.err)
	change(a)
	go func() { r.ended <- a.run(ctx, append([]string{"serve"}, args...)) }()
	t.Cleanup(func() {
		stop()
		<-r.ended
	})
	eventually(t, patience, func() bool { return strings.Contains(r.out.String(), "try: drivebay drives") || len(r.ended) > 0 }, func() string { return r.out.String() + r.err.String() })
	client := api.Dial(r.env["DRIVEBAY_API"])
	defer client.Close()
	for end := time.Now().Add(patience); slices.Contains(args, "--sim") && time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		if st, err := client.Status(ctx); err != nil || st.Ready() { // it has ended, or its socket is another one
			break
		}
	}
	return r
}

// end ends a daemon and returns its exit status and how long that took.
func (r *running) end() (int, time.Duration) {
	start := time.Now()
	r.stop()
	code := <-r.ended
	r.ended <- code
	return code, time.Since(start)
}

func TestServe(t *testing.T) {
	config := filepath.Join(t.TempDir(), "c.yaml")
	write(t, config, "log: {level: info}\npoll: {tick: 100ms}\n")
	r := serve(t, "--root", recording(t), "--config", config, "--listen", "127.0.0.1:0")

	greeting := r.out.String()
	for _, want := range []string{"(real): 2 drives", "API       unix://" + r.dir + "/s", "state     " + r.dir + "/state", "metrics   http://127.0.0.1:"} {
		if !strings.Contains(greeting, want) {
			t.Errorf("%q is not in the greeting:\n%s", want, greeting)
		}
	}
	if out, errs, code := call(t, r.env, "drives"); code != 0 || !strings.Contains(out, "Z1Z2AAAA") {
		t.Errorf("drives: %d %q %q", code, out, errs)
	}
	if out, errs, code := call(t, r.env, "events"); code != 0 || strings.Count(out, "DriveAppeared") != 2 {
		t.Errorf("events: %d %q %q", code, out, errs)
	}
	address := regexp.MustCompile(`http://[0-9.:]+`).FindString(greeting)
	if out, errs, code := call(t, nil, "drives", "--api", address); code != 0 || !strings.Contains(out, "Z1Z2BBBB") {
		t.Errorf("drives over TCP: %d %q %q", code, out, errs)
	}
	if _, errs, code := call(t, nil, "drive", "cordon", "sda", "--api", address); code != exitFailure || !strings.Contains(errs, "for reading only") {
		t.Errorf("a change over TCP: %d %q", code, errs)
	}

	// Another daemon on the same state or socket is refused.
	if _, errs, code := call(t, r.env, "serve"); code != exitFailure || !strings.Contains(errs, "another daemon") {
		t.Errorf("a second daemon: %d %q", code, errs)
	}

	if code, took := r.end(); code != exitOK || took > 5*time.Second {
		t.Errorf("exit status %d after %v:\n%s", code, took, r.err.String())
	}
	if _, err := os.Lstat(r.dir + "/s"); err == nil {
		t.Error("the socket is still there")
	}
}

func TestWhatWasSaidOutlivesARestart(t *testing.T) {
	root := recording(t)
	r := serve(t, "--root", root)
	if _, errs, code := call(t, r.env, "drive", "cordon", "sda"); code != 0 {
		t.Fatal(errs)
	}
	r.end()
	again := serve(t, "--root", root, "--state-dir", r.dir+"/state")
	if out, errs, code := call(t, again.env, "drive", "show", "sda"); code != 0 || !strings.Contains(out, "CORDONED") {
		t.Errorf("%d %q %q", code, out, errs)
	}
}

func TestReload(t *testing.T) {
	config := filepath.Join(t.TempDir(), "c.yaml")
	write(t, config, "log: {level: info}\n")
	r := serve(t, "--root", recording(t), "--config", config)
	hangUp := func(want string) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, patience, func() bool { return strings.Contains(r.err.String(), want) }, r.err.String)
	}
	write(t, config, "log: {level: warn}\nlisten: 127.0.0.1:1\npoll: {evidence: 1m}\n")
	hangUp("these keys need a restart")
	if !strings.Contains(r.err.String(), "keys=listen") {
		t.Errorf("the key is not named: %s", r.err.String())
	}
	reported := func(what string, ok func(api.ConfigStatus) bool) {
		t.Helper()
		client := api.Dial(r.env["DRIVEBAY_API"])
		defer client.Close()
		var last *api.ConfigStatus
		eventually(t, patience, func() bool {
			st, err := client.Status(t.Context())
			last = st.Config
			return err == nil && last != nil && last.File == config && ok(*last)
		}, func() string { return fmt.Sprintf("%s: status %+v", what, last) })
	}
	reported("a key that needs a restart", func(c api.ConfigStatus) bool {
		return slices.Equal(c.Changed, []string{"log.level", "poll.evidence"}) && slices.Equal(c.Restart, []string{"listen"}) && c.Error == ""
	})
	status := func(what string, want ...string) {
		t.Helper()
		out, _, _ := call(t, r.env, "status")
		for _, w := range want {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), w) {
				t.Errorf("%s: %q is not in the status:\n%s", what, w, out)
			}
		}
	}
	status("a key that needs a restart", "RESTART daemon", "only after a restart: listen: `systemctl restart drivebay`")
	write(t, config, "log: {lvel: info}\n")
	hangUp(`did you mean \"log.level\"?`)
	reported("an invalid file", func(c api.ConfigStatus) bool {
		return strings.Contains(c.Error, "drivebay config check") && !strings.Contains(c.Error, "lvel") && len(c.Changed) == 0 && slices.Equal(c.Restart, []string{"listen"})
	})
	status("an invalid file", "NOT RELOADED daemon", "the configuration was not applied", "RESTART daemon")
	write(t, config, "log: {level: info}\n")
	hangUp("changed=log.level,poll.evidence")
	reported("a valid file again", func(c api.ConfigStatus) bool { return c.Error == "" && len(c.Changed) == 2 && len(c.Restart) == 0 })
	if out, _, _ := call(t, r.env, "status"); strings.Contains(out, "RESTART") || strings.Contains(out, "RELOADED") {
		t.Errorf("a valid file again: the status still reports it:\n%s", out)
	}
	hangUp("no key changed that takes effect without a restart")
	if _, errs, code := call(t, r.env, "drives"); code != 0 {
		t.Errorf("after reloads: %s", errs)
	}
}

// TestReloadHalfWritten: a configuration file that is half written, or gone, changes nothing: cut off, a claim would select more drives.
func TestReloadHalfWritten(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "c.yaml")
	whole := "# the drives\nreplacement: {trigger: off}\nclaim: type=nvme,size>=1TB\n"
	write(t, config, whole)
	r := serve(t, "--root", recording(t), "--config", config)
	client := api.Dial(r.env["DRIVEBAY_API"])
	defer client.Close()
	status := func(what string, ok func(api.ConfigStatus) bool) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		var last *api.ConfigStatus
		eventually(t, patience, func() bool {
			st, err := client.Status(t.Context())
			last = st.Config
			return err == nil && last != nil && ok(*last)
		}, func() string { return fmt.Sprintf("%s: status %+v", what, last) })
	}
	for what, text := range map[string]string{"nothing": "", "a comment": whole[:13], "a line that is cut off": whole[:len(whole)-len(",size>=1TB\n")]} {
		write(t, config, text)
		status(what, func(c api.ConfigStatus) bool { return c.Error != "" && len(c.Changed) == 0 })
		write(t, config, whole)
		status("whole again", func(c api.ConfigStatus) bool { return c.Error == "" && len(c.Changed) == 0 })
	}
	write(t, config, strings.Replace(whole, "1TB", "2TB", 1))
	status("a change", func(c api.ConfigStatus) bool { return c.Error == "" && slices.Equal(c.Changed, []string{"claim"}) })
}

// A daemon that has a long poll open still ends at once.
func TestStopEndsLongPolls(t *testing.T) {
	r := serve(t, "--root", recording(t))
	client := api.Dial(r.env["DRIVEBAY_API"])
	defer client.Close()
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		events, err := client.WaitEvents(context.Background(), 1<<40)
		if err == nil {
			t.Errorf("got %v", events)
		}
	}()
	if code, took := r.end(); code != exitOK || took > 5*time.Second {
		t.Errorf("exit status %d after %v", code, took)
	}
	<-waiting
}
