package drivemgr

import (
	"strings"
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	is := func(drive string, after time.Duration, change ...func(*turned)) turned {
		out := turned{drive: drive, why: "BAD: " + drive, since: t0.Add(after), rounds: stableRounds, behind: []string{"enclosure " + drive}, may: true}
		for _, c := range change {
			c(&out)
		}
		return out
	}
	sharing := func(t *turned) { t.behind = append(t.behind, "controller 0000:10:00.0") }
	kept, once, not := func(t *turned) { t.kept = true }, func(t *turned) { t.rounds = 1 }, func(t *turned) { t.may = false }
	for _, tc := range []struct {
		name string
		all  []turned
		busy bool
		want string
		held int
	}{
		{"nobody", nil, false, "", 0},
		{"one", []turned{is("a", 0)}, false, "a", 0},
		{"seen once", []turned{is("a", 0, once)}, false, "", 0},
		{"system, unclaimed, leaving or gone", []turned{is("a", 0, not)}, false, "", 0},
		{"an operator keeps it", []turned{is("a", 0, kept)}, false, "", 0},
		{"another is leaving", []turned{is("a", 0)}, true, "", 0},
		{"the first of two that share nothing", []turned{is("b", time.Minute), is("a", 0)}, false, "a", 0},
		{"the second, when the first is kept", []turned{is("a", 0, kept), is("b", time.Minute)}, false, "b", 0},
		{"two behind one controller at once", []turned{is("a", 0, sharing), is("b", togetherTime, sharing)}, false, "", 2},
		{"the other cannot leave, and is a sign", []turned{is("a", 0, sharing), is("b", time.Minute, sharing, not)}, false, "", 1},
		{"the other turned only now", []turned{is("a", 0, sharing), is("b", time.Minute, sharing, once)}, false, "", 1},
		{"two behind one controller, hours apart", []turned{is("a", 0, sharing), is("b", togetherTime+time.Second, sharing)}, false, "a", 0},
		{"a third that shares nothing goes", []turned{is("a", 0, sharing), is("b", 0, sharing), is("c", time.Minute)}, false, "c", 2},
		{"held is told while another is leaving", []turned{is("a", 0, sharing), is("b", 0, sharing)}, true, "", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := decide(tc.all, tc.busy)
			if v.release != tc.want || len(v.held) != tc.held || tc.want != "" && v.why != "BAD: "+tc.want {
				t.Errorf("%+v", v)
			}
			for _, why := range v.held {
				if !strings.Contains(why, "controller 0000:10:00.0") || !strings.Contains(why, "cable") {
					t.Error(why)
				}
			}
		})
	}
}
