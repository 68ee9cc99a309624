package health

import (
	"slices"
	"time"

	"github.com/drivebay/drivebay"
)

// Reaches reports whether a history goes back as far as any rule looks. One that does not may go on in what was measured of the
// drive for people to look at (see Recall).
func Reaches(history []drivebay.Sample, now time.Time) bool {
	return slices.ContainsFunc(history, func(s drivebay.Sample) bool { return now.Sub(s.At) >= paceWindow })
}

// Recall returns a history with the points that were measured before it begins: the record of a drive is deleted with its
// history when the drive is missing for long or forgotten, the points stay for months. counters are those of the last reading.
// They say which counter of the drive a value is of. A point of an hour has the time of its beginning and the value of its end.
func Recall(history []drivebay.Sample, points []drivebay.HistoryPoint, counters map[string]uint64, now time.Time) []drivebay.Sample {
	begins := now
	for _, s := range history {
		if s.At.Before(begins) {
			begins = s.At
		}
	}
	reallocated, _ := firstKey(counters, reallocatedKeys)
	media, _ := firstKey(counters, mediaKeys)
	var out []drivebay.Sample
	for _, p := range points {
		if !p.At.Before(begins) || now.Sub(p.At) > paceWindow {
			continue
		}
		s := drivebay.Sample{At: p.At, Counters: map[string]uint64{}}
		for _, v := range []struct {
			key   string
			value *int64
		}{{keyPercentUsed, p.PercentUsed}, {reallocated, p.Reallocated}, {media, p.MediaErrors}} {
			if v.key != "" && v.value != nil && *v.value >= 0 {
				s.Counters[v.key] = uint64(*v.value)
			}
		}
		if len(s.Counters) > 0 {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return history
	}
	slices.SortStableFunc(out, func(a, b drivebay.Sample) int { return a.At.Compare(b.At) })
	return Thin(append(out, history...), now)
}
