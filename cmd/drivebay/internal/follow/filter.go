package follow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// Filter says which events are shown. An empty field excludes none.
type Filter struct {
	Since         time.Time
	Kinds         []drivebay.EventKind
	Drive, Volume string // IDs
}

// Apply returns the events that pass the filter.
func (f *Filter) Apply(list []drivebay.Event) []drivebay.Event {
	return slices.DeleteFunc(slices.Clone(list), func(e drivebay.Event) bool {
		return e.At.Before(f.Since) || len(f.Kinds) > 0 && !slices.Contains(f.Kinds, e.Kind) ||
			f.Drive != "" && e.Drive != f.Drive || f.Volume != "" && e.Volume != f.Volume
	})
}

// SetKinds reads kinds in any case. It returns the first word that is no kind, "" if all are.
func (f *Filter) SetKinds(words []string, known []drivebay.EventKind) (unknown string) {
	for _, w := range words {
		i := slices.IndexFunc(known, func(k drivebay.EventKind) bool { return strings.EqualFold(string(k), strings.TrimSpace(w)) })
		if i < 0 {
			return w
		}
		f.Kinds = append(f.Kinds, known[i])
	}
	return ""
}

// timeLayouts are the times that ParseSince reads besides durations. Without a zone they are local times.
var timeLayouts = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"}

// ParseSince reads a time, or a duration before now: "90m", "1h", "2d".
func ParseSince(text string, now time.Time) (time.Time, error) {
	span := text
	if days, ok := strings.CutSuffix(text, "d"); ok {
		span = days + "h"
	}
	if d, err := time.ParseDuration(span); err == nil && d >= 0 {
		if span != text {
			if d > 1<<62/24 {
				return time.Time{}, badTime(text)
			}
			d *= 24
		}
		return now.Add(-d), nil
	}
	for _, layout := range timeLayouts {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, badTime(text)
}

func badTime(text string) error {
	return fmt.Errorf("%q is no time: write it as 90m, 1h or 2d before now, 2026-11-24, 2026-11-24T10:00, or 2026-11-24T10:00:00Z", text)
}
