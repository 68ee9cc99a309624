package drivemgr

import (
	"cmp"
	"context"
	"errors"
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
	proofMost   = 128 << 20 // bytes read in one look
	proofFaults = 3         // failed reads in one look: each can take seconds
	// proofSoon is how long after its error a sector is read, and proofAgain how long after
	// a failed proof: doubled each time, up to proofRarest.
	proofSoon   = time.Minute
	proofAgain  = 10 * time.Minute
	proofRarest = 6 * time.Hour
)

// logError is one error of a drive in the kernel log.
type logError struct {
	at     time.Time
	number uint64 // grows with each error
	sector uint64
	placed bool // sector is of the whole drive
	wrote  bool // the request was not a read, or is unknown
	left   bool // the drive vanished shortly after, or the kernel gave it up
	proved bool // its cause is gone
}

// provable reports whether reading can end an error.
func (e *logError) provable() bool { return !e.proved && (e.left || e.placed && !e.wrote) }

// placeIn reports whether the sector of a line counts from the start of the drive, and
// whether the request was no read. Sectors of partitions and mapped devices count otherwise.
func placeIn(line, dev string, d *drivebay.Drive) (placed, wrote bool) {
	own := dev == d.Name || slices.ContainsFunc(d.Paths, func(p drivebay.Path) bool { return p.Name == dev })
	return own && strings.Contains(line, ", sector "), !strings.Contains(line, "(READ)")
}

// left marks the recent errors of a drive that just vanished, or that the kernel gave up.
func (w *logWindow) left(now time.Time) {
	for i := range w.errors {
		e := &w.errors[i]
		e.left = e.left || now.Sub(e.at) <= leaving
	}
}

// unresolved returns the errors whose cause is not proved gone.
func (w *logWindow) unresolved() []logError {
	var out []logError
	for _, e := range w.errors {
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

// proof is what a look reads to end errors.
type proof struct {
	places []uint64 // first bytes of the requests, sorted
	ends   bool     // the drive had left: both its ends are read as well
	upTo   uint64   // number of the newest error that it covers
}

// proofOf returns nil where reading can end no error.
func (w *logWindow) proofOf() *proof {
	p := &proof{upTo: w.number}
	some := false
	for _, e := range w.unresolved() {
		if !e.provable() {
			continue
		}
		some, p.ends = true, p.ends || e.left
		if e.placed {
			p.places = append(p.places, e.sector*512)
		}
	}
	if !some {
		return nil
	}
	slices.Sort(p.places)
	p.places = slices.Compact(p.places)
	return p
}

// proved is the result of a proof.
type proved struct {
	places map[uint64]bool // first bytes of the requests that were read in full
	all    bool            // everything was read
}

// read reads the places. A place that fails, or that exceeds the limits, is not proved.
func (p *proof) read(ctx context.Context, r host.Drive, d *drivebay.Drive) proved {
	out := proved{places: map[uint64]bool{}, all: true}
	block := uint64(max(d.LogicalBlock, 512))
	size := d.Size / block * block
	var bad []uint64 // starts of chunks that could not be read
	var done, sum uint64
	for _, at := range p.places {
		from, to := max(at/block*block, done), min((at+proofSpan)/block*block, size)
		if slices.ContainsFunc(bad, func(x uint64) bool { return at < x+proofChunk && x < to }) || at >= size || len(bad) >= proofFaults || sum > proofMost {
			out.all = false
			continue
		}
		n, err := readMedium(ctx, r, from, max(from, to))
		done, sum = from+n, sum+n
		if err != nil {
			bad, out.all = append(bad, done), false
			continue
		}
		out.places[at] = true
	}
	if p.ends && out.all {
		for _, from := range []uint64{0, size - min(size, proofEnds)} {
			_, err := readMedium(ctx, r, from, min(from+proofEnds, size))
			out.all = out.all && err == nil
		}
	}
	return out
}

// readMedium reads a range of a drive, and returns how many bytes could be read.
func readMedium(ctx context.Context, r host.Drive, from, to uint64) (uint64, error) {
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

// resolve ends the errors that a proof has proved gone. It forgets those of a drive that
// left, which are no fault of the drive; the others stay in the history of a day.
func (w *logWindow) resolve(p *proof, got proved) {
	ends := func(e *logError) bool {
		return e.number <= p.upTo && e.provable() && (got.places[e.sector*512] && e.placed && !e.wrote || e.left && got.all)
	}
	for i := range w.errors {
		e := &w.errors[i]
		e.proved = e.proved || ends(e)
	}
	w.errors = slices.DeleteFunc(w.errors, func(e logError) bool { return e.proved && e.left })
	for s, e := range w.sectors {
		if ends(&e) {
			e.proved = true
			w.sectors[s] = e
		}
	}
}

// proofDue reports whether a look should read now to end errors.
func (t *tracked) proofDue(now time.Time) bool {
	k := t.drive.Kernel
	return t.present && !t.nextProof.After(now) && k != nil && k.Frozen == 0 && !k.GivenUp() && t.kernlog.proofOf() != nil
}

// takeProof applies the result of a proof, and sets when the next one is due.
func (t *tracked) takeProof(r lookResult, now time.Time) {
	if r.proof == nil || r.err != nil && errors.Is(r.err, errOtherDrive) {
		return
	}
	if r.proved == nil { // the drive is in standby, or does not answer
		t.nextProof = now.Add(proofSoon)
		return
	}
	t.kernlog.resolve(r.proof, *r.proved)
	t.nextProof = now.Add(proofSoon)
	if r.proved.all {
		t.proofsFailed = 0
		return
	}
	t.nextProof = now.Add(min(proofAgain<<min(t.proofsFailed, 10), proofRarest))
	t.proofsFailed++
}
