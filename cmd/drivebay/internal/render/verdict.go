package render

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/assess"
)

// Verdict draws a verdict in one line: health, file, drive, reasons. Below it are the problems of the
// evidence and the next steps.
func Verdict(v assess.Verdict, s Style) string {
	if v.Err != nil {
		return fmt.Sprintf("%-7s  %s  %s\n", "ERROR", Clean(v.File), Clean(v.Err.Error()))
	}
	var why []string
	for _, r := range v.Reasons {
		why = append(why, r.Text)
	}
	pad := strings.Repeat(" ", max(0, len(drivebay.HealthSuspect.String())-len(v.Health.String())))
	line := fmt.Sprintf("%s%s  %s  %s  %s  %s", s.Health(v.Health), pad, Clean(v.File),
		Clean(dash(v.Model)), Clean(dash(v.Serial)), Clean(strings.Join(why, "; ")))
	for _, p := range v.Problems {
		line += "\n         problem: " + Clean(strings.TrimPrefix(p.Page+": ", ": ")+p.Text)
	}
	for i, r := range v.Reasons {
		if i == 0 || r.Advice != v.Reasons[i-1].Advice {
			line += "\n         next: " + Clean(r.Advice)
		}
	}
	return strings.TrimRight(line, " ") + "\n"
}
