package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestBanner: the banner names the directory, the sockets and the program as a shell reads them.
func TestBanner(t *testing.T) {
	dir := t.TempDir() + "/a b"
	if out, err := exec.Command("mkdir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	t.Chdir(dir)
	text := rack{program: "./bin/drivebay", address: "unix:///run/x.sock", csi: "unix:///run/it's.sock"}.bannerText()
	for _, want := range []string{"  cd '" + dir + "'\n", "  export DRIVEBAY_API=unix:///run/x.sock CSI_ENDPOINT='unix:///run/it'\\''s.sock'\n", "\n  bin/drivebay volume create data-1 --size 1GiB\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	var script strings.Builder
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(line, "  "); ok && !strings.HasPrefix(command, "bin/drivebay") {
			script.WriteString(command)
		}
	}
	out, err := exec.Command("sh", "-ec", script.String()+`pwd; echo "$DRIVEBAY_API $CSI_ENDPOINT"`).CombinedOutput()
	if want := dir + "\nunix:///run/x.sock unix:///run/it's.sock\n"; err != nil || string(out) != want {
		t.Errorf("%v: a shell reads %q, want %q", err, out, want)
	}
}

// TestQuietLog: the log counts as quiet only a while after its last line.
func TestQuietLog(t *testing.T) {
	var out bytes.Buffer
	log := &quietLog{to: &out}
	if !log.quiet() {
		t.Error("a log without a line is not quiet")
	}
	if _, err := log.Write([]byte("line\n")); err != nil || log.quiet() || out.String() != "line\n" {
		t.Errorf("quiet right after a line, %v, passed on %q", err, out.String())
	}
	log.last = time.Now().Add(-2 * quietTime)
	if !log.quiet() {
		t.Error("not quiet long after the last line")
	}
}
