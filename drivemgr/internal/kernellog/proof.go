package kernellog

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// An error that the kernel logged counts for a day, or until its cause is proved gone:
//
//   - An error of a read with a known sector ends when that sector is read from the
//     medium, not from the page cache. For a write that proves nothing.
//   - Errors of a drive that left, or that the kernel gave up, end when the drive is back
//     and the sectors of all its errors and both its ends were read.
//
// A bad sector ends only when it is read, whether the drive left or not.

// leaving is how long before a drive vanished its errors can come from that. Requests under
// way when a drive is pulled fail at once, or when SCSI error handling has given them up:
// 30 s for each of up to 6 tries (drivers/scsi/sd.h, SD_TIMEOUT, SD_MAX_RETRIES), then
// resets.
const leaving = 5 * time.Minute

const (
	// proofSpan is the longest request. The log has the first sector of a request; where the
	// drive does not report more, the fault is anywhere in the request
	// (block/blk-settings.c: max_sectors_kb is 1280, and 4096 since Linux 6.14).
	proofSpan   = 4 << 20
	proofChunk  = 256 << 10
	proofEnds   = 64 << 10
	proofMost   = 128 << 20 // bytes read in one reading
	ProofFaults = 3         // failed reads in one reading: each can take seconds
	// proofSoon is how long after its error a sector is read, and proofAgain how long after
	// a failed proof: doubled each time, up to proofRarest.
	ProofSoon   = time.Minute
	ProofAgain  = 10 * time.Minute
	ProofRarest = 6 * time.Hour
)

// Error is one error of a drive in the kernel log.
type Error struct {
	At     time.Time
	number uint64 // grows with each error
	Sector uint64
	Placed bool // sector is of the whole drive
	Wrote  bool // the request was not a read, or is unknown
	Left   bool // the drive vanished shortly after, or the kernel gave it up
	proved bool // its cause is gone
	failed bool // a proof did not show that
}

// provable reports whether reading can end an error.
func (e *Error) provable() bool { return !e.proved && (e.Left || e.Placed && !e.Wrote) }

// PlaceIn reports whether the sector of a line counts from the start of the drive, and
// whether the request was no read. Sectors of partitions and mapped devices count otherwise.
func PlaceIn(line, dev string, d *drivebay.Drive) (placed, wrote bool) {
	own := dev == d.Name || slices.ContainsFunc(d.Paths, func(p drivebay.Path) bool { return p.Name == dev })
	return own && strings.Contains(line, ", sector "), !strings.Contains(line, "(READ)")
}

// MarkLeft marks the recent errors of a drive that just vanished, or that the kernel gave up.
func (w *Window) MarkLeft(now time.Time) {
	for i := range w.Errors {
		e := &w.Errors[i]
		if !e.Left && now.Sub(e.At) <= leaving {
			e.Left = true
			w.marks++
		}
	}
}

// unresolved returns the errors whose cause is not proved gone.
func (w *Window) unresolved() []Error {
	var out []Error
	for _, e := range w.Errors {
		if !e.proved {
			out = append(out, e)
		}
	}
	for _, e := range w.sectors {
		if !e.proved {
			out = append(out, e)
		}
	}
	return out
}

// Proof lists the sectors that a reading reads to end errors.
type Proof struct {
	places []uint64 // first bytes of the requests, sorted from the one on at which the last proof had to end
	ends   bool     // the drive had left: both its ends are read as well
	upTo   uint64   // number of the newest error that it covers
}

// ProofOf returns the reads that can end errors; nil without such reads.
func (w *Window) ProofOf() *Proof {
	p := &Proof{upTo: w.number}
	some := false
	for _, e := range w.unresolved() {
		if !e.provable() {
			continue
		}
		some, p.ends = true, p.ends || e.Left
		if e.Placed {
			p.places = append(p.places, e.Sector*512)
		}
	}
	if !some {
		return nil
	}
	slices.Sort(p.places)
	p.places = slices.Compact(p.places)
	from, _ := slices.BinarySearch(p.places, w.turn)
	p.places = slices.Concat(p.places[from:], p.places[:from])
	return p
}

// Proved is the result of a proof.
type Proved struct {
	places map[uint64]bool // first bytes of the requests that were read in full
	All    bool            // everything was read
	next   uint64          // the first place that was not tried because of the limits; 0: none
}

// Read reads the places. A place that fails, or that exceeds the limits, is not proved.
func (p *Proof) Read(ctx context.Context, r host.OpenDrive, d *drivebay.Drive) Proved {
	out := Proved{places: map[uint64]bool{}, All: true}
	block := uint64(max(d.LogicalBlock, 512))
	size := d.Size / block * block
	var bad []uint64 // starts of chunks that could not be read
	var done, sum uint64
	for i, at := range p.places {
		if i > 0 && at < p.places[i-1] {
			done = 0
		}
		from, to := max(at/block*block, done), min((at+proofSpan)/block*block, size)
		if slices.ContainsFunc(bad, func(x uint64) bool { return at < x+proofChunk && x < to }) || at >= size || len(bad) >= ProofFaults || sum > proofMost {
			if out.All = false; out.next == 0 && (len(bad) >= ProofFaults || sum > proofMost) {
				out.next = at
			}
			continue
		}
		n, err := readMedium(ctx, r, from, max(from, to))
		done, sum = from+n, sum+n
		if err != nil {
			bad, out.All = append(bad, done), false
			continue
		}
		out.places[at] = true
	}
	if p.ends && out.All {
		for _, from := range []uint64{0, size - min(size, proofEnds)} {
			_, err := readMedium(ctx, r, from, min(from+proofEnds, size))
			out.All = out.All && err == nil
		}
	}
	return out
}

// readMedium reads a range of a drive, and returns how many bytes could be read.
func readMedium(ctx context.Context, r host.OpenDrive, from, to uint64) (uint64, error) {
	b := make([]byte, proofChunk)
	for at := from; at < to; at += proofChunk {
		if err := ctx.Err(); err != nil {
			return at - from, err
		}
		want := int(min(proofChunk, to-at))
		if n, err := r.ReadMedium(b[:want], int64(at)); n < want {
			return at - from, cmp.Or(err, io.ErrUnexpectedEOF)
		}
	}
	return to - from, nil
}

// Resolve ends the errors whose cause a proof has shown to be gone. It drops the errors that occurred
// because the drive left, which are not faults of the drive. The others stay in the counts of the day.
func (w *Window) Resolve(p *Proof, got Proved) {
	ends := func(e *Error) bool {
		return e.number <= p.upTo && e.provable() && (got.places[e.Sector*512] && e.Placed && !e.Wrote || e.Left && got.All)
	}
	w.turn = got.next
	w.marks++
	for i := range w.Errors {
		e := &w.Errors[i]
		e.proved = e.proved || ends(e)
		e.failed = e.failed || e.number <= p.upTo && !e.proved
	}
	w.Errors = slices.DeleteFunc(w.Errors, func(e Error) bool { return e.proved && e.Left })
	for s, e := range w.sectors {
		if ends(&e) {
			e.proved = true
			w.sectors[s] = e
		}
	}
}
