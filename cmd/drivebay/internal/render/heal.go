package render

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
)

// Healed describes what was done, or is to do, for each repair.
func Healed(v *drivebay.Volume, r drivebay.HealReport) string {
	if len(r.Steps) == 0 && len(r.Remaining) == 0 {
		return CalledVolume(v) + ": nothing to repair\n"
	}
	var b strings.Builder
	if len(r.Steps) == 0 {
		fmt.Fprintf(&b, "%s: no repair applies\n%s", CalledVolume(v), remaining(r))
		return b.String()
	}
	b.WriteString(CalledVolume(v) + ":\n")
	for _, s := range r.Steps {
		word, then := "done", s.Done
		switch {
		case s.Failed != "":
			word, then = "not done", s.Failed
		case r.DryRun:
			word = "to do"
		}
		fmt.Fprintf(&b, "  %-8s  %s\n            why: %s\n", word, s.Repair, Clean(s.Why))
		if then != "" {
			fmt.Fprintf(&b, "            %s\n", Clean(then))
		}
	}
	return b.String() + remaining(r)
}

// remaining lists the findings that no repair ends.
func remaining(r drivebay.HealReport) string {
	var b strings.Builder
	for _, f := range r.Remaining {
		fmt.Fprintf(&b, "  remains   %v %s\n            %s\n", f.Severity, f.Reason, Clean(f.Message))
	}
	return b.String()
}
