package watch

import (
	"context"
	"errors"
	"path"
	"regexp"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounts"
)

// takeProbe records the result of a probe. It drops the result if the probed filesystem is gone by now:
// another filesystem has answered then.
func (e *Watcher) takeProbe(ctx context.Context, v *drivebay.Volume, staged *StagedFS, g *mounts.IOCounters, usage host.FSUsage, read bool, err error) {
	// The same size again means the same filesystem: no mount table is read for that.
	last := g.Read()
	there := err == nil && last.Measured && last.Usage.Bytes == usage.Bytes
	if !there {
		if t, err := e.MountTable.TableAfter(ctx, e.Machine.Now()); err == nil {
			_, there = staged.in(t)
		}
	}
	e.Inventory.ViewMu.Lock()
	for _, id := range v.Location.Drives {
		if seen := e.seenDrives[id]; seen != nil && seen.drive != nil {
			seen.ours = e.completed(seen.drive)
		}
	}
	e.Inventory.ViewMu.Unlock()
	news := true
	g.Write(func(m *mounts.ProbeResult) {
		m.Probing = false
		switch {
		case !there || errors.Is(err, drivebay.ErrTimeout) || errors.Is(err, context.Canceled):
		case err != nil:
			m.ReadError = err.Error()
		default:
			healed := read && m.ReadError != ""
			news = healed || !m.Measured
			m.Measured, m.Usage = true, usage
			if healed {
				m.ReadError = ""
			}
		}
	})
	if news { // other numbers can wait for the next tick
		e.Inventory.ChangedNow()
	}
}

// lastWords are errors of a filesystem that the kernel reports only in its log: that an XFS has shut
// itself down (fs/xfs/xfs_fsops.c, xfs_do_force_shutdown), and that an ext4 accepts no writes any more.
// For that ext4 the mount table once showed "ro", and shows "emergency_ro" since Linux 6.15. In between,
// and in the stable series that took over "ext4: don't set SB_RDONLY after filesystem errors", it shows
// rw, and a remount succeeds and changes nothing (tried, Debian's 6.1.0-56). A daemon that starts later
// learns it from the next write that fails. An ext4 notices only at the next change by a program that its journal is aborted
// (fs/jbd2/journal.c), and it is shut down by a program, or because its device goes (fs/ext4/ioctl.c, ext4_force_shutdown).
// ext4 counts the errors that it finds (fs/ext4/sysfs.c). Of XFS (fs/xfs/xfs_error.c) and btrfs (fs/btrfs/disk-io.c, inode.c,
// tree-checker.c), the lines are counted that say what they have read is not what was written (tried, Linux 6.18). Of a tree block btrfs
// compares the place, filesystem and level before the checksum, and reports only the first of them that is wrong (disk-io.c,
// btrfs_validate_extent_buffer): a block that reads as zeros is a "bad tree block start".
var lastWords = []struct {
	kind  string
	says  *regexp.Regexp
	learn func(*mounts.ProbeResult, *drivebay.VolumeRecord, time.Time)
}{
	{"XFS", regexp.MustCompile("Shutting down filesystem|Filesystem has been shut down"), func(m *mounts.ProbeResult, _ *drivebay.VolumeRecord, _ time.Time) { m.Shutdown = true }},
	{"XFS", regexp.MustCompile("^(Metadata (corruption|CRC error) detected|Corruption detected)"), corrupted},
	{"BTRFS", regexp.MustCompile("checksum verify failed|csum failed|unable to fixup|(parent transid|level) verify failed|^corrupt (leaf|node)|^bad (tree block (start|level)|fsid on)|^tree first key mismatch"), corrupted},
	{"EXT4-fs", regexp.MustCompile("Remounting filesystem read-only"), func(m *mounts.ProbeResult, _ *drivebay.VolumeRecord, _ time.Time) { m.GaveUp = true }},
	{"EXT4-fs", regexp.MustCompile("^Aborting journal"), func(m *mounts.ProbeResult, _ *drivebay.VolumeRecord, _ time.Time) { m.GaveUp = true }},
	{"EXT4-fs", regexp.MustCompile("^shut down requested"), func(m *mounts.ProbeResult, _ *drivebay.VolumeRecord, _ time.Time) { m.Shutdown = true }},
	{"EXT4-fs", regexp.MustCompile(`^ext4_end_bio:\d+: I/O error|^Delayed block allocation failed|^Detected IO errors while flushing`), lostWrite},
	{"XFS", regexp.MustCompile("^writeback error on inode|^page discard on page"), lostWrite},
}

// corrupted counts on from what the record has.
func corrupted(m *mounts.ProbeResult, r *drivebay.VolumeRecord, _ time.Time) {
	m.FSErrors = max(m.FSErrors, r.FSErrors) + 1
}

// lostWrite counts a write of the page cache that failed. What is above the drive can refuse it (a thin pool without space, DRBD without a
// disk, dm-crypt without memory), and then no line is about the drive. The filesystem counts no error and goes on: ext4 (fs/ext4/page-io.c,
// inode.c; fs/jbd2/commit.c), XFS (fs/iomap; fs/xfs/xfs_aops.c). btrfs logs it as an error of its device, which the drive has.
func lostWrite(m *mounts.ProbeResult, _ *drivebay.VolumeRecord, at time.Time) {
	if at.Sub(m.LostAt) > lostFor {
		m.LostWrites = 0
	}
	m.LostWrites, m.LostAt = m.LostWrites+1, at
}

// lostFor is how long a lost write counts, as a failed request of a drive does.
const lostFor = 24 * time.Hour

var (
	// ofFilesystem is a line about a filesystem: "XFS (dm-1): ...", "BTRFS error (device sda1 state E): ...".
	ofFilesystem = regexp.MustCompile(`^(XFS|EXT4-fs|BTRFS)[ \w]* \((?:device )?([^):]+?)(?:: state \w+)?(?: state \w+)?\): (.*)`)
	// ofJournal is a line about the journal of an ext4, which is named after its device and inode.
	ofJournal = regexp.MustCompile(`^(?:JBD2: )?(Detected IO errors while flushing file data on|Aborting journal on device) (\S+)-\d+\.?$`)
	// ofPages is a line about pages of an XFS.
	ofPages = regexp.MustCompile(`^(\S+): (writeback error on inode \d+)`)
)

// spokenOf returns the filesystem that a line of the kernel's log is about, its device and what the line says; "" for other lines.
func spokenOf(text string) (kind, dev, says string) {
	if m := ofFilesystem.FindStringSubmatch(text); m != nil {
		return m[1], m[2], m[3]
	}
	if m := ofJournal.FindStringSubmatch(text); m != nil {
		return "EXT4-fs", m[2], m[1]
	}
	if m := ofPages.FindStringSubmatch(text); m != nil {
		return "XFS", m[1], m[2]
	}
	return "", "", ""
}

// FollowKernelLog records the lastWords in a line of the kernel's log.
func (e *Watcher) FollowKernelLog(l host.LogLine) bool {
	e.Moves.FollowCopyErrors(l)
	kind, dev, says := spokenOf(l.Text)
	for _, w := range lastWords {
		if w.kind != kind || !w.says.MatchString(says) {
			continue
		}
		for _, r := range e.volumesOnDevice(path.Base(dev)) {
			e.Mounts.Counters.Of(r.Volume.ID).Write(func(m *mounts.ProbeResult) { w.learn(m, r, l.At) })
		}
		return true
	}
	return false
}

// volumesOnDevice returns the volumes whose filesystem the kernel means by the name of a device: those
// that are on it now, staged or being mounted. The name may be in the record of a volume whose drive has gone, too; that
// volume is returned only if no other has the name.
func (e *Watcher) volumesOnDevice(name string) []*drivebay.VolumeRecord {
	var now, before []*drivebay.VolumeRecord
	records, busy, _ := e.Partitions.AllAndBusy()
	for _, r := range records {
		p := mirror.StagedAt(&r.Volume)
		switch {
		case p == nil && (!busy[r.Volume.ID] || !r.Volume.HasFilesystem()), p != nil && inventory.MadeOf(*p).Name != name:
			continue
		case p != nil:
			before = append(before, r)
		}
		if d, err := e.Device.Stack(&r.Volume).State(); err == nil && d.Name == name && (p == nil || d.Num == inventory.MadeOf(*p).Num) {
			now = append(now, r)
		}
	}
	if len(now) > 0 {
		return now
	}
	return before
}
