package drivemgr

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// logWindow holds the recent lines of the kernel log about one drive.
type logWindow struct {
	sectors map[uint64]logError // medium errors by sector, the newest of each
	errors  []logError
	resets  []time.Time
	last    string
	number  uint64 // of the newest error
}

const (
	logDay     = 24 * time.Hour
	maxLogKept = 1024 // a dying drive logs without end
)

// addLogLine adds a line of the kernel log to the drives that it concerns.
func (m *pollT) addLogLine(l host.LogLine) {
	dev, kind, sector, ok := ClassifyLog(l.Text)
	if !ok {
		return
	}
	for _, t := range m.drives {
		if t.present && speaksOf(dev, &t.drive) && !namesAnother(l.Text, &t.drive) {
			placed, wrote := placeIn(l.Text, dev, &t.drive)
			t.kernlog.add(kind, logError{at: l.At, sector: sector, placed: placed, wrote: wrote, left: kind == LogOffline || l.At.Before(t.came)}, l)
			if now := m.machine.Now(); !t.nextProof.After(now) {
				t.nextProof = now.Add(proofSoon)
			}
			t.fsSpoke = t.fsSpoke || kind == LogFilesystem
		}
	}
}

// speaksOf reports whether a name in the kernel log is the drive, a device on it, or a
// device above it: a controller ("nvme0"), a port ("ata3").
func speaksOf(dev string, d *drivebay.Drive) bool {
	return dev == d.Name ||
		slices.ContainsFunc(d.Paths, func(p drivebay.Path) bool {
			return p.Name == dev || p.Address == dev || strings.Contains(p.SysPath+"/", "/"+dev+"/")
		}) ||
		slices.ContainsFunc(d.Uses, func(u drivebay.Use) bool { return u.Device == dev })
}

// namesAnother reports whether a line has the drive's address but names the disk that had
// it before: a process that still has the old disk open goes on failing.
func namesAnother(line string, d *drivebay.Drive) bool {
	m := addressed.FindStringSubmatch(line)
	return m != nil && m[1] != d.Name && !slices.ContainsFunc(d.Paths, func(p drivebay.Path) bool { return p.Name == m[1] })
}

var addressed = regexp.MustCompile(`^sd \d+:\d+:\d+:\d+: \[(\w+)\] `)

func (w *logWindow) add(kind LogKind, e logError, l host.LogLine) {
	w.last = l.Text
	w.number++
	e.number = w.number
	switch kind {
	case LogMedium:
		if w.sectors == nil {
			w.sectors = map[uint64]logError{}
		}
		e.left = false // the drive answered
		if _, known := w.sectors[e.sector]; known || len(w.sectors) < maxLogKept {
			w.sectors[e.sector] = e
		}
	case LogReset, LogTimeout:
		w.resets = append(w.resets, l.At)
	default:
		w.errors = append(w.errors, e)
	}
	w.resets, w.errors = lastOf(w.resets), lastOf(w.errors)
}

func lastOf[T any](list []T) []T { return list[max(0, len(list)-maxLogKept):] }

// count writes the recent counts into k and drops what is too old.
func (w *logWindow) count(k *drivebay.Kernel, now time.Time) {
	maps.DeleteFunc(w.sectors, func(_ uint64, e logError) bool { return now.Sub(e.at) > logDay })
	w.errors = slices.DeleteFunc(w.errors, func(e logError) bool { return now.Sub(e.at) > logDay })
	w.resets = slices.DeleteFunc(w.resets, func(at time.Time) bool { return now.Sub(at) > time.Hour })
	k.MediaErrors24h, k.OtherErrors24h, k.Resets1h = uint64(len(w.sectors)), uint64(len(w.errors)), uint64(len(w.resets))
	k.UnresolvedErrors = uint64(len(w.unresolved()))
	for s, e := range w.sectors {
		if e.placed && !e.proved {
			k.BadSectors = append(k.BadSectors, s)
		}
	}
	slices.Sort(k.BadSectors)
	if len(w.sectors)+len(w.errors)+len(w.resets) > 0 {
		k.LastLog = w.last
	}
}

// handleUevent reports whether a uevent requires a new listing, and schedules a look at drives
// whose content it changes.
func (m *pollT) handleUevent(e host.Uevent) bool {
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

// betweenLooks limits how often uevents can cause a look: a storm of uevents must not
// become a storm of commands.
const betweenLooks = 10 * time.Second

// scheduleReread schedules a look that reads the content of the drive of a changed device.
func (m *pollT) scheduleReread(dev string) {
	now := m.machine.Now()
	for _, t := range m.drives {
		if t.present && speaksOf(dev, &t.drive) {
			t.fresh = true
			if soonest := later(now, t.lookedAt.Add(betweenLooks)); t.nextLook.IsZero() || t.nextLook.After(soonest) {
				t.nextLook = soonest
			}
		}
	}
}
