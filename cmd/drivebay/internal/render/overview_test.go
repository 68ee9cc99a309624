package render

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
)

// troubled is an overview with an item of each kind.
func troubled() overview.Overview {
	set := shelf()
	s := *set.Drives
	s.Machine.Name, s.Complete = "rack", true
	for i := range s.Drives {
		d := &s.Drives[i]
		switch d.Name {
		case "sda":
			d.Usage, d.Leaving = drivebay.UsageReleasing, &drivebay.Leaving{Cause: "volume data-10 moves", Progress: &drivebay.Progress{Done: 1 << 30, Total: 4 << 30, End: now.Add(3 * time.Minute)}}
		case "sdb":
			d.Usage = drivebay.UsageInUse
		case "vda":
			d.Usage = drivebay.UsageReleased
		}
	}
	return overview.Of(overview.Input{Drives: &s, Volumes: set, Unwritten: []string{"aaaa"}})
}

func TestOverviewGoldens(t *testing.T) {
	fine := overview.Of(overview.Input{Drives: &drivebay.Snapshot{Complete: true, Machine: drivebay.Machine{Name: "rack"}}, Volumes: &drivebay.VolumeSet{}})
	for name, got := range map[string]string{
		"overview":       Overview(troubled(), Style{Width: 100, Now: now}),
		"overview-60":    Overview(troubled(), Style{Width: 60, Now: now}),
		"overview-color": Overview(troubled(), Style{Width: 100, Color: true, Now: now}),
		"overview-fine":  Overview(fine, Style{Width: 100, Now: now}),
		"overview-short": WrongLines(troubled().Wrong, Style{Now: now}),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, got) })
	}
}

// TestOverviewIsOneScreen: the overview of a machine with a hundred faults is one screen, and no line is
// longer than it is wide.
func TestOverviewIsOneScreen(t *testing.T) {
	drives, set := bigRack()
	o := overview.Of(overview.Input{Drives: &drivebay.Snapshot{Complete: true, Drives: drives, Machine: drivebay.Machine{Name: "\x1b[2Jrack"}}, Volumes: set})
	for width := 60; width < 200; width += 20 {
		text := Overview(o, Style{Width: width, Now: now})
		if n := strings.Count(text, "\n"); n > 50 || strings.ContainsRune(text, '\x1b') {
			t.Errorf("width %d: %d lines:\n%s", width, n, text)
		}
		for line := range strings.Lines(text) {
			if n := columnsOf(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
	}
	if n := strings.Count(WrongLines(o.Wrong, Style{}), "\n"); n != len(o.Wrong) || n < 60 {
		t.Errorf("%d lines for %d items", n, len(o.Wrong))
	}
}
