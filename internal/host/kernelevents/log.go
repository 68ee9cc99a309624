package kernelevents

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// LogLine is one line of the kernel log.
type LogLine struct {
	At       time.Time
	Priority int
	Text     string
	// Overflow means that lines were lost before this one.
	Overflow bool
}

// Log reads an open /dev/kmsg from its end on (Documentation/ABI/testing/dev-kmsg), and closes it at the
// end of the context.
func Log(ctx context.Context, f *os.File) (<-chan LogLine, error) {
	if _, err := f.Seek(0, 2); err != nil {
		f.Close()
		return nil, fmt.Errorf("kernel log: %w", err)
	}
	out := make(chan LogLine, 256)
	stop := context.AfterFunc(ctx, func() { f.Close() })
	go func() {
		defer close(out)
		defer stop()
		defer f.Close()
		buf := make([]byte, 16<<10)
		lost, clock := false, newLogClock(time.Now())
		for {
			n, err := f.Read(buf)
			if errors.Is(err, unix.EPIPE) { // lines were overwritten before this read
				lost = true
				continue
			}
			if err != nil {
				return
			}
			l, stamp, ok := parseKmsg(string(buf[:n]))
			if !ok {
				continue
			}
			l.At = clock.at(stamp, time.Now())
			l.Overflow, lost = lost, false
			select {
			case out <- l:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// logClock tells when a line was logged. The clock of the kernel's stamps is adjusted by nothing, and drifts from the one that programs have,
// by minutes in months (kernel/printk/printk.c, local_clock; dmesg(1), --ctime: "the timestamp could be inaccurate"). So a stamp counts only
// against those of lines shortly before: the line that was read soonest after its stamp was read when it was logged.
type logClock struct {
	start time.Time
	ahead time.Duration // from the least stamp to the time since start
	last  time.Time
}

// mostDrift is how much the two clocks drift in a time that is this often as long.
const mostDrift = 1000

func newLogClock(now time.Time) *logClock {
	return &logClock{start: now, ahead: math.MaxInt64 / 2, last: now}
}

// at returns when a line was logged that is read now.
func (c *logClock) at(stamp time.Duration, now time.Time) time.Time {
	ahead := now.Sub(c.start) - stamp
	c.ahead, c.last = min(c.ahead+now.Sub(c.last)/mostDrift, ahead), now
	return now.Add(c.ahead - ahead)
}

// parseKmsg parses one record: "priority,sequence,microseconds,flags;text\n KEY=value". It returns the stamp of the line.
func parseKmsg(rec string) (l LogLine, stamp time.Duration, ok bool) {
	head, text, ok := strings.Cut(rec, ";")
	f := strings.Split(head, ",")
	if !ok || len(f) < 3 {
		return LogLine{}, 0, false
	}
	prio, err1 := strconv.Atoi(f[0])
	us, err2 := strconv.ParseInt(f[2], 10, 64)
	if err1 != nil || err2 != nil {
		return LogLine{}, 0, false
	}
	text, _, _ = strings.Cut(text, "\n")
	return LogLine{Priority: prio & 7, Text: strings.ToValidUTF8(text, "?")}, time.Duration(us) * time.Microsecond, true
}
