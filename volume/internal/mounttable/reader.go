package mounttable

import (
	"sync"
	"sync/atomic"

	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// Reader reads the mount table, at most once for callers that come together.
type Reader struct {
	*env.Env
	Ledger *ledger.Ledger

	lastSet      *MountSet
	lastTable    atomic.Pointer[MountTable] // nil: the engine has changed mounts since it was read; changed while tableMu is held
	MountChanges atomic.Uint64              // counts the engine's mounts and unmounts
	readAhead    atomic.Bool                // the table is being read in the background
	tableMu      sync.Mutex

	unmounting sync.Map // places with an unmount under way
}
