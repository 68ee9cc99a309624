package poll

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/kernellog"
	"github.com/drivebay/drivebay/drivemgr/internal/policy"
	"github.com/drivebay/drivebay/internal/host"
)

// AddLogLine adds a line of the kernel log to the drives that it concerns.
func (m *Poller) AddLogLine(l host.LogLine) {
	if l.Overflow || kernellog.Suppressed(l.Text) {
		m.logLost = policy.Later(m.logLost, l.At)
	}
	m.noteAttached(l)
	dev, kind, sector, ok := kernellog.Classify(l.Text)
	if !ok {
		return
	}
	if m.inDoubt(dev) {
		m.held = append(m.held[max(0, len(m.held)+1-mostUnlisted):], l)
		return
	}
	known := false // also of a drive that was pulled: requests to it fail later than that
	for _, t := range m.State.Drives {
		is := NamesDrive(dev, &t.Drive)
		known = known || is
		if t.Present && is && !namesAnother(l.Text, &t.Drive) {
			placed, wrote := kernellog.PlaceIn(l.Text, dev, &t.Drive)
			left := kind == kernellog.Offline || l.At.Before(t.PresentSince)
			t.Kernlog.Add(kind, kernellog.Error{At: l.At, Sector: sector, Placed: placed, Wrote: wrote, Left: left}, l)
			if now := m.State.Machine.Now(); !left && !t.NextProof.After(now) { // what is of its absence is read at once
				t.NextProof = now.Add(kernellog.ProofSoon)
			}
			t.FSErrorLogged = t.FSErrorLogged || kind == kernellog.Filesystem || kind == kernellog.Corruption
		}
	}
	if !known && m.waitsForListing(dev) {
		m.unlisted = append(m.unlisted[max(0, len(m.unlisted)+1-mostUnlisted):], l)
	}
}

// NamesDrive reports whether a name in the kernel log is the drive, a device on it, or a
// device above it: a controller ("nvme0"), a port ("ata3").
func NamesDrive(dev string, d *drivebay.Drive) bool {
	return dev == d.Name ||
		slices.ContainsFunc(d.Paths, func(p drivebay.Path) bool {
			return p.Name == dev || p.Address == dev || strings.Contains(p.SysPath+"/", "/"+dev+"/")
		}) ||
		slices.ContainsFunc(d.Uses, func(u drivebay.Use) bool { return u.Device == dev })
}

// namesAnother reports whether a line has the drive's address but names the disk that had
// it before: requests of a process that still has the old disk open keep failing.
func namesAnother(line string, d *drivebay.Drive) bool {
	m := addressed.FindStringSubmatch(line)
	return m != nil && m[1] != d.Name && !slices.ContainsFunc(d.Paths, func(p drivebay.Path) bool { return p.Name == m[1] })
}

var addressed = regexp.MustCompile(`^sd \d+:\d+:\d+:\d+: \[(\w+)\] `)

// HandleUevent reports whether a uevent requires a new listing, and schedules a reading of drives
// whose content it changes.
func (m *Poller) HandleUevent(e host.Uevent) bool {
	if e.Overflow {
		return true
	}
	switch e.Subsystem {
	case "block":
		switch disk := path.Base(path.Dir(e.DevPath)); {
		case e.Action == "change":
			m.scheduleReread(e.DevName)
		case e.Env["DEVTYPE"] == "partition" && e.Action != "move": // a partition came or went: the partition table changed
			m.scheduleReread(disk)
		}
		return true
	case "nvme", "scsi", "scsi_disk", "enclosure", "pci":
		return e.Action != "change"
	}
	return false
}

// minRereadInterval limits how often uevents can cause a reading: a storm of uevents must not
// become a storm of commands.
const minRereadInterval = 10 * time.Second

// scheduleReread schedules a reading of the content of the drive of a changed device.
func (m *Poller) scheduleReread(dev string) {
	now := m.State.Machine.Now()
	for _, t := range m.State.Drives {
		if t.Present && NamesDrive(dev, &t.Drive) {
			t.Fresh = true
			if soonest := policy.Later(now, t.ReadingBegan.Add(minRereadInterval)); t.NextReading.IsZero() || t.NextReading.After(soonest) {
				t.NextReading = soonest
			}
		}
	}
}
