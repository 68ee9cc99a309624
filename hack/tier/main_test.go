package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestTally: a failure names its test with what it said, or its package where no test is to blame, and the log has all that was printed.
func TestTally(t *testing.T) {
	const events = `
{"Action":"build-output","ImportPath":"m/b [m/b.test]","Output":"b_test.go:3:26: undefined: x\n"}
{"Action":"build-fail","ImportPath":"m/b [m/b.test]"}
{"Action":"fail","Package":"m/b","Elapsed":0,"FailedBuild":"m/b [m/b.test]"}
{"Action":"output","Package":"m/a","Test":"TestA/x","Output":"a line that the test printed\n"}
{"Action":"output","Package":"m/a","Test":"TestA/x","Output":"    a_test.go:3: bad\n"}
{"Action":"output","Package":"m/a","Test":"TestA/x","Output":"        and worse\n"}
{"Action":"output","Package":"m/a","Test":"TestA/x","Output":"--- FAIL: TestA/x (0.00s)\n"}
{"Action":"fail","Package":"m/a","Test":"TestA/x","Elapsed":0}
{"Action":"fail","Package":"m/a","Test":"TestA","Elapsed":0}
{"Action":"skip","Package":"m/a","Test":"TestS","Elapsed":0}
{"Action":"pass","Package":"m/a","Test":"TestP","Elapsed":0}
{"Action":"fail","Package":"m/a","Elapsed":0.1}
{"Action":"output","Package":"m/c","Output":"panic: 1\n"}
{"Action":"fail","Package":"m/c","Elapsed":0.1}
`
	var log bytes.Buffer
	passed, skipped, failed := tier{slow: 1}.tally(strings.NewReader(strings.TrimSpace(events)), &log)
	if passed != 1 || !slices.Equal(skipped, []string{"m/a TestS"}) {
		t.Errorf("%d passed, skipped %q", passed, skipped)
	}
	if want := []string{"m/b [m/b.test] (does not compile)", "m/a TestA/x\n    a_test.go:3: bad\n        and worse", "m/a TestA", "m/c"}; !slices.Equal(failed, want) {
		t.Errorf("failed %q, want %q", failed, want)
	}
	if want := "b_test.go:3:26: undefined: x\na line that the test printed\n    a_test.go:3: bad\n        and worse\n--- FAIL: TestA/x (0.00s)\npanic: 1\n"; log.String() != want {
		t.Errorf("the log is %q, want %q", log.String(), want)
	}
}
