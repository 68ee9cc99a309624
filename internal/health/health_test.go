package health

import (
	"bytes"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

func TestThresholds(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Fatalf("the default: %v", err)
	}
	for name, tt := range map[string]struct {
		change func(*Thresholds)
		want   []string
	}{
		"zero":     {func(th *Thresholds) { th.SSDRetired = 0 }, []string{"ssdRetired", "must be above 0"}},
		"negative": {func(th *Thresholds) { th.ClearQuick = -time.Hour }, []string{"clearQuick", "must be above 0"}},
		"order":    {func(th *Thresholds) { th.NVMeMediaBad = 1; th.NVMeMediaSuspect = 2 }, []string{"nvmeMediaBad", "below nvmeMediaSuspect"}},
		"percent":  {func(th *Thresholds) { th.WearUsed = 101 }, []string{"wearUsed", "percentage"}},
		"several":  {func(th *Thresholds) { th.WearUsed = 101; th.FrozenBad = 1 }, []string{"wearUsed", "frozenBad"}},
	} {
		th := Default()
		tt.change(&th)
		err := th.Validate()
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, w := range tt.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v does not say %q", name, err, w)
			}
		}
	}
	typ := reflect.TypeFor[Thresholds]()
	keys := map[string]bool{}
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Tag.Get("yaml") == "" || f.Tag.Get("yaml") != f.Tag.Get("json") || f.Tag.Get("doc") == "" {
			t.Errorf("%s: incomplete tags %q", f.Name, f.Tag)
		}
		keys[f.Tag.Get("yaml")] = true
	}
	for _, pair := range pairs {
		if !keys[pair[0]] || !keys[pair[1]] {
			t.Errorf("pair %v names no threshold", pair)
		}
	}
}

func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.Code] || r.Code == "" {
			t.Errorf("code %q twice or empty", r.Code)
		}
		seen[r.Code] = true
		if r.Suspect+r.Bad+r.Unknown == "" || r.Advice == "" || r.Source == "" || r.check == nil {
			t.Errorf("%s: incomplete", r.Code)
		}
	}
}

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(&b, Default()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, r := range Rules() {
		if !strings.Contains(page, "| `"+r.Code+"` | ") {
			t.Errorf("%s is not on the page", r.Code)
		}
	}
	for _, f := range Default().fields() {
		if !strings.Contains(page, "| `"+f.key+"` | "+f.text+" |") {
			t.Errorf("threshold %s is not on the page", f.key)
		}
	}
	if left := regexp.MustCompile(`\{[a-zA-Z]+\}`).FindString(page); left != "" {
		t.Errorf("%s was not filled in", left)
	}
	if !strings.Contains(page, "of the device statistics, > 16") {
		t.Error("a threshold is missing in its rule")
	}
}

func TestCounters(t *testing.T) {
	in := hdd(attr(5, "Reallocated_Sector_Ct", 7), attr(187, "Reported_Uncorrect", 0x100020003))
	in.Evidence.PercentUsed, in.Evidence.BytesWritten = p(3), p(uint64(99))
	got := Counters(in.Evidence, &drivebay.Kernel{IOErrors: p(uint64(4))})
	want := one{"ata.5": 7, "ata.187": 3, "percentUsed": 3, "bytesWritten": 99, "kernel.ioErrors": 4}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Counters(nil, nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestThin(t *testing.T) {
	now := t0
	var history []drivebay.Sample
	for at := now.Add(-500 * day); !at.After(now); at = at.Add(time.Minute) {
		history = append(history, drivebay.Sample{At: at})
	}
	thin := Thin(history, now)
	if len(thin) > 720 || len(thin) < 600 {
		t.Errorf("%d samples are left", len(thin))
	}
	if !thin[len(thin)-1].At.Equal(now) || now.Sub(thin[0].At) > 400*day {
		t.Errorf("from %v to %v", thin[0].At, thin[len(thin)-1].At)
	}
	if again := Thin(thin, now); !reflect.DeepEqual(again, thin) {
		t.Errorf("thinned twice: %d, then %d", len(thin), len(again))
	}
	// As the daemon does it: one sample a minute, thinned each time.
	var live []drivebay.Sample
	for i := range 3 * 24 * 60 {
		at := now.Add(time.Duration(i) * time.Minute)
		if live = Thin(append(live, drivebay.Sample{At: at}), at); len(live) > 300 {
			t.Fatalf("%d samples after %d minutes", len(live), i)
		}
	}
	if len(live) < 285 {
		t.Errorf("only %d samples after three days", len(live))
	}
}

// TestTwoLooks: what must be seen in two looks in a row is not seen in the first
// and is in the second, however often the drive is looked at, and the history
// stays bounded.
func TestTwoLooks(t *testing.T) {
	for _, poll := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 5 * hour, day} {
		var history []drivebay.Sample
		look := func(n int, count uint64) []drivebay.Finding {
			in := hdd(attr(197, "Current_Pending_Sector", count))
			in.Evidence.At = t0.Add(time.Duration(n) * poll)
			in.Now = in.Evidence.At.Add(time.Second) // the drive has answered
			history = Thin(append(history, drivebay.Sample{At: in.Now, Counters: Counters(in.Evidence, nil)}), in.Now)
			in.History = history
			return Assess(in, Default())
		}
		const sound = 1001 // not the first of its five minutes
		for n := range sound {
			if found := look(n, 0); len(found) > 0 {
				t.Fatalf("every %v: look %d of a sound drive found %+v", poll, n, found)
			}
		}
		if found := look(sound, 1); len(found) > 0 {
			t.Errorf("every %v: the first look found %+v", poll, found)
		}
		if found := look(sound+1, 1); len(found) != 1 || found[0].Code != "ATAPendingSectors" || found[0].Severity != sus {
			t.Errorf("every %v: the second look found %+v", poll, found)
		}
		if len(history) > 720 {
			t.Errorf("every %v: %d samples are kept", poll, len(history))
		}
	}
}

func TestForecast(t *testing.T) {
	ev := func(used int, written uint64) *drivebay.Evidence {
		return &drivebay.Evidence{PercentUsed: &used, BytesWritten: &written}
	}
	sample := func(ago time.Duration, used, written uint64) drivebay.Sample {
		return drivebay.Sample{At: t0.Add(-ago), Counters: one{"percentUsed": used, "bytesWritten": written}}
	}
	for name, tt := range map[string]struct {
		ev      *drivebay.Evidence
		history []drivebay.Sample
		days    float64 // -1: none
		perDay  uint64
	}{
		"no past":              {ev(30, 1000), nil, -1, 0},
		"percent":              {ev(30, 3000), []drivebay.Sample{sample(20*day, 20, 2000)}, 140, 50},
		"percent stands still": {ev(30, 3000), []drivebay.Sample{sample(10*day, 30, 2900)}, 700, 10},
		"too short":            {ev(31, 3000), []drivebay.Sample{sample(hour, 30, 2900)}, -1, 0},
		"used up":              {ev(120, 1), nil, -1, 0},
		"went back":            {ev(3, 10), []drivebay.Sample{sample(30*day, 50, 100)}, -1, 0},
		"nothing written":      {ev(50, 10), []drivebay.Sample{sample(30*day, 50, 10)}, -1, 0},
	} {
		w := Forecast(tt.ev, tt.history, t0)
		switch {
		case tt.days < 0 && w.DaysLeft != nil, tt.days >= 0 && (w.DaysLeft == nil || *w.DaysLeft < tt.days-0.01 || *w.DaysLeft > tt.days+0.01):
			t.Errorf("%s: %+v, want %v days", name, w, tt.days)
		case tt.days >= 0 && w.ForecastBasis == "":
			t.Errorf("%s: stands on nothing", name)
		case tt.perDay > 0 && (w.BytesPerDay == nil || *w.BytesPerDay != tt.perDay):
			t.Errorf("%s: %+v, want %d bytes a day", name, w, tt.perDay)
		}
	}
	if Forecast(nil, nil, t0) != nil || Forecast(&drivebay.Evidence{}, nil, t0) != nil {
		t.Error("a forecast for a drive that keeps no number")
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{week: "7 days", day: "24 h", 90 * time.Minute: "90 min", 5 * time.Second: "5 s", 1500 * time.Millisecond: "1.5s"} {
		if got := span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// TestClockWasAhead: samples of a clock that was ahead, or is behind now, neither count nor replace those of
// today: a drive whose link errors grow each hour is found, whatever the clock was at some start.
func TestClockWasAhead(t *testing.T) {
	for name, jump := range map[string]time.Duration{"by ten years": 3650 * day, "by ten hours": 10 * hour, "back to 1970": -30 * 365 * day} {
		var history []drivebay.Sample
		n, now := uint64(0), t0
		read := func() []drivebay.Finding {
			n++
			ev := &drivebay.Evidence{At: now, Protocol: drivebay.ProtocolATA, Verdict: drivebay.VerdictPassed,
				ATA: &drivebay.ATA{Attributes: []drivebay.Attribute{{ID: 199, Name: "UDMA_CRC_Error_Count", Count: n / 6}}}}
			history = Thin(append(history, drivebay.Sample{At: now, Counters: Counters(ev, nil)}), now)
			return Assess(Input{Evidence: ev, History: history, Type: drivebay.TypeHDD, Protocol: drivebay.ProtocolATA, Now: now}, Default())
		}
		for range 6 {
			now = now.Add(10 * time.Minute)
			read()
		}
		now = now.Add(jump)
		read()
		now = now.Add(10*time.Minute - jump)
		read()
		var found []drivebay.Finding
		for range 6 * 48 {
			now = now.Add(10 * time.Minute)
			found = read()
		}
		if len(found) != 1 || found[0].Code != "ATALinkErrors" || !strings.Contains(found[0].Text, "+24 in 24 h") {
			t.Errorf("%s: %+v, %d samples", name, found, len(history))
		}
		if sorted := slices.IsSortedFunc(history[1:], func(a, b drivebay.Sample) int { return a.At.Compare(b.At) }); !sorted || history[len(history)-1].At != now {
			t.Errorf("%s: the newest sample is not the last one", name)
		}
	}
}
