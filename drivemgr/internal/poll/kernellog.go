package poll

import (
	"maps"
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
	if l.Overflow {
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
			t.Kernlog.Add(kind, kernellog.Error{At: l.At, Sector: sector, Placed: placed, Wrote: wrote, Left: kind == kernellog.Offline || l.At.Before(t.PresentSince)}, l)
			if now := m.State.Machine.Now(); !t.NextProof.After(now) {
				t.NextProof = now.Add(kernellog.ProofSoon)
			}
			t.FSErrorLogged = t.FSErrorLogged || kind == kernellog.Filesystem
		}
	}
	if !known && wholeDisk.MatchString(dev) {
		m.unlisted = append(m.unlisted[max(0, len(m.unlisted)+1-mostUnlisted):], l)
	}
}

const (
	// unlistedTime is how long a line about a disk that is not listed waits for the listing that shows the disk. A disk is listed
	// within seconds of its uevent, which the kernel sends after it has read the partition table: a disk that is bad there fails before.
	unlistedTime = time.Minute
	mostUnlisted = 256
)

// wholeDisk matches the name of a disk. Several disks can have a port, an address, a controller or a device above them one after the other;
// the kernel gives the name of a disk to no other one while the first one is open.
var wholeDisk = regexp.MustCompile(`^([shv]d[a-z]+|nvme\d+n\d+|mmcblk\d+|pmem\d+)$`)

// attached matches the line that a driver logs before the kernel reads the partition table of a new disk (drivers/scsi/sd.c,
// sd_read_capacity; drivers/block/virtio_blk.c, virtblk_update_capacity). It comes also when a disk has another size.
var attached = regexp.MustCompile(`\[(\w+)\] \d+ \d+-byte logical blocks`)

// noteAttached notes that a name which a listed drive has is maybe another disk's from a line on: that drive was pulled, and the next
// listing shows the other one.
func (m *Poller) noteAttached(l host.LogLine) {
	is := attached.FindStringSubmatch(l.Text)
	if is == nil {
		return
	}
	for _, t := range m.State.Drives {
		if t.Present && NamesDrive(is[1], &t.Drive) {
			if m.attachedAt == nil {
				m.attachedAt = map[string]uint64{}
			}
			m.attachedAt[is[1]] = m.State.NextMoment()
		}
	}
}

// inDoubt reports whether a disk was attached under a name, or under that of the disk of a partition, since the last listing.
func (m *Poller) inDoubt(dev string) bool {
	for name := range m.attachedAt {
		if part, ok := strings.CutPrefix(dev, name); ok && strings.Trim(part, "p0123456789") == "" {
			return true
		}
	}
	return false
}

// logDay is how long the lines of the kernel log count.
const logDay = 24 * time.Hour

// LogProblem returns what is missing in the counts of the kernel log, "" if nothing is.
func (m *Poller) LogProblem() string {
	if m.logLost.IsZero() || m.State.Machine.Now().Sub(m.logLost) > logDay {
		return ""
	}
	return "kernel log: lines were lost before " + m.logLost.UTC().Format(time.RFC3339) + ": drivebay may not know of I/O errors of that time"
}

// AddUnlisted adds the lines about disks that were not listed when the lines came. began is the moment at which the listing began.
func (m *Poller) AddUnlisted(began uint64) {
	lines, held, now := m.unlisted, m.held, m.State.Machine.Now()
	m.unlisted, m.held = nil, nil
	maps.DeleteFunc(m.attachedAt, func(_ string, at uint64) bool { return at < began })
	for _, l := range held {
		m.AddLogLine(l)
	}
	for _, l := range lines {
		if now.Sub(l.At) <= unlistedTime {
			m.AddLogLine(l)
		}
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
