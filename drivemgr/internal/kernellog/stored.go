package kernellog

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// stored is a Window as the record of its drive has it.
type stored struct {
	Sectors []storedError `json:"sectors,omitempty"`
	Errors  []storedError `json:"errors,omitempty"`
	Returns []int64       `json:"returns,omitempty"` // in seconds since 1970
	Last    string        `json:"last,omitempty"`
}

type storedError struct {
	At     int64  `json:"at"`
	Sector uint64 `json:"sector,omitempty"`
	Is     uint8  `json:"is,omitempty"` // bits
}

const (
	isPlaced = 1 << iota
	isWrote
	isLeft
	isProved
)

func (e *Error) flags() (is uint8) {
	for i, on := range []bool{e.Placed, e.Wrote, e.Left, e.proved} {
		if on {
			is |= 1 << i
		}
	}
	return is
}

// Encode returns what of a window must outlive the daemon: the kernel says it once. It is "" for an empty window.
func (w *Window) Encode() string {
	if len(w.sectors)+len(w.Errors)+len(w.returns) == 0 {
		return ""
	}
	s := stored{Last: w.last}
	for _, sector := range slices.Sorted(maps.Keys(w.sectors)) {
		e := w.sectors[sector]
		s.Sectors = append(s.Sectors, storedError{e.At.Unix(), sector, e.flags()})
	}
	for i := range w.Errors {
		e := &w.Errors[i]
		s.Errors = append(s.Errors, storedError{e.At.Unix(), e.Sector, e.flags()})
	}
	for _, at := range w.returns {
		s.Returns = append(s.Returns, at.Unix())
	}
	text, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return string(text)
}

// Decode returns the window that was encoded; an empty one for a text that cannot be read.
func Decode(text string) (w Window) {
	var s stored
	if text == "" || json.Unmarshal([]byte(text), &s) != nil {
		return Window{}
	}
	of := func(e storedError) Error {
		w.number++
		return Error{At: time.Unix(e.At, 0), number: w.number, Sector: e.Sector, Placed: e.Is&isPlaced != 0, Wrote: e.Is&isWrote != 0,
			Left: e.Is&isLeft != 0, proved: e.Is&isProved != 0}
	}
	w.last = s.Last
	for _, e := range s.Sectors[:min(len(s.Sectors), maxLogKept)] {
		if w.sectors == nil {
			w.sectors = map[uint64]Error{}
		}
		w.sectors[e.Sector] = of(e)
	}
	for _, e := range s.Errors[:min(len(s.Errors), maxLogKept)] {
		w.Errors = append(w.Errors, of(e))
	}
	for _, at := range s.Returns[:min(len(s.Returns), maxLogKept)] {
		w.returns = append(w.returns, time.Unix(at, 0))
	}
	return w
}
