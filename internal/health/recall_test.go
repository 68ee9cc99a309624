package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// point is what was measured some time before now; a negative value was not measured.
func point(now time.Time, ago time.Duration, reallocated, media, used int64) drivebay.HistoryPoint {
	p := drivebay.HistoryPoint{At: now.Add(-ago)}
	for _, v := range []struct {
		to   **int64
		from int64
	}{{&p.Reallocated, reallocated}, {&p.MediaErrors, media}, {&p.PercentUsed, used}} {
		if v.from >= 0 {
			*v.to = &v.from
		}
	}
	return p
}

// TestRecall: the points go on where the history begins, as the counters that the drive has.
func TestRecall(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ata := map[string]uint64{"ata.5": 40, "ata.187": 3}
	begins := drivebay.Sample{At: now.Add(-time.Minute), Counters: ata}
	for name, c := range map[string]struct {
		history  []drivebay.Sample
		points   []drivebay.HistoryPoint
		counters map[string]uint64
		want     []string // age and counters
	}{
		"nothing":     {[]drivebay.Sample{begins}, nil, ata, []string{"1m0s ata.187=3 ata.5=40"}},
		"before":      {[]drivebay.Sample{begins}, []drivebay.HistoryPoint{point(now, 72*time.Hour, 0, 2, -1), point(now, 48*time.Hour, 10, -1, -1)}, ata, []string{"72h0m0s ata.187=2 ata.5=0", "48h0m0s ata.5=10", "1m0s ata.187=3 ata.5=40"}},
		"not after":   {[]drivebay.Sample{begins}, []drivebay.HistoryPoint{point(now, time.Minute, 1, -1, -1), point(now, 0, 2, -1, -1), point(now, -time.Hour, 3, -1, -1)}, ata, []string{"1m0s ata.187=3 ata.5=40"}},
		"too old":     {[]drivebay.Sample{begins}, []drivebay.HistoryPoint{point(now, 91*24*time.Hour, 1, -1, -1)}, ata, []string{"1m0s ata.187=3 ata.5=40"}},
		"other kinds": {nil, []drivebay.HistoryPoint{point(now, time.Hour, 7, 8, 9)}, map[string]uint64{"scsi.grownDefects": 7, "scsi.uncorrected": 9}, []string{"1h0m0s percentUsed=9 scsi.grownDefects=7 scsi.uncorrected=8"}},
		"no counter":  {nil, []drivebay.HistoryPoint{point(now, time.Hour, 7, 8, -1)}, nil, nil},
		"unordered":   {nil, []drivebay.HistoryPoint{point(now, time.Hour, 2, -1, -1), point(now, 2*time.Hour, 1, -1, -1)}, ata, []string{"2h0m0s ata.5=1", "1h0m0s ata.5=2"}},
	} {
		var got []string
		for _, s := range Recall(c.history, c.points, c.counters, now) {
			text := now.Sub(s.At).String()
			for _, key := range []string{"ata.187", "ata.5", "percentUsed", "scsi.grownDefects", "scsi.uncorrected"} {
				if v, ok := s.Counters[key]; ok {
					text += fmt.Sprintf(" %s=%d", key, v)
				}
			}
			got = append(got, text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if Reaches(nil, now) || Reaches([]drivebay.Sample{begins}, now) || !Reaches([]drivebay.Sample{{At: now.Add(-90 * 24 * time.Hour)}, begins}, now) {
		t.Error("how far a history reaches is wrong")
	}
}

// TestRecallJudges: a rule that measures growth, and a forecast, find with the points what they find with the samples.
func TestRecallJudges(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	media, used := uint64(9), 30
	ev := &drivebay.Evidence{At: now, Protocol: drivebay.ProtocolNVMe, Type: drivebay.TypeNVMe, PercentUsed: &used, NVMe: &drivebay.NVMe{MediaErrors: media, AvailableSpare: 100, SpareThreshold: 10}}
	counters := Counters(ev, nil)
	var samples []drivebay.Sample
	var points []drivebay.HistoryPoint
	for d := 60; d > 0; d-- {
		at, errors, percent := now.AddDate(0, 0, -d), int64(max(2, 8-d)), int64(30-d/10)
		samples = append(samples, drivebay.Sample{At: at, Counters: map[string]uint64{keyNVMeMedia: uint64(errors), keyPercentUsed: uint64(percent)}})
		points = append(points, point(now, now.Sub(at), -1, errors, percent))
	}
	last := drivebay.Sample{At: now, Counters: counters}
	judge := func(history []drivebay.Sample) (string, string) {
		var texts []string
		for _, f := range Assess(Input{Evidence: ev, History: history, Protocol: drivebay.ProtocolNVMe, Type: drivebay.TypeNVMe, Now: now}, Default()) {
			texts = append(texts, f.Code+": "+f.Text)
		}
		return strings.Join(texts, "; "), Forecast(ev, history, now).ForecastBasis
	}
	whole, basis := judge(append(slices.Clone(samples), last))
	bare, bareBasis := judge([]drivebay.Sample{last})
	recalled, recalledBasis := judge(Recall([]drivebay.Sample{last}, points, counters, now))
	if whole == bare || basis == bareBasis {
		t.Fatalf("the samples change nothing: %q, %q", bare, bareBasis)
	}
	if recalled != whole || recalledBasis != basis {
		t.Errorf("with the points %q, %q; with the samples %q, %q", recalled, recalledBasis, whole, basis)
	}
}
