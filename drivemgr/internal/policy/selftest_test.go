package policy

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

func TestSelfTestWindow(t *testing.T) {
	at := func(h, m int) time.Time { return time.Date(2026, 3, 1, h, m, 0, 0, time.UTC) }
	night := SelfTestPlan{From: time.Hour, To: 5 * time.Hour}
	late := SelfTestPlan{From: 22 * time.Hour, To: 2 * time.Hour}
	for _, c := range []struct {
		plan SelfTestPlan
		h, m int
		open bool
	}{
		{night, 0, 59, false}, {night, 1, 0, true}, {night, 4, 59, true}, {night, 5, 0, false},
		{late, 21, 59, false}, {late, 22, 0, true}, {late, 1, 59, true}, {late, 2, 0, false},
		{SelfTestPlan{}, 12, 0, true},
	} {
		if got := c.plan.Open(at(c.h, c.m)); got != c.open {
			t.Errorf("window %v-%v at %02d:%02d is open: %v", c.plan.From, c.plan.To, c.h, c.m, got)
		}
	}
}

func TestSelfTestsDue(t *testing.T) {
	now := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	ago := func(days int) time.Time { return now.AddDate(0, 0, -days) }
	plan := DefaultSelfTestPlan()
	plan.Enabled, plan.AtOnce = true, 2
	fresh := Candidate{ID: "fresh", Able: true, LastShort: ago(1), LastLong: ago(1)}
	weekly := Candidate{ID: "weekly", Able: true, LastShort: ago(8), LastLong: ago(20)}
	monthly := Candidate{ID: "monthly", Able: true, LastShort: ago(1), LastLong: ago(31)}
	never := Candidate{ID: "never", Able: true}
	asleep := Candidate{ID: "asleep"}
	testing := Candidate{ID: "testing", Running: true, Able: true}

	cases := []struct {
		name string
		all  []Candidate
		want []start
	}{
		{"nothing due", []Candidate{fresh, asleep}, nil},
		{"short", []Candidate{fresh, weekly}, []start{{"weekly", host.SelfTestShort}}},
		{"the long one stands for the short one", []Candidate{monthly}, []start{{"monthly", host.SelfTestLong}}},
		{"longest overdue first, two at once", []Candidate{weekly, monthly, never}, []start{{"never", host.SelfTestLong}, {"monthly", host.SelfTestLong}}},
		{"one is running", []Candidate{weekly, monthly, never, testing}, []start{{"never", host.SelfTestLong}}},
		{"a test of a clock that was ahead", []Candidate{{ID: "ahead", Able: true, LastShort: ago(1), LastLong: ago(-3650)}}, []start{{"ahead", host.SelfTestLong}}},
		{"tested again since", []Candidate{{ID: "ahead", Able: true, LastShort: ago(-3650), LastLong: ago(1)}}, nil},
		{"two are running", []Candidate{never, testing, testing}, nil},
	}
	for _, c := range cases {
		got := plan.Due(c.all, now)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}
	}
	plan.Enabled = false
	if got := plan.Due([]Candidate{never}, now); got != nil {
		t.Errorf("a plan that is off starts %v", got)
	}
	plan.Enabled = true
	if got := plan.Due([]Candidate{never}, now.Add(12*time.Hour)); got != nil {
		t.Errorf("outside the window %v start", got)
	}
}
