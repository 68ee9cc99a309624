package poll

import (
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/drivebay/drivebay/drivemgr/internal/kernellog"
	"github.com/drivebay/drivebay/internal/host"
)

// Lines of the kernel log that wait for the next listing: it shows which drive they are about.

const (
	// unlistedTime is how long a line about a disk that is not listed waits for the listing that shows the disk. A disk is listed
	// within seconds of its uevent, which the kernel sends after it has read the partition table: a disk that is bad there fails before.
	unlistedTime = time.Minute
	mostUnlisted = 256
)

// wholeDisk matches the name of a disk, or of a path to one. Several disks can have a port, an address, a controller or a device above them one after the other;
// the kernel gives the name of a disk to no other one while the first one is open.
var wholeDisk = regexp.MustCompile(`^([shv]d[a-z]+|xvd[a-z]+|nvme\d+(c\d+)?n\d+|mmcblk\d+|pmem\d+)$`)

// waitsForListing reports whether the next listing can show which drive the name of a disk or partition is of: a new partition can fail before it is listed.
// The name of a partition of a drive that was pulled can be given to one of another drive: no listing shows which of the two a line is about.
func (m *Poller) waitsForListing(dev string) bool {
	if wholeDisk.MatchString(dev) {
		return true
	}
	disk := strings.TrimRight(dev, "0123456789")
	if !wholeDisk.MatchString(disk) { // "nvme0n1p"
		disk = strings.TrimSuffix(disk, "p")
	}
	if !wholeDisk.MatchString(disk) {
		return false
	}
	for _, t := range m.State.Drives {
		if !t.Present && NamesDrive(disk, &t.Drive) {
			return false
		}
	}
	return true
}

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

// LogProblem returns what is missing in the counts of the kernel log, "" if nothing is.
func (m *Poller) LogProblem() string {
	if m.logLost.IsZero() || m.State.Machine.Now().Sub(m.logLost) > kernellog.LogDay {
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
