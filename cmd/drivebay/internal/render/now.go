package render

import (
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
)

// stepText returns the first lines of an explanation.
func stepText(n overview.Step) string {
	var p pairs
	p.add("now", Clean(n.Does))
	p.add("waits for", Clean(n.Waits))
	p.add("next", Clean(n.Next))
	return p.String("") + "\n"
}

func (s Style) nowOfDrive(d *drivebay.Drive) string {
	n := overview.OfDrive(d)
	if d.Usage == drivebay.UsageReleasing && d.Leaving != nil && d.Leaving.Progress != nil {
		n.Does += "; " + s.progress(d.Leaving.Progress)
	}
	return stepText(n)
}
