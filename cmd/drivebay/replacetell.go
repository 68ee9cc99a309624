package main

import (
	"context"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
)

// everyPercent is how often progress is worth a line of its own.
const everyPercent = 10

// tell says a step once. Progress is written over where somebody looks on, and is a line
// now and then elsewhere.
func (r *replacement) tell(st step) error {
	if st.text == "" {
		return nil
	}
	text := render.Clean(st.text + progressText(st.progress, r.now()))
	is := 0
	if st.progress != nil && st.progress.Total > 0 {
		is = st.progress.Percent()
	}
	moved := st.progress != nil && is >= r.percent+everyPercent
	switch {
	case st.progress != nil && r.tty:
		r.inPlace = true
		return r.print("\r\x1b[K" + text)
	case st.text == r.said && !moved:
		return nil
	}
	r.said, r.percent = st.text, is
	return r.line(text)
}

// line prints a line of its own.
func (r *replacement) line(text string) error {
	if r.inPlace {
		r.inPlace, text = false, "\n"+text
	}
	return r.print(text + "\n")
}

// telling are the events that an operator at the rack has to know of, whatever drive
// they are about.
var telling = []drivebay.EventKind{drivebay.EventWrongPulled, drivebay.EventSwapped, drivebay.EventQuarantined, drivebay.EventNotReplaced, drivebay.EventReturned, drivebay.EventAppeared}

func (r *replacement) tellEvents(ctx context.Context, s *drivebay.Snapshot) error {
	list, err := r.src.Events(ctx, r.event, eventPage)
	if err != nil {
		return err
	}
	for _, e := range list {
		if _, known := s.Find(e.Drive); !known && e.Drive != "" && !s.At.After(e.At) {
			return nil // it is newer than the snapshot: told with the next one
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

// misplaced says of a new drive that it is not where the successor goes.
func (r *replacement) misplaced(s *drivebay.Snapshot, drive string) string {
	d, ok := s.Find(r.drive)
	next, here := s.Find(drive)
	if !ok || !here || d.Slot.Bay == "" || next.Slot.Bay == d.Slot.Bay && next.Slot.Enclosure == d.Slot.Enclosure {
		return ""
	}
	return "; it takes nobody's place: the successor goes into bay " + d.Slot.Bay
}

// lastEvent is the number of the newest event.
func (r *replacement) lastEvent(ctx context.Context) (last uint64, err error) {
	for {
		page, err := r.src.Events(ctx, last, eventPage)
		if err != nil || len(page) == 0 {
			return last, err
		}
		last = page[len(page)-1].Seq
	}
}
