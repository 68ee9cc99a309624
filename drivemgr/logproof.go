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

// An error that the kernel logged stands for a day, or until its cause is proved gone:
//
//   - An error with a place, of a request that only read, ends when that place is read
//     past the memory of the kernel. A request that was to write proves nothing by that.
//   - Errors of a drive that left, or that the kernel gave up, end when it is back and
//     all places of its errors and both its ends were read.
//
// A bad sector ends by its place alone, whether the drive left or not.

// leaving is how long before the kernel had a drive no more its errors can be those of
// its going. Requests that are under way when a drive is pulled fail at once, or when the
// error handling of SCSI has given them up: 30 s for each of up to 6 tries
// (drivers/scsi/sd.h, SD_TIMEOUT, SD_MAX_RETRIES), then resets.
const leaving = 5 * time.Minute

const (
	// proofSpan is the longest request. The log has the sector at which a request begins,
	// and where the drive does not say more, the fault is anywhere in the request
	// (block/blk-settings.c: max_sectors_kb is 1280, and 4096 since Linux 6.14).
	proofSpan   = 4 << 20
	proofChunk  = 256 << 10
	proofEnds   = 64 << 10
	proofMost   = 128 << 20 // read in one look
	proofFaults = 3         // reads that fail in one look: each can take the drive seconds
	// proofSoon is when a place is read after its error, and proofAgain when it is read
	// again after a proof that failed: later each time, up to proofRarest.
	proofSoon   = time.Minute
	proofAgain  = 10 * time.Minute
	proofRarest = 6 * time.Hour
)

// logError is one error of a drive in the kernel log.
type logError struct {
	at     time.Time
	number uint64 // grows with each line
	sector uint64
	placed bool // sector is one of the drive
	wrote  bool // the request was not a read, or it is not known what it was
	left   bool // the drive left shortly after, or the kernel gave it up
	proved bool // its cause is gone
}

// provable says whether reading can end an error.
func (e *logError) provable() bool { return !e.proved && (e.left || e.placed && !e.wrote) }

// placeIn reads from a line whether its sector is one of the drive, and what was asked
// for there: sectors of partitions and mapped devices are counted by themselves.
func placeIn(line, dev string, d *drivebay.Drive) (placed, wrote bool) {
	own := dev == d.Name || slices.ContainsFunc(d.Paths, func(p drivebay.Path) bool { return p.Name == dev })
	return own && strings.Contains(line, ", sector "), !strings.Contains(line, "(READ)")
}

// left marks the errors of a drive that has just gone, or is given up.
func (w *logWindow) left(now time.Time) {
	for i := range w.errors {
		e := &w.errors[i]
		e.left = e.left || now.Sub(e.at) <= leaving
	}
}

// unresolved are the errors whose cause is not proved gone.
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
	places []uint64 // where the requests began, in bytes, sorted
	ends   bool     // the drive had left: its ends are read as well
	upTo   uint64   // the number of the newest error that it is about
}

// proofOf is nil where no error can be ended by reading.
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

// proved is what a proof brought.
type proved struct {
	places map[uint64]bool // in bytes, that were read to the end of the longest request
	all    bool            // everything was
}

// read reads the places. What fails, or what there was no time for, is not proved.
func (p *proof) read(ctx context.Context, r host.Drive, d *drivebay.Drive) proved {
	out := proved{places: map[uint64]bool{}, all: true}
	block := uint64(max(d.LogicalBlock, 512))
	size := d.Size / block * block
	var bad []uint64 // chunks that could not be read, by their start
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

// readMedium reads a range of a drive, and says how much of it could be read.
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

// resolve ends the errors that a proof is about and has proved. Those of a drive that left
// are forgotten: they say nothing of the drive. The others stay in its history of a day.
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

// proofDue says whether errors of a drive are to be proved gone now.
func (t *tracked) proofDue(now time.Time) bool {
	k := t.drive.Kernel
	return t.present && !t.nextProof.After(now) && k != nil && k.Frozen == 0 && !k.GivenUp() && t.kernlog.proofOf() != nil
}

// takeProof takes what a look has proved, and says when the next proof is due.
func (t *tracked) takeProof(r lookResult, now time.Time) {
	if r.proof == nil || r.err != nil && errors.Is(r.err, errAnother) {
		return
	}
	if r.proved == nil { // the drive sleeps, or does not answer
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
