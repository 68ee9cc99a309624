package instances

import (
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// Finder holds the deleted and forgotten volumes, and those found without a record.
type Finder struct {
	*env.Env
	Ledger     *ledger.Ledger
	MountTable *mounttable.Reader
	Partitions *partitions.Catalog
	Groups     *groups.Groups

	FirstListedAt time.Time                           // when the drives were first listed
	Forgotten     map[string]drivebay.ForgottenVolume // by key
	Found         []drivebay.FoundVolume              // volumes on unclaimed drives without a record
	NewerIDs      map[string]bool                     // volumes that are newer than the store
}

// Recorded reports whether a volume or snapshot has a record.
func (e *Finder) Recorded(id string) bool {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return e.Ledger.Records[id] != nil || e.Ledger.Snapshots[id] != nil
}
