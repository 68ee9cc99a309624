package copyaway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

const (
	copyChunk = 4 * partitions.MiB
	copySync  = 64 // chunks: at most these wait in memory to be written
	// chunkTime limits one read or write. The kernel gives a SCSI command 30 s and retries it
	// up to five times before it reports a failure (drivers/scsi/sd.h).
	chunkTime = 5 * time.Minute
	// manyFaults is how many failed pieces in a row make the copy continue in pieces of size
	// coarse: each sector that cannot be read takes seconds.
	manyFaults = 64
	coarse     = 64 << 10
)

// copying copies one partition to another, and keeps checksums of what it has read.
type copying struct {
	e        *Copier
	m        *moves.CopyMove
	src, dst *copyPiece
	size     uint64
	block    uint64
	seed     maphash.Seed
	sums     []uint64 // one a chunk
	patchy   map[uint64]bool
	lost     drivebay.Lost
	shown    bool // users read the partition as it is
	faults   int  // in a row
	began    time.Time
}

func newCopying(e *Copier, m *moves.CopyMove, src, dst *copyPiece) *copying {
	c := &copying{e: e, m: m, src: src, dst: dst, size: src.Size(), block: uint64(max(src.BlockSize(), dst.BlockSize())),
		seed: maphash.MakeSeed(), patchy: map[uint64]bool{}, began: e.Machine.Now()}
	c.lost.Drive = src.drive
	m.Total.Store(c.size)
	return c
}

// each calls do for the volume, chunk by chunk, with one buffer for all of them. A drive that does not
// answer may still fill it after do has given up: do must return an error then, which ends the pass and
// the use of the buffer.
func (c *copying) each(ctx context.Context, do func(ctx context.Context, b []byte, at uint64) error) error {
	b := make([]byte, min(copyChunk, c.size))
	for at := uint64(0); at < c.size; at += copyChunk {
		if _, err := c.e.Partitions.Drive(c.src.drive); err != nil { // what a drive that is gone cannot read is not lost
			return err
		}
		n := min(copyChunk, c.size-at)
		if err := do(ctx, b[:n], at); err != nil {
			return err
		}
		if err := c.pace(ctx, c.m.Copied.Add(n)); err != nil {
			return err
		}
	}
	return nil
}

// pace waits so that the copy stays below the rate of the configuration.
func (c *copying) pace(ctx context.Context, done uint64) error {
	if rate := c.e.Opt.CopyRate; rate > 0 {
		due := c.began.Add(time.Duration(float64(done) / float64(rate) * float64(time.Second)))
		if wait := due.Sub(c.e.Machine.Now()); wait > 0 {
			select {
			case <-c.e.Machine.After(wait):
			case <-ctx.Done():
			}
		}
	}
	return ctx.Err()
}

// copy reads everything that can be read, and writes it. The copy has zeros where the old
// partition cannot be read.
func (c *copying) copy(ctx context.Context) error {
	if c.dst.Size() < c.size {
		return fmt.Errorf("%w: the new partition has %s, the old one has %s", drivebay.ErrRefused, partitions.SizeText(c.dst.Size()), partitions.SizeText(c.size))
	}
	err := c.each(ctx, func(ctx context.Context, b []byte, at uint64) error {
		bad := c.lost.Bytes
		if err := c.gather(ctx, b, at); err != nil {
			return err
		}
		if c.lost.Bytes > bad {
			c.patchy[at] = true
		}
		c.sums = append(c.sums, maphash.Bytes(c.seed, b))
		if err := c.dst.put(ctx, b, at); err != nil || len(c.sums)%copySync != 0 {
			return err
		}
		return c.dst.flush(ctx)
	})
	if err == nil {
		err = c.zeroRest(ctx)
	}
	if err == nil {
		err = c.dst.flush(ctx)
	}
	if err == nil && c.lost.Bytes == c.size {
		err = fmt.Errorf("%w: drive %s cannot read any of it", drivebay.ErrRefused, c.src.drive)
	}
	return err
}

// zeroRest zeroes what the new partition has more than the old one, where users could read it.
func (c *copying) zeroRest(ctx context.Context) error {
	for at := c.size; c.shown && at < c.dst.Size(); at += copySync * copyChunk {
		if err := c.dst.zero(ctx, at, min(copySync*copyChunk, c.dst.Size()-at)); err != nil {
			return err
		}
	}
	return nil
}

// gather reads a range in one piece, and if that fails in halves, down to blocks. What cannot be read
// is zeros.
func (c *copying) gather(ctx context.Context, b []byte, at uint64) error {
	err := c.src.get(ctx, b, at)
	if err == nil {
		c.faults = 0
		return nil
	}
	if !errors.Is(err, host.ErrUnreadable) {
		return err
	}
	grain := c.block
	if c.faults >= manyFaults {
		grain = coarse
	}
	if uint64(len(b)) <= grain {
		c.faults++
		clear(b)
		c.lost.Add(drivebay.Extent{Offset: at, Length: uint64(len(b))})
		return nil
	}
	half := (uint64(len(b)) / 2) / c.block * c.block
	if err := c.gather(ctx, b[:half], at); err != nil {
		return err
	}
	return c.gather(ctx, b[half:], at+half)
}

// prove reads both partitions from their media and compares them with the first read. What the
// old drive cannot read any more counts as unchanged.
func (c *copying) prove(ctx context.Context) error {
	return c.each(ctx, func(ctx context.Context, b []byte, at uint64) error {
		sum := c.sums[at/copyChunk]
		err := c.dst.get(ctx, b, at)
		switch {
		case err != nil:
			return fmt.Errorf("the copy cannot be read back: %w", err)
		case maphash.Bytes(c.seed, b) != sum:
			return fmt.Errorf("drive %s: %w: at byte %d of the copy it holds something else than was written", c.dst.drive, drivebay.ErrRefused, at)
		case c.patchy[at]:
			return nil
		}
		err = c.src.get(ctx, b, at)
		switch {
		case errors.Is(err, host.ErrUnreadable):
			return nil
		case err != nil:
			return err
		case maphash.Bytes(c.seed, b) != sum:
			return fmt.Errorf("%w: it has changed at byte %d while it was copied", drivebay.ErrRefused, at)
		}
		return nil
	})
}

// get reads from the medium. ErrUnreadable is the drive's own answer; after any other error it may
// still fill the buffer.
func (p *copyPiece) get(ctx context.Context, b []byte, at uint64) error {
	_, err := steps.Through(ctx, p.e.Steps, p.lane, chunkTime, func(context.Context) (int, error) { return p.ReadMedium(b, int64(at)) })
	return err
}

func (p *copyPiece) put(ctx context.Context, b []byte, at uint64) error {
	_, err := steps.Through(ctx, p.e.Steps, p.lane, chunkTime, func(ctx context.Context) (struct{}, error) {
		if bytes.Count(b, []byte{0}) == len(b) { // the drive may have a faster way
			return struct{}{}, p.Zero(ctx, at, uint64(len(b)))
		}
		_, err := p.WriteAt(b, int64(at))
		return struct{}{}, err
	})
	if err != nil {
		return fmt.Errorf("write to drive %s: %w", p.drive, err)
	}
	return nil
}

func (p *copyPiece) zero(ctx context.Context, at, n uint64) error {
	_, err := steps.Through(ctx, p.e.Steps, p.lane, chunkTime, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.Zero(ctx, at, n) })
	if err != nil {
		return fmt.Errorf("zero drive %s: %w", p.drive, err)
	}
	return nil
}

func (p *copyPiece) flush(ctx context.Context) error {
	_, err := steps.Through(ctx, p.e.Steps, p.lane, chunkTime, func(context.Context) (struct{}, error) { return struct{}{}, p.Sync() })
	if err != nil {
		return fmt.Errorf("flush of drive %s: %w", p.drive, err)
	}
	return nil
}
