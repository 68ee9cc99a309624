package health

import (
	"math"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
)

// Keys of the counters in the history, in addition to those in counted. KeyWritten grows with normal use.
const (
	keyPercentUsed = "percentUsed"
	KeyWritten     = "bytesWritten"
	keyErrorLog    = "ata.errorLog"
	keyATADefects  = "ata.pendingDefects"
	keyReported    = "ata.reportedErrors"
	keyNVMeMedia   = "nvme.mediaErrors"
	keyGrown       = "scsi.grownDefects"
	keyUncorrected = "scsi.uncorrected"
	keyDefects     = "scsi.pendingDefects"
	keyIOErrors    = "kernel.ioErrors"
	keyIOTimeouts  = "kernel.ioTimeouts"

	// Of the attributes that are counted (see counted).
	keyReallocated   = "ata.5"
	keyUncorrectable = "ata.187"
)

// Counters returns the counters that the history keeps of one reading. Either argument may be nil.
func Counters(ev *drivebay.Evidence, k *drivebay.Kernel) map[string]uint64 {
	l := newLook(Input{Evidence: ev, Kernel: k}, Thresholds{})
	return l.counters
}

// The counters that are shown as one value, whichever of them a drive has.
var (
	reallocatedKeys = []string{keyReallocated, keyGrown}
	mediaKeys       = []string{keyNVMeMedia, keyUncorrectable, keyUncorrected, keyReported}
)

// Reallocated returns the sectors that a drive has replaced by spare ones, from the counters of a reading.
func Reallocated(counters map[string]uint64) (uint64, bool) {
	key, ok := firstKey(counters, reallocatedKeys)
	return counters[key], ok
}

// MediaErrors returns how often a drive could not read its data, from the counters of a reading.
func MediaErrors(counters map[string]uint64) (uint64, bool) {
	key, ok := firstKey(counters, mediaKeys)
	return counters[key], ok
}

// firstKey returns the first of some counters that the drive has.
func firstKey(counters map[string]uint64, keys []string) (string, bool) {
	for _, key := range keys {
		if _, ok := counters[key]; ok {
			return key, true
		}
	}
	return "", false
}

func counters(ev *drivebay.Evidence, k *drivebay.Kernel, kind drivebay.Type) map[string]uint64 {
	out := map[string]uint64{}
	for key, m := range counted {
		if a := m.of(ev, kind); a != nil {
			out[key] = number(a, kind)
		}
	}
	put := func(key string, v *uint64) {
		if v != nil {
			out[key] = *v
		}
	}
	put(KeyWritten, ev.BytesWritten)
	if ev.PercentUsed != nil && *ev.PercentUsed >= 0 {
		out[keyPercentUsed] = uint64(*ev.PercentUsed)
	}
	if ev.ATA != nil {
		put(keyErrorLog, ev.ATA.ErrorCount)
		put(keyATADefects, ev.ATA.PendingDefects)
		for _, s := range ev.ATA.Statistics {
			if s.Page == 4 && s.Offset == 0x08 && s.Value >= 0 {
				out[keyReported] = uint64(s.Value)
			}
		}
	}
	if ev.NVMe != nil {
		out[keyNVMeMedia] = ev.NVMe.MediaErrors
	}
	if s := ev.SCSI; s != nil {
		put(keyGrown, s.GrownDefects)
		put(keyDefects, s.PendingDefects)
		if s.ErrorCounters != nil {
			out[keyUncorrected] = uncorrected(s)
		}
	}
	put(keyIOErrors, k.IOErrors)
	put(keyIOTimeouts, k.IOTimeouts)
	return out
}

// uncorrected returns the sum of uncorrected reads, writes and verifies.
func uncorrected(s *drivebay.SCSI) uint64 {
	var sum uint64
	for _, c := range s.ErrorCounters {
		if sum += c.Uncorrected; sum < c.Uncorrected {
			return math.MaxUint64
		}
	}
	return sum
}

const (
	dense    = day             // age up to which Thin keeps a sample of every step
	step     = 5 * time.Minute // interval of these samples
	keepDays = 400 * day       // age up to which Thin keeps one sample a day
	newest   = 2               // samples kept at any interval, because rules compare two in a row

	mostAhead = 1000 // samples of the future that are kept
)

// Thin returns a history of bounded length: the first sample of every five minutes for a day, the
// first of every day for 400 days, and always the two newest. That is about 700 samples at most.
//
// Samples of the future are of a clock that was ahead, or is behind now. They come first, so that none of
// them takes the place of a sample of today, and count again when the clock has passed them.
func Thin(history []drivebay.Sample, now time.Time) []drivebay.Sample {
	all := slices.SortedStableFunc(slices.Values(history), func(a, b drivebay.Sample) int { return a.At.Compare(b.At) })
	n := len(all)
	for n > 0 && all[n-1].At.After(now) {
		n--
	}
	out := slices.Clone(all[n:][max(0, len(all)-n-mostAhead):])
	var last time.Time
	for i, s := range all[:n] {
		age := now.Sub(s.At)
		if age > keepDays {
			continue
		}
		slot := s.At.Truncate(step)
		if age > dense {
			slot = s.At.Truncate(day)
		}
		if !last.IsZero() && i < n-newest && !slot.After(last) {
			continue
		}
		out = append(out, s)
		last = slot
	}
	return out
}
