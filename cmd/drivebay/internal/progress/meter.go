// Package progress shows how far a long operation is: a bar that changes in its line at a terminal, and a line
// now and then elsewhere.
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
)

const (
	everyPercent = 10               // after which a new line is printed where there is no terminal
	everyTime    = 30 * time.Second // the same, for work whose end is not known
	barWidth     = 20
)

// Meter shows the progress of one operation. Its methods return the error of a failed write.
type Meter struct {
	Out io.Writer
	TTY bool
	Now func() time.Time

	label   string
	percent int       // of the last line
	at      time.Time // of the last line
	begun   time.Time
	first   sample // the first one of this label
	last    sample // the newest one that differs from the one before
	inPlace bool   // the cursor is at the end of a bar
}

// sample is how much was done at a time.
type sample struct {
	done uint64
	at   time.Time
}

// Bytes shows work that is measured in bytes. The end that the daemon expects counts; without one it is
// computed from the rate since the first call.
func (m *Meter) Bytes(label string, p drivebay.Progress) error {
	now := m.sample(label, p.Done)
	text := fmt.Sprintf("%3d %%  %s of %s", p.Percent(), render.Binary(p.Done), render.Binary(p.Total))
	rate, left := m.rate(), time.Duration(0)
	if end := p.End.Sub(m.last.at); !p.End.IsZero() && end > 0 && p.Total > p.Done {
		rate, left = float64(p.Total-p.Done)/end.Seconds(), p.End.Sub(now)
	} else if rate > 0 && p.Total > p.Done {
		left = time.Duration(float64(p.Total-p.Done)/rate*float64(time.Second)) - now.Sub(m.last.at)
	}
	if rate >= 1 {
		text += "  " + render.Binary(uint64(rate)) + "/s"
	}
	return m.show(p.Percent(), text+ends(left))
}

// Percent shows work of which only the part that is done is known.
func (m *Meter) Percent(label string, percent int) error {
	now := m.sample(label, uint64(max(percent, 0)))
	left := time.Duration(0)
	if rate := m.rate(); rate > 0 && percent < 100 {
		left = time.Duration(float64(100-percent)/rate*float64(time.Second)) - now.Sub(m.last.at)
	}
	return m.show(percent, fmt.Sprintf("%3d %%", percent)+ends(left))
}

// Elapsed shows work whose end is not known.
func (m *Meter) Elapsed(label string) error {
	now := m.sample(label, 0)
	text := label
	if since := now.Sub(m.begun).Round(time.Second); since > 0 {
		text += "  for " + drivebay.DurationText(since)
	}
	if m.TTY {
		m.inPlace = true
		return m.write("\r\x1b[K" + text)
	}
	if m.at.IsZero() || now.Sub(m.at) >= everyTime {
		m.at = now
		return m.write(text + "\n")
	}
	return nil
}

// Line prints a line of its own, below the bar.
func (m *Meter) Line(text string) error {
	if m.inPlace {
		m.inPlace, text = false, "\n"+text
	}
	return m.write(text + "\n")
}

// End removes a bar that is shown.
func (m *Meter) End() error {
	if !m.inPlace {
		return nil
	}
	m.inPlace = false
	return m.write("\r\x1b[K")
}

// sample keeps how much is done, and starts again with a new label or when less is done than before.
func (m *Meter) sample(label string, done uint64) (now time.Time) {
	now = m.Now()
	if label != m.label || done < m.last.done || m.begun.IsZero() {
		m.label, m.percent, m.at, m.begun = label, -1, time.Time{}, now
		m.first, m.last = sample{done, now}, sample{done, now}
	}
	if done != m.last.done {
		m.last = sample{done, now}
	}
	return now
}

// rate returns what was done in a second since the first sample.
func (m *Meter) rate() float64 {
	took := m.last.at.Sub(m.first.at).Seconds()
	if took <= 0 || m.last.done <= m.first.done {
		return 0
	}
	return float64(m.last.done-m.first.done) / took
}

func (m *Meter) show(percent int, text string) error {
	if m.TTY {
		m.inPlace = true
		return m.write("\r\x1b[K" + m.label + "  " + bar(percent) + " " + text)
	}
	if m.percent >= 0 && percent < m.percent+everyPercent {
		return nil
	}
	m.percent = percent
	return m.write(m.label + ": " + strings.TrimSpace(text) + "\n")
}

func (m *Meter) write(text string) error {
	_, err := io.WriteString(m.Out, text)
	return err
}

func bar(percent int) string {
	n := min(max(percent, 0), 100) * barWidth / 100
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", barWidth-n) + "]"
}

// ends describes when work ends; "" if that is not known.
func ends(left time.Duration) string {
	if left = left.Round(time.Second); left <= 0 {
		return ""
	}
	return ", done in " + drivebay.DurationText(left)
}
