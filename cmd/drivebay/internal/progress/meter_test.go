package progress

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

const gib = 1 << 30

// meter returns a meter with a clock that step moves.
func meter(tty bool) (m *Meter, out *strings.Builder, step func(time.Duration)) {
	now := time.Date(2026, 11, 25, 2, 0, 0, 0, time.UTC)
	out = new(strings.Builder)
	return &Meter{Out: out, TTY: tty, Now: func() time.Time { return now }}, out, func(d time.Duration) { now = now.Add(d) }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestBar: at a terminal one line changes, with the rate and the end; other lines are printed below it.
func TestBar(t *testing.T) {
	m, out, step := meter(true)
	must(t, m.Bytes("moving", drivebay.Progress{Done: 0, Total: 100 * gib}))
	step(10 * time.Second)
	must(t, m.Bytes("moving", drivebay.Progress{Done: 10 * gib, Total: 100 * gib}))
	step(5 * time.Second) // no news of the daemon: the end comes nearer
	must(t, m.Bytes("moving", drivebay.Progress{Done: 10 * gib, Total: 100 * gib}))
	must(t, m.Bytes("moving", drivebay.Progress{Done: 10 * gib, Total: 100 * gib, End: m.Now().Add(25 * time.Second)}))
	must(t, m.Line("! pulled"))
	must(t, m.Bytes("moving", drivebay.Progress{Done: 100 * gib, Total: 100 * gib}))
	must(t, m.End())
	must(t, m.End())
	want := "\r\x1b[Kmoving  [....................]   0 %  0 B of 100 GiB" +
		"\r\x1b[Kmoving  [##..................]  10 %  10 GiB of 100 GiB  1 GiB/s, done in 90 s" +
		"\r\x1b[Kmoving  [##..................]  10 %  10 GiB of 100 GiB  1 GiB/s, done in 85 s" +
		"\r\x1b[Kmoving  [##..................]  10 %  10 GiB of 100 GiB  3 GiB/s, done in 25 s" +
		"\n! pulled\n" +
		"\r\x1b[Kmoving  [####################] 100 %  100 GiB of 100 GiB"
	if got := out.String(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\r\x1b[K") || strings.Count(got, "\r\x1b[K") != 6 {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

// TestLines: without a terminal there is a line for each tenth, and none for the same one.
func TestLines(t *testing.T) {
	m, out, step := meter(false)
	for _, percent := range []uint64{0, 4, 9, 10, 19, 42, 43, 100} {
		must(t, m.Bytes("moving", drivebay.Progress{Done: percent * gib, Total: 100 * gib}))
		step(time.Second)
	}
	must(t, m.Bytes("moving", drivebay.Progress{Done: 1 * gib, Total: 100 * gib})) // started again
	must(t, m.End())
	var percents []string
	for line := range strings.Lines(out.String()) {
		percents = append(percents, strings.TrimSuffix(strings.Fields(strings.TrimPrefix(line, "moving: "))[0], "%"))
	}
	if got := strings.Join(percents, " "); got != "0 10 42 100 1" || strings.Contains(out.String(), "\r") {
		t.Errorf("lines at %s:\n%s", got, out)
	}
}

// TestPercent: a self-test reports only percent; the end is computed.
func TestPercent(t *testing.T) {
	m, out, step := meter(false)
	must(t, m.Percent("self-test", 0))
	step(time.Minute)
	must(t, m.Percent("self-test", 20))
	if want := "self-test: 0 %\nself-test: 20 %, done in 4 min\n"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// TestElapsed: work whose end is not known shows how long it runs, in a line now and then.
func TestElapsed(t *testing.T) {
	m, out, step := meter(false)
	for range 61 {
		must(t, m.Elapsed("checking"))
		step(time.Second)
	}
	if want := "checking\nchecking  for 30 s\nchecking  for 60 s\n"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
	m, out, _ = meter(true)
	must(t, m.Elapsed("checking"))
	must(t, m.End())
	if want := "\r\x1b[Kchecking\r\x1b[K"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// TestWriteFails: a failed write is returned.
func TestWriteFails(t *testing.T) {
	m := &Meter{Out: full{}, Now: time.Now}
	if m.Line("x") == nil || m.Percent("x", 1) == nil || m.Elapsed("x") == nil {
		t.Error("a failed write is not returned")
	}
}
