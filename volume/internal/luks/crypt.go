package luks

import (
	"sync/atomic"

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

	mayLUKS atomic.Bool // true once encryption was found to work here
}
