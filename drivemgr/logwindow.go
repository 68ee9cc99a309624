package drivemgr

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// logWindow is what the kernel log said of one drive lately.
type logWindow struct {
	sectors map[uint64]time.Time // unreadable sectors, by when they were last named
	errors  []time.Time
	resets  []time.Time
	last    string
}

const (
	logDay     = 24 * time.Hour
	maxLogKept = 1024 // a dying drive logs without end
)

// note files a line of the kernel log under the drives that it speaks of.
func (m *Manager) note(l host.LogLine) {
	dev, kind, sector, ok := ClassifyLog(l.Text)
	if !ok {
		return
	}
	for _, t := range m.drives {
		if t.present && speaksOf(dev, &t.drive) {
			t.kernlog.add(kind, sector, l)
			t.fsSpoke = t.fsSpoke || kind == LogFilesystem
		}
	}
}

// speaksOf says whether a name in the kernel log is the drive, something on it,
// or something on the way to it: a controller ("nvme0"), a port ("ata3").
func speaksOf(dev string, d *drivebay.Drive) bool {
	return dev == d.Name ||
		slices.ContainsFunc(d.Paths, func(p drivebay.Path) bool {
			return p.Name == dev || p.Address == dev || strings.Contains(p.SysPath+"/", "/"+dev+"/")
		}) ||
		slices.ContainsFunc(d.Uses, func(u drivebay.Use) bool { return u.Device == dev })
}

func (w *logWindow) add(kind LogKind, sector uint64, l host.LogLine) {
	w.last = l.Text
	switch kind {
	case LogMedium:
		if w.sectors == nil {
			w.sectors = map[uint64]time.Time{}
		}
		if len(w.sectors) < maxLogKept {
			w.sectors[sector] = l.At
		}
	case LogReset, LogTimeout:
		w.resets = append(w.resets, l.At)
	default:
		w.errors = append(w.errors, l.At)
	}
	w.resets, w.errors = lastOf(w.resets), lastOf(w.errors)
}

// leaving is how long before the kernel had a drive no more its errors were those of
// its going: what was under way when it was pulled failed for no other reason (lab:
// "device offline error" and a lost write within the same second). Its absence is told
// anyway, and bad sectors stay bad.
const leaving = 5 * time.Second

// left lets go of the errors of a drive that went.
func (w *logWindow) left(now time.Time) {
	w.errors = slices.DeleteFunc(w.errors, func(at time.Time) bool { return now.Sub(at) <= leaving })
}

func lastOf(times []time.Time) []time.Time { return times[max(0, len(times)-maxLogKept):] }

// count writes what is still recent into k and lets go of the rest.
func (w *logWindow) count(k *drivebay.Kernel, now time.Time) {
	for s, at := range w.sectors {
		if now.Sub(at) > logDay {
			delete(w.sectors, s)
		}
	}
	since := func(times []time.Time, d time.Duration) []time.Time {
		return slices.DeleteFunc(times, func(at time.Time) bool { return now.Sub(at) > d })
	}
	w.errors, w.resets = since(w.errors, logDay), since(w.resets, time.Hour)
	k.MediaErrors24h, k.OtherErrors24h, k.Resets1h = uint64(len(w.sectors)), uint64(len(w.errors)), uint64(len(w.resets))
	if len(w.sectors)+len(w.errors)+len(w.resets) > 0 {
		k.LastLog = w.last
	}
}

// heed says whether a uevent asks for a new listing, and marks the drives whose
// bytes it says have changed.
func (m *Manager) heed(e host.Uevent) bool {
	if e.Overflow {
		return true
	}
	switch e.Subsystem {
	case "block":
		switch disk := path.Base(path.Dir(e.DevPath)); {
		case e.Action == "change":
			m.lookAgain(e.DevName)
		case e.Env["DEVTYPE"] == "partition" && e.Action != "move": // it has come or gone: so has a line of the table
			m.lookAgain(disk)
		}
		return true
	case "nvme", "scsi", "scsi_disk", "enclosure", "pci":
		return e.Action != "change"
	}
	return false
}

// betweenLooks bounds how often uevents can make a drive be read: a storm of
// them must not become a storm of commands.
const betweenLooks = 10 * time.Second

// lookAgain has the drive that a changed device belongs to read again.
func (m *Manager) lookAgain(dev string) {
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
