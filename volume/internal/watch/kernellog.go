package watch

import (
	"context"
	"errors"
	"path"
	"regexp"

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
// learns it from the next write that fails.
// ext4 counts the errors that it finds (fs/ext4/sysfs.c). Of XFS (fs/xfs/xfs_error.c) and btrfs (fs/btrfs/disk-io.c, inode.c,
// tree-checker.c), the lines are counted that say what they have read is not what was written (tried, Linux 6.18). Of a tree block btrfs
// compares the place, filesystem and level before the checksum, and reports only the first of them that is wrong (disk-io.c,
// btrfs_validate_extent_buffer): a block that reads as zeros is a "bad tree block start".
var lastWords = []struct {
	kind  string
	says  *regexp.Regexp
	learn func(*mounts.ProbeResult, *drivebay.VolumeRecord)
}{
	{"XFS", regexp.MustCompile("Shutting down filesystem|Filesystem has been shut down"), func(m *mounts.ProbeResult, _ *drivebay.VolumeRecord) { m.Shutdown = true }},
	{"XFS", regexp.MustCompile("^(Metadata (corruption|CRC error) detected|Corruption detected)"), corrupted},
	{"BTRFS", regexp.MustCompile("checksum verify failed|csum failed|unable to fixup|(parent transid|level) verify failed|^corrupt (leaf|node)|^bad (tree block (start|level)|fsid on)|^tree first key mismatch"), corrupted},
	{"EXT4-fs", regexp.MustCompile("Remounting filesystem read-only"), func(m *mounts.ProbeResult, _ *drivebay.VolumeRecord) { m.GaveUp = true }},
}

// corrupted counts on from what the record has.
func corrupted(m *mounts.ProbeResult, r *drivebay.VolumeRecord) {
	m.FSErrors = max(m.FSErrors, r.FSErrors) + 1
}

// ofFilesystem is a line about a filesystem: "XFS (dm-1): ...", "BTRFS error (device sda1 state E): ...".
var ofFilesystem = regexp.MustCompile(`^(XFS|EXT4-fs|BTRFS)[ \w]* \((?:device )?([^):]+?)(?:: state \w+)?(?: state \w+)?\): (.*)`)

// FollowKernelLog records the lastWords in a line of the kernel's log.
func (e *Watcher) FollowKernelLog(l host.LogLine) bool {
	e.Moves.FollowCopyErrors(l)
	is := ofFilesystem.FindStringSubmatch(l.Text)
	if is == nil {
		return false
	}
	for _, w := range lastWords {
		if w.kind != is[1] || !w.says.MatchString(is[3]) {
			continue
		}
		for _, r := range e.volumesOnDevice(path.Base(is[2])) {
			e.Mounts.Counters.Of(r.Volume.ID).Write(func(m *mounts.ProbeResult) { w.learn(m, r) })
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
