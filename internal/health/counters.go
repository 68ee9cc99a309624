package health

import (
	"math"
	"time"

	"github.com/drivebay/drivebay"
)

// Names of the counters in the history, beside those of counted.
const (
	keyPercentUsed = "percentUsed"
	keyWritten     = "bytesWritten"
	keyErrorLog    = "ata.errorLog"
	keyNVMeMedia   = "nvme.mediaErrors"
	keyGrown       = "scsi.grownDefects"
	keyUncorrected = "scsi.uncorrected"
	keyDefects     = "scsi.pendingDefects"
	keyIOErrors    = "kernel.ioErrors"
	keyIOTimeouts  = "kernel.ioTimeouts"
)

// Counters returns what the history keeps of one look. Either part may be nil.
func Counters(ev *drivebay.Evidence, k *drivebay.Kernel) map[string]uint64 {
	l := newLook(Input{Evidence: ev, Kernel: k}, Thresholds{})
	return l.counters
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
	put(keyWritten, ev.BytesWritten)
	if ev.PercentUsed != nil && *ev.PercentUsed >= 0 {
		out[keyPercentUsed] = uint64(*ev.PercentUsed)
	}
	if ev.ATA != nil {
		put(keyErrorLog, ev.ATA.ErrorCount)
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

// uncorrected adds up reads, writes and verifies.
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
	dense    = day             // as far back as samples are kept close together
	step     = 5 * time.Minute // how close
	keepDays = 400 * day       // as far back as there is one a day
	newest   = 2               // looks that are kept however close: rules ask for two in a row
)

// Thin bounds a history: the first sample of every five minutes for a day, the
// first of every day for 400 days, and always the two newest. About 700 at most.
func Thin(history []drivebay.Sample, now time.Time) []drivebay.Sample {
	var out []drivebay.Sample
	var last time.Time
	for i, s := range history {
		age := now.Sub(s.At)
		if age > keepDays {
			continue
		}
		slot := s.At.Truncate(step)
		if age > dense {
			slot = s.At.Truncate(day)
		}
		if len(out) > 0 && i < len(history)-newest && !slot.After(last) {
			continue
		}
		out = append(out, s)
		last = slot
	}
	return out
}
