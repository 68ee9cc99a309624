package health

import (
	"slices"
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

// TestEarlierTestPushedOut: two failed self-tests are BAD, also when the earlier one is no longer in a full log, until a long test has
// passed.
func TestEarlierTestPushedOut(t *testing.T) {
	test := func(kind string, result drivebay.SelfTestResult, hours uint64) drivebay.SelfTest {
		return drivebay.SelfTest{Kind: kind, Result: result, Hours: hours, Text: "read failure"}
	}
	failed := func(hours uint64) drivebay.SelfTest { return test("long", drivebay.SelfTestFailed, hours) }
	shorts := func(n int, hours uint64) (out []drivebay.SelfTest) {
		for i := range n {
			out = append(out, test("short", drivebay.SelfTestPassed, hours+uint64(n-i)))
		}
		return out
	}
	with := func(parts ...[]drivebay.SelfTest) []drivebay.SelfTest { return slices.Concat(parts...) }
	one := func(t drivebay.SelfTest) []drivebay.SelfTest { return []drivebay.SelfTest{t} }
	two := with(one(failed(200)), one(failed(100)))
	for name, c := range map[string]struct {
		logs [][]drivebay.SelfTest
		want drivebay.Health
	}{
		"both in the log":                   {[][]drivebay.SelfTest{two, with(shorts(17, 300), two)}, dead},
		"the earlier one pushed out":        {[][]drivebay.SelfTest{two, with(shorts(18, 300), one(failed(200)))}, dead},
		"both pushed out":                   {[][]drivebay.SelfTest{two, with(shorts(18, 300), one(failed(200))), shorts(21, 400)}, dead},
		"one fails after the other":         {[][]drivebay.SelfTest{one(failed(100)), shorts(20, 300), with(one(failed(500)), shorts(20, 300))}, dead},
		"one is fatal after the other":      {[][]drivebay.SelfTest{one(failed(100)), shorts(20, 300), with(one(test("long", drivebay.SelfTestFatal, 500)), shorts(20, 300))}, sus},
		"a log that is not full":            {[][]drivebay.SelfTest{two, with(shorts(3, 300), one(failed(200)))}, sus},
		"a long test has passed":            {[][]drivebay.SelfTest{two, with(one(test("long", drivebay.SelfTestPassed, 400)), shorts(17, 300), one(failed(200)))}, good},
		"outdated by a short one and in":    {[][]drivebay.SelfTest{with(one(failed(200)), one(test("short", drivebay.SelfTestFailed, 100))), with(shorts(18, 300), one(failed(200)), one(test("short", drivebay.SelfTestFailed, 100)))}, sus},
		"one that an unreadable sector had": {[][]drivebay.SelfTest{one(failed(200)), with(shorts(18, 300), one(failed(200)))}, sus},
	} {
		mem := drivebay.Memory{}
		round := 0
		for _, tests := range c.logs {
			for range 2 {
				in := hdd()
				if name == "one that an unreadable sector had" && round == 0 {
					in = hdd(attr(197, "Current_Pending_Sector", 8))
				}
				in.Now = t0.AddDate(0, 0, 2*round)
				in.Evidence.At, in.Evidence.SelfTests = in.Now, tests
				mem = Settle(mem, Unread(mem, Assess(in, Default()), in.Evidence), in.Now, Default())
				round++
			}
		}
		if got := drivebay.WorstOf(mem.Findings); got != c.want {
			t.Errorf("%s: %v, want %v: %+v", name, got, c.want, mem.Findings)
		}
	}
}
