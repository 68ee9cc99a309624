package luks

import (
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Crypt opens encrypted volumes.
type Crypt struct {
	*env.Env
	Ledger *ledger.Ledger
	Steps  *steps.Runner
	Device *device.Opener
	Erase  *erase.Eraser
	Mirror *mirror.Mirrors
	Moves  *moves.Tracker

	support atomic.Pointer[support] // nil: not known yet
}

// support is whether this machine can encrypt.
type support struct {
	lacks error // why not
	at    time.Time
}
