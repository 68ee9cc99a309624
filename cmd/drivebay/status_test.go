package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/api"
)

func allGood() drivebay.Snapshot {
	s := twoDrives()
	s.Drives[1].Health, s.Drives[1].Findings, s.Problems = drivebay.HealthGood, nil, nil
	return s
}

func TestStatus(t *testing.T) {
	const fine, risk = "all drives and volumes are fine\n", "drive sd2, bay Slot 2: BAD: it says so itself; holds raw-1\n"
	ill := twoDrives()
	ill.Problems = nil
	bad, good := newEngine(ill), newEngine(allGood())
	starting := newEngine(drivebay.Snapshot{})
	deaf := allGood()
	deaf.Problems = []string{"no kernel log: permission denied"}
	unread := newVolumes(good)
	unread.unread = []string{"drive sd2 was not read"}
	envs := map[string]map[string]string{
		"bad":      daemonWith(t, bad, api.Options{Volumes: newVolumes(bad)}),
		"good":     daemonWith(t, good, api.Options{Volumes: newVolumes(good)}),
		"watcher":  daemonFor(t, good), // makes no volumes
		"starting": daemonFor(t, starting),
		"unread":   daemonWith(t, good, api.Options{Volumes: unread}),
		"deaf":     daemonFor(t, newEngine(deaf)),
		"nowhere":  {"DRIVEBAY_API": "unix:///nowhere/s"},
	}
	for _, tc := range []struct {
		env, args string
		code      int
		out       string // "" wants nothing there; else a part, or all that ends in a line feed
		err       string
	}{
		{"good", "status -x", exitOK, fine, ""},
		{"watcher", "status -x", exitOK, fine, ""},
		{"good", "drives -x", exitOK, "all drives are fine\n", ""},
		{"good", "volumes -x", exitOK, "all volumes are fine\n", ""},
		{"good", "status", exitOK, "box: FINE", ""},
		{"good", "", exitOK, "box: FINE", ""},
		{"bad", "status -x", 4, risk, ""},
		{"bad", "status", 4, "Waits for a person", ""},
		{"bad", "", 4, "Next: `drivebay explain naa-aaaa02`", ""},
		{"bad", "drives -x", 4, risk, ""},
		{"bad", "drives -x --health good", exitOK, "all drives are fine\n", ""},
		{"bad", "volumes -x", 4, "volume raw-1: DEGRADED: DiskFailure: ", ""},
		{"bad", "drives", exitOK, "BAD", ""},
		{"bad", "volumes", exitOK, "DiskFailure", ""},
		{"starting", "status -x", 5, "daemon: NOT READY: the drives of the machine have not been listed yet\n", ""},
		{"unread", "status -x", 5, "sd2 was not read", ""},
		{"unread", "drives -x", 5, "sd2 was not read", ""},
		{"unread", "volumes -x", 5, "sd2 was not read", ""},
		{"deaf", "status -x", 5, "machine: NOT READ: no kernel log: permission denied\n", ""},
		{"deaf", "drives -x", 5, "no kernel log", ""},
		{"nowhere", "status", 5, "", "no daemon answers at unix:///nowhere/s"},
		{"nowhere", "status -x", 5, "", "no daemon answers"},
		{"nowhere", "drives -x", 5, "", "no daemon answers"},
		{"nowhere", "volumes -x", 5, "", "no daemon answers"},
		{"nowhere", "drives", exitFailure, "", "no daemon answers"},
		{"nowhere", "", exitOK, "Available Commands:", "note: no daemon answers at unix:///nowhere/s"},
		{"bad", "tree", exitOK, "└─ volume raw-1  BAD", ""},
		{"watcher", "tree -o jsonpath={.children[0].children[*].name}", exitOK, "sd1 sd2\n", ""},
		{"nowhere", "tree", exitFailure, "", "no daemon answers"},
		{"good", "status --local", 5, "", "only the daemon"},
		{"good", "status -y", exitUsage, "", "unknown shorthand flag"},
	} {
		out, errs, code := call(t, envs[tc.env], strings.Fields(tc.args)...)
		if code != tc.code || !strings.Contains(out, tc.out) || (tc.out == "" || strings.HasSuffix(tc.out, "\n")) && out != tc.out || !strings.Contains(errs, tc.err) {
			t.Errorf("%s: drivebay %s: exit %d, want %d; printed %q, said %q", tc.env, tc.args, code, tc.code, out, errs)
		}
	}
}

// TestStatusShowsSelfTests: the status names a self-test in progress: its kind, its progress, the drive and
// the bay.
func TestStatusShowsSelfTests(t *testing.T) {
	r, _ := rack(t, 2)
	if _, errs, code := call(t, r.env, "selftest", "sda", "long"); code != exitOK {
		t.Fatal(errs)
	}
	out := ""
	eventually(t, patience, func() bool {
		out, _, _ = call(t, r.env, "status")
		return strings.Contains(out, "Being done\n  SELF-TEST  drive sda, bay Slot 0") && strings.Contains(out, "long self-test in progress: 0 % done")
	}, func() string { return out })
}

// TestStatusForbidden: the command of a user who may not open the socket says so, and scripts get "cannot
// tell". Root may open every socket: there the test runs the command as another user. No other test of the
// package runs meanwhile.
func TestStatusForbidden(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(dir, 0); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := syscall.Seteuid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := syscall.Seteuid(0); err != nil {
				t.Fatal(err)
			}
		}()
	}
	env := map[string]string{"DRIVEBAY_API": "unix://" + dir + "/s"}
	if out, errs, code := call(t, env, "status", "-x"); code != 5 || out != "" || !strings.Contains(errs, "permission") {
		t.Errorf("exit %d, %q %q", code, out, errs)
	}
}

func TestStatusJSON(t *testing.T) {
	e := newEngine(twoDrives())
	out, _, code := call(t, daemonWith(t, e, api.Options{Volumes: newVolumes(e)}), "status", "-o", "json")
	var got struct {
		Status, Verdict string
		ExitStatus      int
		Wrong, WaitsFor []struct{ Kind, ID, State, Next string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 4 {
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	if got.Status != "ok" || got.Verdict != "DATA_AT_RISK" || got.ExitStatus != 4 || len(got.Wrong) != 3 || got.Wrong[0].ID != "naa-aaaa02" || got.Wrong[1].State != "NOT READ" || !strings.Contains(got.Wrong[2].Next, "drivebay volumes") || len(got.WaitsFor) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestAssessExitStatus(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.json")
	write(t, good, `{"json_format_version":[1,0],"smartctl":{"version":[7,4],"exit_status":0},"device":{"name":"/dev/sda","type":"sat","protocol":"ATA"},"model_name":"ST4000NM0033","serial_number":"A","smart_status":{"passed":true},"ata_smart_attributes":{"table":[{"id":5,"name":"Reallocated_Sector_Ct","value":100,"worst":100,"thresh":10,"flags":{"value":51,"prefailure":true},"raw":{"value":0,"string":"0"}}]},"rotation_rate":7200}`)
	failed := filepath.Join(dir, "failed.json")
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write(t, failed, strings.Replace(string(text), `"passed":true`, `"passed":false`, 1))
	broken := filepath.Join(dir, "broken.json")
	write(t, broken, "{")
	for _, tc := range []struct {
		args []string
		code int
		out  string
	}{
		{[]string{"-x", good}, exitOK, "all drives are fine\n"},
		{[]string{"-x", failed}, 4, "BAD"},
		{[]string{"-x", broken}, 5, "ERROR"},
		{[]string{"-x", broken, failed}, 4, "ERROR"},
		{[]string{failed}, exitOK, "BAD"},
		{[]string{"-x", dir + "/none"}, 5, ""},
		{[]string{"-x", "--table", good}, exitUsage, ""},
	} {
		out, errs, code := call(t, nil, append([]string{"assess"}, tc.args...)...)
		if code != tc.code || !strings.Contains(out, tc.out) {
			t.Errorf("assess %q: exit %d, want %d: %q %q", tc.args, code, tc.code, out, errs)
		}
	}
}

// TestCommandsToTypeExist: every command that the overview and the next steps name is one.
func TestCommandsToTypeExist(t *testing.T) {
	files, err := filepath.Glob("internal/overview/*.go")
	render, _ := filepath.Glob("internal/render/*.go")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	root, seen := testApp(nil, &safeBuffer{}, &safeBuffer{}).rootCommand(), 0
	for _, file := range append(files, render...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range backticked.FindAllStringSubmatch(string(text), -1) {
			seen++
			if cmd, rest, err := root.Find(strings.Fields(m[1])); err != nil || cmd == root || len(rest) > 0 && cmd.HasSubCommands() {
				t.Errorf("%s names `drivebay %s`", file, m[1])
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d commands were found", seen)
	}
}
