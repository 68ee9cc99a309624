package render

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
)

// Event returns one event in one line.
func Event(e drivebay.Event, s Style) string {
	change := ""
	if e.From != "" || e.To != "" {
		change = "  " + dash(e.From) + " -> " + dash(e.To)
	}
	return fmt.Sprintf("%s  %s  %s%s  %s\n", e.At.UTC().Format("2006-01-02 15:04:05Z"),
		s.paint(bold, fmt.Sprintf("%-16s", Clean(string(e.Kind)))), dash(Clean(cmp.Or(e.Volume, e.Drive))), Clean(change), Clean(e.Cause))
}

// Events returns events in the order given, one a line.
func Events(list []drivebay.Event, s Style) string {
	var out strings.Builder
	for _, e := range list {
		out.WriteString(Event(e, s))
	}
	return out.String()
}
