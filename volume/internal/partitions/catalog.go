package partitions

import (
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Catalog holds the partitions of each drive as last listed, and the newest report of LVM.
type Catalog struct {
	*env.Env
	Ledger *ledger.Ledger
	Steps  *steps.Runner

	Index    Index                      // guarded by Ledger.Mu, like tables
	Layouts  map[string]Layout          // by drive, guarded by Ledger.Mu
	Listings map[string]uint64          // how often a drive was listed alone
	Last     map[string]LastListing     // by drive
	Tables   map[string][]gpt.Partition // by drive, as last read
}
