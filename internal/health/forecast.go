package health

import (
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
)

const (
	paceWindow = 90 * day // samples older than a quarter do not count
	paceLeast  = day      // shortest history for a write rate
	wearLeast  = 7 * day  // shortest history for a wear rate, which grows in whole percents
)

// Forecast returns how much of a solid-state drive is used and, where the history allows, how many
// days the rest will last. It returns nil for a drive that does not report the percentage used.
func Forecast(ev *drivebay.Evidence, history []drivebay.Sample, now time.Time) *drivebay.Wear {
	if ev == nil || ev.PercentUsed == nil {
		return nil
	}
	w := &drivebay.Wear{PercentUsed: *ev.PercentUsed, TotalWritten: ev.BytesWritten}
	used, left := float64(w.PercentUsed), float64(100-w.PercentUsed)
	if left <= 0 {
		w.ForecastBasis = "the rated endurance is used up"
		return w
	}
	var perDay float64
	if ev.BytesWritten != nil {
		if grown, over := pace(history, KeyWritten, *ev.BytesWritten, now); over >= paceLeast {
			perDay = float64(grown) / over.Hours() * 24
			n := uint64(perDay)
			w.BytesPerDay = &n
		}
	}
	if grown, over := pace(history, keyPercentUsed, uint64(w.PercentUsed), now); grown > 0 && over >= wearLeast {
		days := left / (float64(grown) / (over.Hours() / 24))
		w.DaysLeft, w.ForecastBasis = &days, fmt.Sprintf("%d %% in %.0f days", grown, over.Hours()/24)
		return w
	}
	// The percentage has not grown in the history: derive the bytes that a percent costs from the
	// total written, which is accurate enough from a few percent on.
	if perDay > 0 && w.PercentUsed >= 5 {
		days := left * (float64(*ev.BytesWritten) / used) / perDay
		w.DaysLeft, w.ForecastBasis = &days, fmt.Sprintf("%.0f GB a day, %d %% after %.0f GB", perDay/1e9, w.PercentUsed, float64(*ev.BytesWritten)/1e9)
	}
	return w
}

// pace returns the growth of a counter over the last quarter, and the time that the samples cover.
// A counter that decreased (another drive's history, a firmware reset) has no pace.
func pace(history []drivebay.Sample, key string, current uint64, now time.Time) (grown uint64, over time.Duration) {
	for _, s := range history {
		v, ok := s.Counters[key]
		age := now.Sub(s.At)
		if !ok || age > paceWindow || age <= 0 {
			continue
		}
		if v > current {
			return 0, 0
		}
		return current - v, age
	}
	return 0, 0
}
