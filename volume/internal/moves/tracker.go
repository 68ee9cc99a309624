package moves

import (
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay/volume/internal/env"
)

// Tracker holds the moves of volumes under way, and counts the copy errors in the kernel's log.
type Tracker struct {
	*env.Env

	KernelLogClosed                     atomic.Bool               // the kernel's log cannot be read
	KernelLogGaps                       atomic.Uint64             // how often lines of the log were lost
	Moves                               copyMoves                 // of volumes to other drives
	overwrites                          paces                     // of volumes that are wiped or zeroed
	readErrorsLogged, writeErrorsLogged atomic.Uint64             // copy errors in the kernel's log
	lastError                           atomic.Pointer[time.Time] // when the last one was logged; nil: not known yet
}
