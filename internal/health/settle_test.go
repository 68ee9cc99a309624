package health

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

func find(code string, h drivebay.Health, level uint64) drivebay.Finding {
	return drivebay.Finding{Code: code, Severity: h, Level: level, Text: code}
}

// round is one step of a scenario: what was found then, and what stands after.
type round struct {
	after time.Duration // since the round before
	found []drivebay.Finding
	want  drivebay.Health
	gone  bool // the first finding's cause is away
}

func TestSettle(t *testing.T) {
	pendingNow := []drivebay.Finding{find("ATAPendingSectors", sus, 3)}
	badNow := []drivebay.Finding{find("ATAPendingSectors", dead, 300)}
	resetting := []drivebay.Finding{find("NVMeController", sus, 0)}
	offline := []drivebay.Finding{find("KernelOffline", dead, 0)}
	silent := []drivebay.Finding{find("EvidenceMissing", dunno, 0)}
	for name, rounds := range map[string][]round{
		"stands at once and goes after a day": {{0, pendingNow, sus, false}, {time.Minute, nil, sus, true}, {23 * time.Hour, nil, sus, true}, {time.Hour, nil, good, false}},
		"comes back within the day":           {{0, pendingNow, sus, false}, {time.Minute, nil, sus, true}, {23 * time.Hour, pendingNow, sus, false}, {2 * time.Hour, nil, sus, true}, {23 * time.Hour, nil, sus, true}},
		"grows worse at once":                 {{0, pendingNow, sus, false}, {time.Minute, badNow, dead, false}},
		"grows better slowly":                 {{0, badNow, dead, false}, {time.Minute, pendingNow, dead, true}, {25 * time.Hour, pendingNow, sus, false}},
		"quick":                               {{0, offline, dead, false}, {time.Minute, nil, dead, true}, {10 * time.Minute, nil, good, false}},
		"two rounds":                          {{0, resetting, good, false}, {time.Minute, resetting, sus, false}},
		"two assessments of one round":        {{0, resetting, good, false}, {time.Millisecond, resetting, good, false}, {500 * time.Millisecond, resetting, good, false}, {500 * time.Millisecond, resetting, sus, false}},
		"two rounds, not in a row":            {{0, resetting, good, false}, {time.Minute, nil, good, false}, {time.Minute, resetting, good, false}},
		"unknown ends with the answer":        {{0, silent, dunno, false}, {time.Minute, nil, good, false}},
		"unknown does not hide suspicion":     {{0, pendingNow, sus, false}, {time.Minute, silent, sus, false}},
		"silence clears nothing":              {{0, badNow, dead, false}, {time.Minute, silent, dead, false}, {48 * time.Hour, silent, dead, false}, {time.Minute, nil, dead, true}, {24 * time.Hour, nil, good, false}},
		"a gone cause clears in silence":      {{0, badNow, dead, false}, {time.Minute, nil, dead, true}, {48 * time.Hour, silent, dunno, false}},
		"clock goes back":                     {{0, pendingNow, sus, false}, {time.Minute, nil, sus, true}, {-time.Hour, nil, sus, true}, {25 * time.Hour, nil, good, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var mem drivebay.Memory
			now := t0
			for i, r := range rounds {
				now = now.Add(r.after)
				mem = Settle(mem, r.found, now, Default())
				if got := drivebay.WorstOf(mem.Findings); got != r.want {
					t.Fatalf("round %d: %v, want %v: %+v", i, got, r.want, mem)
				}
				if len(mem.Findings) > 0 && mem.Findings[0].Gone.IsZero() == r.gone {
					t.Fatalf("round %d: gone %v, want %v", i, mem.Findings[0].Gone, r.gone)
				}
			}
		})
	}
}

func TestSettleSince(t *testing.T) {
	mem := Settle(drivebay.Memory{}, []drivebay.Finding{find("SelfTest", sus, 1)}, t0, Default())
	mem = Settle(mem, []drivebay.Finding{find("SelfTest", sus, 1)}, t0.Add(hour), Default())
	if !mem.Findings[0].Since.Equal(t0) {
		t.Errorf("since %v, want the first round", mem.Findings[0].Since)
	}
	mem = Settle(mem, []drivebay.Finding{find("SelfTest", dead, 1)}, t0.Add(2*hour), Default())
	if !mem.Findings[0].Since.Equal(t0.Add(2 * hour)) {
		t.Errorf("since %v, want the round in which it turned BAD", mem.Findings[0].Since)
	}
}

func TestAcknowledge(t *testing.T) {
	th := Default()
	some := []drivebay.Finding{find("ATAReallocatedSectors", sus, 20)}
	mem := Settle(drivebay.Memory{}, some, t0, th)
	acked, err := Acknowledge(mem, "ATAReallocatedSectors")
	if err != nil || len(acked.Findings) != 0 || acked.Acked["ATAReallocatedSectors"] != 20 {
		t.Fatalf("%+v, %v", acked, err)
	}
	if len(mem.Findings) != 1 || len(mem.Acked) != 0 {
		t.Error("the memory that was given has changed")
	}
	for _, step := range []struct {
		found []drivebay.Finding
		want  drivebay.Health
	}{
		{some, good}, {nil, good}, {some, good},
		{[]drivebay.Finding{find("ATAReallocatedSectors", sus, 21)}, sus},
		{some, sus},
	} {
		acked = Settle(acked, step.found, t0.Add(hour), th)
		if got := drivebay.WorstOf(acked.Findings); got != step.want {
			t.Fatalf("%+v: %v, want %v", step.found, got, step.want)
		}
	}
	mem, _ = Acknowledge(Settle(drivebay.Memory{}, some, t0, th), "")
	mem = Settle(mem, []drivebay.Finding{find("ATAReallocatedSectors", dead, 20)}, t0, th)
	if drivebay.WorstOf(mem.Findings) != dead {
		t.Error("an accepted suspicion hides a BAD finding")
	}
	if _, err := Acknowledge(mem, "ATAReallocatedSectors"); !errors.Is(err, drivebay.ErrInvalid) {
		t.Errorf("a present BAD finding was acknowledged: %v", err)
	}
	if _, err := Acknowledge(mem, "SelfTest"); !errors.Is(err, drivebay.ErrNotFound) {
		t.Errorf("a finding that does not stand: %v", err)
	}
	if _, err := Acknowledge(mem, ""); !errors.Is(err, drivebay.ErrNotFound) {
		t.Errorf("nothing to acknowledge: %v", err)
	}
	mem = Settle(mem, nil, t0.Add(hour), th)
	if mem, err = Acknowledge(mem, ""); err != nil || len(mem.Findings) != 0 {
		t.Errorf("a BAD finding whose cause is gone: %+v, %v", mem, err)
	}
}

func TestAcknowledgePassing(t *testing.T) {
	hot := []drivebay.Finding{find("NVMeHeat", sus, 85)}
	mem, err := Acknowledge(Settle(drivebay.Memory{}, hot, t0, Default()), "NVMeHeat")
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		found []drivebay.Finding
		want  drivebay.Health
	}{{hot, good}, {nil, good}, {hot, sus}} {
		mem = Settle(mem, step.found, t0.Add(time.Duration(i)*hour), Default())
		if got := drivebay.WorstOf(mem.Findings); got != step.want {
			t.Fatalf("step %d: %v, want %v", i, got, step.want)
		}
	}
}

// TestSettleIdempotent: the same input again changes nothing, once rules that
// want several rounds have had them.
func TestSettleIdempotent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	th := Default()
	for range 300 {
		var mem drivebay.Memory
		now := t0
		for range 6 {
			found := randomFindings(rnd)
			now = now.Add(time.Duration(rnd.IntN(30)) * hour)
			mem = Settle(mem, found, now, th)
			now = now.Add(time.Minute)
			mem = Settle(mem, found, now, th)
			if again := Settle(mem, found, now, th); !reflect.DeepEqual(again, mem) {
				t.Fatalf("not settled:\n%+v\n%+v", mem, again)
			}
			if drivebay.WorstOf(mem.Findings).Rank() < drivebay.WorstOf(found).Rank() {
				t.Fatalf("better than what was found: %+v of %+v", mem, found)
			}
		}
	}
}

func randomFindings(rnd *rand.Rand) []drivebay.Finding {
	var out []drivebay.Finding
	for _, r := range Rules() {
		if rnd.IntN(4) == 0 {
			out = append(out, find(r.Code, []drivebay.Health{sus, dead, dunno}[rnd.IntN(3)], uint64(rnd.IntN(9))))
		}
	}
	drivebay.SortFindings(out)
	return out
}

// TestNoFlapping: a cause that comes and goes every minute changes the verdict
// once, whatever the rule.
func TestNoFlapping(t *testing.T) {
	for _, r := range Rules() {
		for _, severity := range []drivebay.Health{sus, dead} {
			var mem drivebay.Memory
			changes, last := 0, good
			for minute := range 600 {
				var found []drivebay.Finding
				if minute%5 != 4 && (r.Polls > 1 || minute%2 == 0) {
					found = append(found, find(r.Code, severity, uint64(minute%3)))
				}
				mem = Settle(mem, found, t0.Add(time.Duration(minute)*time.Minute), Default())
				if got := drivebay.WorstOf(mem.Findings); got != last {
					changes, last = changes+1, got
				}
			}
			if changes != 1 || last != severity {
				t.Errorf("%s %v: %d changes, ends %v", r.Code, severity, changes, last)
			}
		}
	}
}
