package block

import (
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// Pull removes a drive, with events and log lines.
func (d *Drive) Pull() {
	d.announce("remove")
	d.logGone()
	d.unplug()
}

// Push inserts a drive, with events and log lines.
func (d *Drive) Push(rename bool) {
	d.plug(rename)
	d.logBack()
	d.announce("add")
}

// letGo returns the write function that deletes one path to a drive. The last path pulls the
// drive; on a real machine a person does that later.
func (d *Drive) letGo(path int) func(string) error {
	return func(s string) error {
		if strings.TrimSpace(s) != "1" {
			return kernel.ErrInvalid
		}
		if d.letGone == nil {
			d.letGone = map[int]bool{}
		}
		if d.letGone[path] = true; len(d.letGone) == d.Paths {
			d.letGone = nil
			d.Pull()
		}
		return nil
	}
}
