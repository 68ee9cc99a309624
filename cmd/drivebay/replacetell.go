package main

import (
	"context"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/progress"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
)

// tell prints a step once, and the progress of its work below it.
func (r *replacement) tell(st step) error {
	if st.text == "" {
		return nil
	}
	if st.text != r.said {
		r.said = st.text
		if err := r.line(render.Clean(st.text)); err != nil {
			return err
		}
	}
	if st.progress == nil || st.progress.Total == 0 {
		return nil
	}
	return r.bar().Bytes("moved", *st.progress)
}

// bar returns the meter of the replacement.
func (r *replacement) bar() *progress.Meter {
	if r.meter == nil {
		r.meter = &progress.Meter{Out: r.out, TTY: r.tty, Now: r.now}
	}
	return r.meter
}

// line prints text in a new line, broken at words where it is longer than the terminal is wide.
func (r *replacement) line(text string) error {
	return r.bar().Line(strings.TrimSuffix(r.wrapped(text), "\n"))
}

// wrapped breaks lines that are longer than the terminal is wide.
func (r *replacement) wrapped(text string) string {
	s, err := r.style()
	if err != nil {
		return text + "\n"
	}
	return render.Wrap(text, s)
}

// telling are the events that an operator at the rack has to know, whatever drive they
// are about.
var telling = []drivebay.EventKind{drivebay.EventWrongPulled, drivebay.EventSwapped, drivebay.EventQuarantined, drivebay.EventNotReplaced, drivebay.EventReturned, drivebay.EventAppeared}

func (r *replacement) tellEvents(ctx context.Context, s *drivebay.Snapshot) error {
	list, err := r.src.Events(ctx, r.event, eventPage)
	if err != nil {
		return err
	}
	for _, e := range list {
		if _, known := s.Get(e.Drive); !known && e.Drive != "" && !s.At.After(e.At) {
			return nil // it is newer than the snapshot: printed with the next one
		}
		r.event = e.Seq
		text := e.Cause
		if e.Kind == drivebay.EventAppeared {
			text += r.misplaced(s, e.Drive)
		}
		if !slices.Contains(telling, e.Kind) {
			continue
		}
		if err := r.line("! " + render.Clean(text)); err != nil {
			return err
		}
	}
	return nil
}

// misplaced returns a hint if a new drive is not in the bay of the drive to replace.
func (r *replacement) misplaced(s *drivebay.Snapshot, drive string) string {
	d, ok := s.Get(r.drive)
	next, here := s.Get(drive)
	if !ok || !here || d.Slot.Bay == "" || next.Slot.Bay == d.Slot.Bay && next.Slot.Enclosure == d.Slot.Enclosure {
		return ""
	}
	return "; it is not a successor: insert the successor into bay " + d.Slot.Bay
}

// lastEvent returns the number of the newest event.
func (r *replacement) lastEvent(ctx context.Context) (last uint64, err error) {
	for {
		page, err := r.src.Events(ctx, last, eventPage)
		if err != nil || len(page) == 0 {
			return last, err
		}
		last = page[len(page)-1].Seq
	}
}
