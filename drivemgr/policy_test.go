package drivemgr

import (
	"strings"
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	is := func(drive string, after time.Duration, change ...func(*badDrive)) badDrive {
		out := badDrive{drive: drive, why: "BAD: " + drive, since: t0.Add(after), rounds: stableRounds, behind: []string{"enclosure " + drive}, may: true}
		for _, c := range change {
			c(&out)
		}
		return out
	}
	sharing := func(t *badDrive) { t.behind = append(t.behind, "controller 0000:10:00.0") }
	kept, once, not := func(t *badDrive) { t.kept = true }, func(t *badDrive) { t.rounds = 1 }, func(t *badDrive) { t.may = false }
	for _, tc := range []struct {
		name string
		all  []badDrive
		busy bool
		want string
		held int
	}{
		{"nobody", nil, false, "", 0},
		{"one", []badDrive{is("a", 0)}, false, "a", 0},
		{"seen once", []badDrive{is("a", 0, once)}, false, "", 0},
		{"system, unclaimed, leaving or gone", []badDrive{is("a", 0, not)}, false, "", 0},
		{"an operator keeps it", []badDrive{is("a", 0, kept)}, false, "", 0},
		{"another is leaving", []badDrive{is("a", 0)}, true, "", 0},
		{"the first of two that share nothing", []badDrive{is("b", time.Minute), is("a", 0)}, false, "a", 0},
		{"the second, when the first is kept", []badDrive{is("a", 0, kept), is("b", time.Minute)}, false, "b", 0},
		{"two behind one controller at once", []badDrive{is("a", 0, sharing), is("b", togetherTime, sharing)}, false, "", 2},
		{"the other cannot leave, and is a sign", []badDrive{is("a", 0, sharing), is("b", time.Minute, sharing, not)}, false, "", 1},
		{"the other turned only now", []badDrive{is("a", 0, sharing), is("b", time.Minute, sharing, once)}, false, "", 1},
		{"two behind one controller, hours apart", []badDrive{is("a", 0, sharing), is("b", togetherTime+time.Second, sharing)}, false, "a", 0},
		{"a third that shares nothing goes", []badDrive{is("a", 0, sharing), is("b", 0, sharing), is("c", time.Minute)}, false, "c", 2},
		{"a drive that is held back is reported while another one leaves", []badDrive{is("a", 0, sharing), is("b", 0, sharing)}, true, "", 2},
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
