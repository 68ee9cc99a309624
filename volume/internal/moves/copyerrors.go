package moves

import (
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// CopyErrors counts what the kernel could not copy. Only the kernel's log says so (Linux 6.1,
// drivers/md/dm-raid1.c, recovery_complete), and it does not name the mirror. So one volume of the
// machine moves at a time. KernelLogGaps counts losses of log lines, which may have reported errors.
type CopyErrors struct{ Unread, Unwritten, Unheard uint64 }

// CopyErrorsOf returns how many copy errors the kernel has logged.
func (e *Tracker) CopyErrorsOf() CopyErrors {
	return CopyErrors{e.readErrorsLogged.Load(), e.writeErrorsLogged.Load(), e.KernelLogGaps.Load()}
}

// FollowCopyErrors counts the kernel's log lines about copy errors.
func (e *Tracker) FollowCopyErrors(l host.LogLine) {
	was := e.CopyErrorsOf()
	if l.Overflow {
		e.KernelLogGaps.Add(1)
	}
	switch {
	case strings.Contains(l.Text, "raid1: Unable to read primary mirror during recovery"), strings.Contains(l.Text, "raid1: Mirror read failed"):
		e.readErrorsLogged.Add(1)
	case strings.Contains(l.Text, "raid1: Write error during recovery"):
		e.writeErrorsLogged.Add(1)
	}
	if e.CopyErrorsOf() != was {
		e.CopyFailed()
	}
}

// logQuiet is how long the kernel may leave copy errors out of its log after it has logged some: ten from one place in its code are
// logged in 5 s (include/linux/ratelimit_types.h, DEFAULT_RATELIMIT_INTERVAL; DMERR_LIMIT in include/linux/device-mapper.h).
const logQuiet = 6 * time.Second

// CopyFailed notes that the kernel has logged a copy error, or is about to: the status of a copy may show it first.
func (e *Tracker) CopyFailed() {
	now := e.Machine.Now()
	e.lastError.Store(&now)
}

// LogsErrorsIn returns how long it takes until the kernel logs every copy error again.
func (e *Tracker) LogsErrorsIn() time.Duration {
	if e.lastError.Load() == nil { // what was logged before the daemon started is not known
		e.CopyFailed()
	}
	return logQuiet - e.Machine.Now().Sub(*e.lastError.Load())
}
