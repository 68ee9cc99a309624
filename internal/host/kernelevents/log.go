package kernelevents

import (
	"context"
	"errors"
	"fmt"
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
		lost := false
		for {
			n, err := f.Read(buf)
			if errors.Is(err, unix.EPIPE) { // lines were overwritten before this read
				lost = true
				continue
			}
			if err != nil {
				return
			}
			l, ok := parseKmsg(string(buf[:n]), bootTime())
			if !ok {
				continue
			}
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

// bootTime returns the time at which the kernel's log clock was zero.
func bootTime() time.Time {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(ts.Nano()))
}

// parseKmsg parses one record: "priority,sequence,microseconds,flags;text\n KEY=value".
func parseKmsg(rec string, boot time.Time) (LogLine, bool) {
	head, text, ok := strings.Cut(rec, ";")
	f := strings.Split(head, ",")
	if !ok || len(f) < 3 {
		return LogLine{}, false
	}
	prio, err1 := strconv.Atoi(f[0])
	us, err2 := strconv.ParseInt(f[2], 10, 64)
	if err1 != nil || err2 != nil {
		return LogLine{}, false
	}
	text, _, _ = strings.Cut(text, "\n")
	return LogLine{At: boot.Add(time.Duration(us) * time.Microsecond), Priority: prio & 7, Text: strings.ToValidUTF8(text, "?")}, true
}
