package condition

import (
	"slices"

	"github.com/drivebay/drivebay"
)

// Rule is one row of the table that Of walks. The texts are for people;
// check is the same rule as code.
type Rule struct {
	Section  Section
	Reason   string
	Severity drivebay.Severity
	When     string
	Says     string // what its message contains besides the drives
	Next     string // the next step; {volume} and {drive} are replaced by ids
	Source   string // the specification or fact that demands the rule
	First    bool   // precedes the others of its severity: they follow from it

	check func(*look) *hit
}

// Section groups the rows by what they examine.
type Section string

// The sections of the table, in its order. The last one uses the findings of the others:
// a status that they explain is not reported a second time.
const (
	OnDrives      Section = "The drives"
	OnLVM         Section = "LVM"
	OnFS          Section = "The filesystem"
	OnIO          Section = "Reads and writes"
	OnMount       Section = "The mounts"
	OnReplication Section = "The replication"
	OnRecord      Section = "The volume's own statuses"
)

const (
	kepCodes = "KEP-1432, error codes"
	seedCtl  = "csi-baremetal volume health proposal, ControllerGetVolume step 2"
	seedNode = "csi-baremetal volume health proposal, NodeGetVolumeStats"
)

// rules holds every finding that a volume can have. Each pair of severity and
// reason occurs once, so a condition cannot have it twice.
var rules = slices.Concat(driveRules, lvmRules, filesystemRules, ioRules, mountRules, replicationRules, recordRules)

// Rules returns a copy of the table.
func Rules() []Rule { return slices.Clone(rules) }
