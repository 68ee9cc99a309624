package watch

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// seenDrive holds what the volumes on a drive need of it.
type seenDrive struct {
	drive   *drivebay.Drive // nil: in no snapshot any more
	changed uint64          // grows with each change that a volume could show
	io      observedIO
	load    load
	// ours is how many requests had completed after the engine's last probe. All
	// later ones came from other programs.
	ours uint64
}

// gone reports whether the drive is known to be absent.
func (s *seenDrive) gone() bool {
	return s == nil || s.drive == nil || s.drive.Status == drivebay.StatusOffline
}

// load holds a drive's counters at one moment, to measure how long requests take.
type load struct {
	at       time.Time
	requests uint64
	millis   uint64
	busy     uint64
}

// How long a load is measured, and how many requests make a mean, or how long the drive was busy with fewer: a single one that
// waited for a disk to spin up must not.
const (
	loadTime     = time.Minute
	loadRequests = 16
	loadBusy     = loadTime / 2
)

// SeeDrives records a new snapshot of the drives. Counters and temperatures, which
// differ in every snapshot, are no change to a volume.
func (e *Watcher) SeeDrives(s *drivebay.Snapshot) {
	if e.seenSeq == s.Seq && e.seenDrives != nil {
		return
	}
	e.seenSeq = s.Seq
	next := make(map[string]*seenDrive, len(s.Drives))
	for i := range s.Drives {
		d := &s.Drives[i]
		seen := e.seenDrives[d.ID]
		if seen == nil {
			seen = &seenDrive{}
		}
		if seen.drive == nil || !alike(seen.drive, d) {
			e.changes++
			seen.changed = e.changes
		}
		came := seen.drive == nil || seen.drive.Status != drivebay.StatusOnline && d.Status == drivebay.StatusOnline
		if k := d.Kernel; k != nil && came {
			seen.ours = k.Completed
		}
		seen.drive = d
		seen.io.frozen, seen.io.errors, seen.io.logged = 0, 0, 0
		if k := d.Kernel; k != nil && d.Status == drivebay.StatusOnline {
			seen.io.frozen, seen.io.errors, seen.io.logged = k.Frozen, k.UnresolvedErrors, k.MediaErrors24h+k.OtherErrors24h
		}
		next[d.ID] = seen
	}
	for id, seen := range e.seenDrives {
		if next[id] == nil && seen.drive != nil {
			e.changes++
			next[id] = &seenDrive{changed: e.changes}
		}
	}
	e.seenDrives = next
}

// alike reports whether a volume shows no difference between two states of its drive.
func alike(a, b *drivebay.Drive) bool {
	return a.Status == b.Status && a.Health == b.Health && a.Usage == b.Usage && a.IdentityIssue == b.IdentityIssue && a.Copy == b.Copy && a.SizeIssue == b.SizeIssue && a.ReadOnly == b.ReadOnly && a.Content.TableDamage == b.Content.TableDamage &&
		a.Serial == b.Serial && a.Name == b.Name && a.Slot.Bay == b.Slot.Bay && a.Slot.Enclosure == b.Slot.Enclosure &&
		stateOf(a) == stateOf(b) && slices.Equal(a.Paths, b.Paths) && slices.Equal(a.Findings, b.Findings)
}

type kernelState struct {
	state  string
	noSize bool
}

func stateOf(d *drivebay.Drive) kernelState {
	if d.Kernel == nil {
		return kernelState{}
	}
	return kernelState{d.Kernel.State, d.Kernel.NoSize()}
}

// IOLoad measures how long requests of a drive take, over a minute at a time
// (Documentation/admin-guide/iostats.rst: fields 1 and 5 count reads and writes,
// 4 and 8 their milliseconds, 10 those in which there were any).
func (e *Watcher) IOLoad(id string) {
	seen, now := e.seenDrives[id], e.Machine.Now()
	if seen == nil || seen.drive == nil || now.Sub(seen.load.at) < loadTime {
		return
	}
	last, is := seen.load, e.loadOf(seen.drive)
	is.at = now
	seen.load, seen.io.await = is, last.await(is)
}

// loadOf returns the counters of a drive. On kernels before 6.4, only the paths count the requests of an NVMe drive with several
// (drivers/nvme/host/multipath.c, nvme_mpath_start_request); where the drive counts them as well, the mean is the same.
func (e *Watcher) loadOf(d *drivebay.Drive) (is load) {
	for _, name := range namesOf(d) {
		if f := e.stat(name); len(f) >= 10 {
			is.requests, is.millis, is.busy = is.requests+f[0]+f[4], is.millis+f[3]+f[7], max(is.busy, f[9])
		}
	}
	return is
}

// await returns how long requests took between two moments; 0 if there were too few to tell.
func (last load) await(is load) time.Duration {
	n := is.requests - last.requests
	switch {
	case last.at.IsZero() || is.requests <= last.requests || is.millis <= last.millis || is.busy < last.busy: // or a path was added or removed
	case n >= loadRequests || is.busy-last.busy >= uint64(loadBusy.Milliseconds()):
		return time.Duration((is.millis-last.millis)/n) * time.Millisecond
	}
	return 0
}

// namesOf returns the names of the block devices of a drive.
func namesOf(d *drivebay.Drive) []string {
	names := []string{d.Name}
	for _, p := range d.Paths {
		if p.Name != d.Name {
			names = append(names, p.Name)
		}
	}
	return names
}

// ForgetLoads drops how long requests took of drives whose load is not measured any more, because no volume on them is in use.
func (e *Watcher) ForgetLoads(measured map[string]bool) {
	for id, seen := range e.seenDrives {
		if !measured[id] {
			seen.load, seen.io.await = load{}, 0
		}
	}
}

// completed returns how many requests have completed, as the snapshot's Kernel counts
// them: reads, writes, discards and flushes, on every path to the drive.
func (e *Watcher) completed(d *drivebay.Drive) uint64 {
	var sum uint64
	for _, name := range namesOf(d) {
		f := e.stat(name)
		for _, i := range []int{0, 4, 11, 15} {
			if i < len(f) {
				sum += f[i]
			}
		}
	}
	return sum
}

// stat returns the kernel's counters of a block device.
func (e *Watcher) stat(name string) []uint64 {
	text, err := e.Machine.ReadFile("sys/class/block/" + name + "/stat")
	if err != nil {
		return nil
	}
	var out []uint64
	for _, f := range strings.Fields(string(text)) {
		n, _ := strconv.ParseUint(f, 10, 64)
		out = append(out, n)
	}
	return out
}
