package policy

import (
	"strings"
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	is := func(drive string, after time.Duration, change ...func(*BadDrive)) BadDrive {
		out := BadDrive{Drive: drive, Why: "BAD: " + drive, Since: t0.Add(after), Rounds: stableRounds, Behind: []string{"enclosure " + drive}, May: true}
		for _, c := range change {
			c(&out)
		}
		return out
	}
	sharing := func(t *BadDrive) { t.Behind = append(t.Behind, "controller 0000:10:00.0") }
	kept, once, not := func(t *BadDrive) { t.Kept = true }, func(t *BadDrive) { t.Rounds = 1 }, func(t *BadDrive) { t.May = false }
	for _, tc := range []struct {
		name string
		all  []BadDrive
		busy bool
		want string
		held int
	}{
		{"nobody", nil, false, "", 0},
		{"one", []BadDrive{is("a", 0)}, false, "a", 0},
		{"seen once", []BadDrive{is("a", 0, once)}, false, "", 0},
		{"system, unclaimed, leaving or gone", []BadDrive{is("a", 0, not)}, false, "", 0},
		{"an operator keeps it", []BadDrive{is("a", 0, kept)}, false, "", 0},
		{"another is leaving", []BadDrive{is("a", 0)}, true, "", 0},
		{"the first of two that share nothing", []BadDrive{is("b", time.Minute), is("a", 0)}, false, "a", 0},
		{"the second, when the first is kept", []BadDrive{is("a", 0, kept), is("b", time.Minute)}, false, "b", 0},
		{"two behind one controller at once", []BadDrive{is("a", 0, sharing), is("b", togetherTime, sharing)}, false, "", 2},
		{"the other cannot leave, and is a sign", []BadDrive{is("a", 0, sharing), is("b", time.Minute, sharing, not)}, false, "", 1},
		{"the other turned only now", []BadDrive{is("a", 0, sharing), is("b", time.Minute, sharing, once)}, false, "", 1},
		{"two behind one controller, hours apart", []BadDrive{is("a", 0, sharing), is("b", togetherTime+time.Second, sharing)}, false, "a", 0},
		{"a third that shares nothing goes", []BadDrive{is("a", 0, sharing), is("b", 0, sharing), is("c", time.Minute)}, false, "c", 2},
		{"a drive that is held back is reported while another one leaves", []BadDrive{is("a", 0, sharing), is("b", 0, sharing)}, true, "", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := DecideRelease(tc.all, tc.busy)
			if v.Release != tc.want || len(v.Held) != tc.held || tc.want != "" && v.Why != "BAD: "+tc.want {
				t.Errorf("%+v", v)
			}
			for _, why := range v.Held {
				if !strings.Contains(why, "controller 0000:10:00.0") || !strings.Contains(why, "cable") {
					t.Error(why)
				}
			}
		})
	}
}
