package health

import (
	"testing"

	"github.com/drivebay/drivebay"
)

// TestFailedTestPushedOut: a failed long self-test stands while short ones that passed push it out of a full log, until a
// long one has passed. A log that was emptied has no failure any more.
func TestFailedTestPushedOut(t *testing.T) {
	failed := drivebay.SelfTest{Kind: "long", Result: drivebay.SelfTestFailed, Hours: 100, Text: "read failure"}
	passed := func(kind string, n int) (out []drivebay.SelfTest) {
		for i := range n {
			out = append(out, drivebay.SelfTest{Kind: kind, Result: drivebay.SelfTestPassed, Hours: uint64(200 + n - i)})
		}
		return out
	}
	for name, c := range map[string]struct {
		then []drivebay.SelfTest
		want drivebay.Health
	}{
		"still there":     {append(passed("short", 5), failed), sus},
		"pushed out":      {passed("short", 19), sus},
		"a long one":      {append(passed("short", 18), passed("long", 1)...), good},
		"an emptied log":  {nil, good},
		"few tests since": {passed("short", 3), good},
	} {
		mem := drivebay.Memory{}
		for round, tests := range [][]drivebay.SelfTest{{failed}, c.then, c.then} {
			in := hdd()
			in.Now = t0.AddDate(0, 0, 2*round)
			in.Evidence.At, in.Evidence.SelfTests = in.Now, tests
			mem = Settle(mem, Unread(mem, Assess(in, Default()), in.Evidence), in.Now, Default())
		}
		if got := drivebay.WorstOf(mem.Findings); got != c.want {
			t.Errorf("%s: %v, want %v: %+v", name, got, c.want, mem.Findings)
		}
	}
}
