package config

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write examples/drivebay.yaml from the defaults")

const example = "../../examples/drivebay.yaml"

func TestExampleIsTheDefault(t *testing.T) {
	var want bytes.Buffer
	if err := Example(&want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(example, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("examples/drivebay.yaml is not what the defaults print: make generate")
	}
	c, err := Parse(example, got)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c, Default()) {
		t.Errorf("the example reads as %+v, want the defaults %+v", c, Default())
	}
}

func TestPrintReadsBack(t *testing.T) {
	c := Default()
	c.StateDir, c.API, c.Listen = "/tmp/with: colon", "unix:///run/x.sock", ":10748"
	c.HTTP = HTTP{Hosts: []string{"node-1", "node-1.example"}, CertFile: "/etc/a b.crt", KeyFile: "/k", TokenFile: "/t"}
	c.Notify.Kinds, c.Notify.Webhook = []string{"bad", "hands"}, "https://alerts.example/x?y=#"[:27]
	c.Notify.Command = []string{"/bin/page", "--to", "a, b", "#7", "", "true", "x: y", strings.Repeat("long ", 40)}
	c.Log = Log{Level: "debug", Format: "json"}
	c.Poll.Tick, c.Poll.ForgetAfter = 1500*time.Millisecond, 36*time.Hour
	c.SelfTests = SelfTests{Enabled: true, Short: 0, Long: 90 * day, MaxConcurrent: 3}
	var text bytes.Buffer
	if err := Print(&text, c); err != nil {
		t.Fatal(err)
	}
	back, err := Parse("printed", text.Bytes())
	if err != nil {
		t.Fatalf("%v\n%s", err, &text)
	}
	if !reflect.DeepEqual(back, c) {
		t.Errorf("got  %+v\nwant %+v\n%s", back, c, &text)
	}
}

// "off" is a word here, whatever YAML 1.1 took it for.
func TestOffIsAWord(t *testing.T) {
	for _, policy := range []string{"off", "safe"} {
		if c, err := Parse("f.yaml", []byte("healing:\n  policy: "+policy+"\n")); err != nil || c.Healing.Policy != policy {
			t.Errorf("%s: %q, %v", policy, c.Healing.Policy, err)
		}
	}
}

// An address that only this machine reaches needs neither TLS nor a token, and insecure waives them.
func TestListen(t *testing.T) {
	for text, ok := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "127.9.9.9:1": true, "10.0.0.1:1": false, ":1": false, "[::]:1": false, "node-1:1": false} {
		if _, err := Parse("f.yaml", []byte("listen: '"+text+"'\n")); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := Parse("f.yaml", []byte("listen: '"+text+"'\nhttp:\n  insecure: true\n")); err != nil {
			t.Errorf("%s, insecure: %v", text, err)
		}
		if _, err := Parse("f.yaml", []byte("listen: '"+text+"'\nhttp: {certFile: /c, keyFile: /k, tokenFile: /t}\n")); err != nil {
			t.Errorf("%s, with TLS and token: %v", text, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct{ name, file, want string }{
		{"near key", "log:\n  lvel: info\n", `f.yaml:2: unknown key "log.lvel": did you mean "log.level"?`},
		{"near section", "pol:\n  tick: 1s\n", `f.yaml:1: unknown key "pol": did you mean "poll"?`},
		{"key of another section", "rescan: 1m\n", `f.yaml:1: unknown key "rescan": did you mean "poll.rescan"?`},
		{"no idea", "bananas: 1\n", `f.yaml:1: unknown key "bananas"`},
		{"case", "statedir: /x\n", `f.yaml:1: unknown key "statedir": did you mean "stateDir"?`},
		{"twice", "root: /a\nroot: /b\n", `f.yaml:2: root is already set in line 1`},
		{"range", "\npoll:\n  tick: 5h\n", `f.yaml:3: poll.tick: 5h is not between 100ms and 1m`},
		{"duration", "poll:\n  rescan: soon\n", `f.yaml:2: poll.rescan: "soon" is not a duration: write it as 30s, 10m, 1h30m, 7d or weekly`},
		{"bare number", "poll:\n  rescan: 300\n", `f.yaml:2: poll.rescan: "300" is not a duration: write it as 30s, 10m, 1h30m, 7d or weekly`},
		{"policy", "healing: {policy: all}\n", `f.yaml:1: healing.policy: "all"; want one of off, safe`},
		{"word", "log:\n  level: loud\n", `f.yaml:2: log.level: "loud"; want one of debug, info, warn, error`},
		{"bool", "loop: maybe\n", `f.yaml:1: loop: "maybe" is not true or false`},
		{"number", "selfTests:\n  maxConcurrent: many\n", `f.yaml:2: selfTests.maxConcurrent: "many" is not a whole number`},
		{"window", "selfTests:\n  window: nights\n", `f.yaml:2: selfTests.window: "nights" is not a time window: write it as 01:00-05:00`},
		{"list for value", "root: [a, b]\n", `f.yaml:1: root: must be one value, not a list`},
		{"value for section", "log: info\n", `f.yaml:1: log must contain keys, not a plain value`},
		{"top is a list", "- a\n", `f.yaml:1: the file must contain keys, not a list`},
		{"no value", "root:\n", `f.yaml:1: root: has no value: remove the key to use the default`},
		{"relative", "stateDir: state\n", `f.yaml:1: stateDir: "state" is not an absolute path`},
		{"socket", "api: tcp://1\n", `f.yaml:1: api: "tcp://1" is not a socket: write it as unix:///run/drivebay/drivebay.sock`},
		{"long socket", "api: unix:///" + strings.Repeat("x", 107) + "\n", `is longer than the 107 bytes`},
		{"address of all", "listen: 0.0.0.0:1\n", `f.yaml:1: listen: 0.0.0.0:1 can be reached by other machines: set http.certFile and http.keyFile, and http.tokenFile; or listen on 127.0.0.1:10748; or set http.insecure: true`},
		{"no token", "listen: :1\nhttp:\n  certFile: /c\n  keyFile: /k\n", `f.yaml:1: listen: :1 can be reached by other machines: set http.tokenFile; or`},
		{"no key", "http:\n  certFile: /c\n", `f.yaml:2: http.certFile: certFile and keyFile belong together: set both, or none`},
		{"relative file", "http:\n  tokenFile: token\n", `f.yaml:2: http.tokenFile: want an absolute path, not token`},
		{"kind of notice", "notify:\n  kinds: [bad, odd]\n", `f.yaml:2: notify.kinds: "odd" is unknown; the kinds are bad, suspect, abnormal, recovered, hands`},
		{"webhook", "notify:\n  webhook: alerts.example\n", `f.yaml:2: notify.webhook: want a URL such as https://alerts.example/drivebay`},
		{"password", "notify:\n  webhook: https://a:b@alerts.example\n", `f.yaml:2: notify.webhook: a URL with a password is shown by`},
		{"command", "notify:\n  command: [page, x]\n", `f.yaml:2: notify.command: want the absolute path of a program, followed by its arguments, not "page, x"`},
		{"listen", "listen: everywhere\n", `f.yaml:1: listen: "everywhere" is not an address: write it as 127.0.0.1:10748 or :10748`},
		{"port", "listen: :99999\n", `f.yaml:1: listen: ":99999": port "99999" is not between 0 and 65535`},
		{"sim and root", "sim: x.yaml\nroot: /tmp\n", `f.yaml:1: sim and root exclude each other`},
		{"role", "role: boss\n", `f.yaml:1: role: "boss"; want one of all, node, controller`},
		{"node without objects", "role: node\n", `f.yaml:1: the role node needs kubernetes.enabled`},
		{"controller without CSI", "role: controller\n", `f.yaml:1: the role controller needs csiEndpoint`},
		{"a page of the cluster on a node", "kubernetes: {page: true}\n", `f.yaml:1: kubernetes.page needs the role controller`},
		{"controller with drives", "role: controller\ncsiEndpoint: unix:///csi.sock\nclaim: all\n", `f.yaml:3: claim cannot be used with the role controller`},
		{"controller with HTTP", "role: controller\ncsiEndpoint: unix:///csi.sock\nlisten: 127.0.0.1:1\n", `f.yaml:3: listen cannot be used with the role controller`},
		{"syntax", "log:\n\tlevel: x\n", `f.yaml: line 2: found character that cannot start any token`},
		{"two documents", "root: /\n---\nroot: /\n", `f.yaml: contains more than one YAML document`},
		{"threshold order", "thresholds:\n  wearUsed: 90\n  hddPendingBad: 2\n", `f.yaml:3: health threshold hddPendingBad: invalid: is below hddPendingSure`},
		{"threshold order, other key", "thresholds:\n  hddPendingSure: 1000\n", `f.yaml:2: health threshold hddPendingBad: invalid`},
		{"threshold percent", "thresholds: {wearUsed: 101}\n", `f.yaml:1: health threshold wearUsed: invalid`},
		{"threshold near", "thresholds: {wearusd: 11}\n", `f.yaml:1: unknown key "thresholds.wearusd": did you mean "thresholds.wearUsed"?`},
		{"thresholds", "thresholds:\n  notAThreshold: 1\n", `f.yaml:2: unknown key "thresholds.notAThreshold"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(tc.file))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestAllErrorsAtOnce(t *testing.T) {
	_, err := Parse("f.yaml", []byte("rot: /\nlog: {level: loud, fromat: text}\npoll: {tick: x, rescan: 1s}\n"))
	want := []string{
		`f.yaml:1: unknown key "rot": did you mean "root"?`,
		`f.yaml:2: unknown key "log.fromat": did you mean "log.format"?`,
		`f.yaml:3: poll.tick: "x" is not a duration`,
		`f.yaml:2: log.level: "loud"; want one of`,
		`f.yaml:3: poll.rescan: 1s is not between 10s and 1d`,
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got %d errors, want %d:\n%v", len(lines), len(want), err)
	}
	for i, w := range want {
		if !strings.HasPrefix(lines[i], w) {
			t.Errorf("line %d: got %q, want %q", i, lines[i], w)
		}
	}
}

func TestEmptyFilesAreTheDefault(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "{}\n", "log:\npoll:\n"} {
		if c, err := Parse("f", []byte(text)); err != nil || !reflect.DeepEqual(c, Default()) {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
}

func TestWhoWins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "drivebay.yaml")
	if err := os.WriteFile(file, []byte("listen: :1\nroot: /file\nlog: {level: warn, format: json}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Load(Sources{
		File:  file,
		Env:   []string{"DRIVEBAY_LISTEN=:2", "DRIVEBAY_ROOT=/env", "DRIVEBAY_SELF_TESTS_MAX_CONCURRENT=4", "DRIVEBAY_LOG_LEVL=x", "DRIVEBAY_SERVICE_HOST=10.0.0.1", "HOME=/"},
		Flags: map[string]string{"listen": "127.0.0.1:3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := got.Config
	if c.Listen != "127.0.0.1:3" || c.Root != "/env" || c.Log.Level != "warn" || c.SelfTests.MaxConcurrent != 4 || c.Poll != Default().Poll {
		t.Errorf("got %+v", c)
	}
	if want := []string{"variable DRIVEBAY_LOG_LEVL is unknown: did you mean DRIVEBAY_LOG_LEVEL?"}; !slices.Equal(got.Warnings, want) {
		t.Errorf("warnings %q, want %q", got.Warnings, want)
	}
	_, err = Load(Sources{File: file, Env: []string{"DRIVEBAY_POLL_TICK=5h"}, Flags: map[string]string{"log.level": "loud"}})
	for _, want := range []string{"--log-level: log.level: \"loud\"", "DRIVEBAY_POLL_TICK: poll.tick: 5h"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	for flags, want := range map[string]time.Duration{"sim": simEvidence, "sim poll.evidence": time.Minute, "listen": 10 * time.Minute} {
		given := map[string]string{"sim": "x.yaml", "poll.evidence": "1m", "listen": "127.0.0.1:1"}
		for path := range given {
			if !slices.Contains(strings.Fields(flags), path) {
				delete(given, path)
			}
		}
		if got, err := Load(Sources{Flags: given}); err != nil || got.Poll.Evidence != want {
			t.Errorf("%s: drives are asked every %v, %v; want %v", flags, got.Poll.Evidence, err, want)
		}
	}
	if _, err := Load(Sources{File: file + ".no"}); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "never": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * day, "weekly": 7 * day,
		"2w": 14 * day, "1w1d": 8 * day, "1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour, "monthly": 30 * day,
	} {
		got, err := ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
		if back, err := ParseDuration(FormatDuration(got)); err != nil || back != got {
			t.Errorf("%q is printed as %q, which reads as %v, %v", text, FormatDuration(got), back, err)
		}
	}
	for _, text := range []string{"", "x", "7", "d", "1d2w", "1x", "99999999d", "1d1"} {
		if d, err := ParseDuration(text); err == nil {
			t.Errorf("%q was read as %v", text, d)
		}
	}
}

func TestChanges(t *testing.T) {
	old, now := Default(), Default()
	now.Log.Level, now.Log.Format, now.Listen = "debug", "json", ":1"
	now.SelfTests.Enabled, now.Poll.Evidence = true, time.Minute
	live, restart := Changes(old, now)
	if want := []string{"log.level", "poll.evidence", "selfTests.enabled"}; !slices.Equal(live, want) {
		t.Errorf("live %q, want %q", live, want)
	}
	if want := []string{"listen", "log.format"}; !slices.Equal(restart, want) {
		t.Errorf("restart %q, want %q", restart, want)
	}
	if live, restart := Changes(old.Live(now), now); len(live) > 0 || len(restart) != 2 {
		t.Errorf("after a reload these differ still: %q, %q", live, restart)
	}
}

func TestEveryKeyIsExplained(t *testing.T) {
	c := Default()
	envs := map[string]string{}
	for _, f := range c.Fields() {
		if f.Doc == "" {
			t.Errorf("%s has no doc", f.Path)
		}
		if other, twice := envs[f.Env]; twice {
			t.Errorf("%s and %s share %s", f.Path, other, f.Env)
		}
		envs[f.Env] = f.Path
	}
}

func TestPlaces(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	for _, tc := range []struct {
		place      Place
		state, api string
	}{
		{Place{Root: true, Getenv: env(nil)}, "/var/lib/drivebay", "unix:///run/drivebay/drivebay.sock"},
		{Place{Getenv: env(map[string]string{"HOME": "/home/u", "XDG_RUNTIME_DIR": "/run/user/7"})}, "/home/u/.local/state/drivebay", "unix:///run/user/7/drivebay/drivebay.sock"},
		{Place{Getenv: env(map[string]string{"XDG_STATE_HOME": "/s"})}, "/s/drivebay", "unix:///s/drivebay/drivebay.sock"},
	} {
		c := Default().Resolve(tc.place)
		if c.StateDir != tc.state || c.API != tc.api || tc.place.API() != tc.api {
			t.Errorf("got %s %s %s, want %s %s", c.StateDir, c.API, tc.place.API(), tc.state, tc.api)
		}
	}
}

// TestUsualFile: the usual file is read if it exists and is about this machine.
func TestUsualFile(t *testing.T) {
	usual := filepath.Join(t.TempDir(), "drivebay.yaml")
	if got, err := Load(Sources{Usual: usual}); err != nil || got.File != "" || !reflect.DeepEqual(got.Config, Default()) {
		t.Errorf("without the file: %+v, %v", got, err)
	}
	if err := os.WriteFile(usual, []byte("nodeID: usual\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Load(Sources{Usual: usual}); err != nil || got.File != usual || got.NodeID != "usual" {
		t.Errorf("with it: %+v, %v", got, err)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	if _, err := Load(Sources{File: other, Usual: usual}); err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("a file that was named and is missing: %v", err)
	}
	for name, src := range map[string]Sources{
		"--sim":         {Usual: usual, Flags: map[string]string{"sim": "x.yaml"}},
		"--root":        {Usual: usual, Flags: map[string]string{"root": "/rec"}},
		"DRIVEBAY_SIM":  {Usual: usual, Env: []string{"DRIVEBAY_SIM=x.yaml"}},
		"DRIVEBAY_ROOT": {Usual: usual, Env: []string{"DRIVEBAY_ROOT=/rec"}},
	} {
		if got, err := Load(src); err != nil || got.File != "" || got.NodeID != "" {
			t.Errorf("%s is about another machine: %+v, %v", name, got, err)
		}
	}
	if err := os.WriteFile(usual, []byte("nodID: usual\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Sources{Usual: usual}); err == nil || !strings.Contains(err.Error(), usual+":1") {
		t.Errorf("an error in it: %v", err)
	}
	if (Place{Root: true}).File() != SystemFile || (Place{}).File() != "" {
		t.Error("the usual file is for root")
	}
}

// TestClientAPI: the machine's daemon is found by a user who runs none.
func TestClientAPI(t *testing.T) {
	user := Place{Getenv: func(k string) string { return map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"}[k] }}
	own := "/run/user/7/drivebay/drivebay.sock"
	for _, tc := range []struct {
		place Place
		stat  map[string]error // of the sockets that are not simply absent
		want  string
	}{
		{user, nil, own},
		{user, map[string]error{systemSocket: nil}, systemSocket},
		{user, map[string]error{systemSocket: fs.ErrPermission}, systemSocket},
		{user, map[string]error{systemSocket: nil, own: nil}, own},
		{user, map[string]error{systemSocket: nil, own: fs.ErrPermission}, systemSocket}, // the variables of another user
		{Place{Root: true}, map[string]error{own: nil}, systemSocket},
	} {
		got := tc.place.ClientAPI(func(p string) error {
			if err, known := tc.stat[p]; known {
				return err
			}
			return fs.ErrNotExist
		})
		if got != "unix://"+tc.want {
			t.Errorf("%v: %s, want %s", tc.stat, got, tc.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("log: {level: info}\n"))
	f.Add([]byte("poll:\n  tick: 1d2h\nselfTests: &a {window: 23:00-01:00}\nthresholds: *a\n"))
	f.Add([]byte("? [a]\n: b\n<<: {root: /}\n"))
	f.Add([]byte("root: !!binary aGk=\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data)
		if err != nil {
			return
		}
		var text bytes.Buffer
		if err := Print(&text, c); err != nil {
			t.Fatal(err)
		}
		if back, err := Parse("printed", text.Bytes()); err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%q is printed as\n%s\nwhich reads as %+v, %v", data, &text, back, err)
		}
	})
}
