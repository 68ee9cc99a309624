package steps

import (
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// Runner runs the steps of plans in the lanes of drives and groups.
type Runner struct {
	*env.Env
	Ledger *ledger.Ledger

	Lanes lanes
}
