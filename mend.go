package drivebay

// HealRequest asks for the repair of a volume where it is used. No repair can lose data.
type HealRequest struct {
	Volume  string
	Path    string // where it is published or staged; empty: every path
	Staging string // its staging path; may be empty
	Block   *bool  // whether the caller uses it as a block device; nil: not said
	// Options are the mount options, from a caller that knows them: they are stored
	// nowhere, and a volume that was mounted with options is mounted again only with
	// the same ones. They count only if Block is set.
	Options []string
	DryRun  bool // only report what would be done
	Safe    bool // no operator asked: only repairs that the daemon may do on its own
	// Fsck repairs a filesystem that is not mounted, as far as its own repair program
	// works without questions. No other repair changes a filesystem.
	Fsck    bool
	Secrets Secrets
}

// HealReport is the result of a HealRequest. The VolumeView has the state after it.
type HealReport struct {
	Volume string     `json:"volume"`
	Steps  []HealStep `json:"steps"` // in the order in which they were done, or would be done
	DryRun bool       `json:"dryRun,omitempty"`
	// Remaining are the findings on the volume that are left after the steps.
	Remaining []VolumeFinding `json:"remaining,omitempty"`
}

// HealStep is one repair that was necessary.
type HealStep struct {
	Repair string `json:"repair"` // name of a row of the table of repairs
	Why    string `json:"why"`    // what was observed
	Done   string `json:"done,omitempty"`
	Failed string `json:"failed,omitempty"` // why it was not done
}

// ReclaimRequest asks to return the unused space of a filesystem to the drive or thin
// pool below it.
type ReclaimRequest struct {
	Volume  string
	Path    string // where it is published or staged; empty: any path, or not mounted
	Staging string
	Block   *bool
	Secrets Secrets
}

// Reclaimed is the used space before and after, in bytes; nil: not known.
type Reclaimed struct {
	Before, After *uint64
}

// KeyRequest asks to change the passphrase of an encrypted volume: Secrets have the old
// one, New the new one. The old one works until the new one is proved to work.
type KeyRequest struct {
	Volume  string
	Path    string
	Secrets Secrets
	New     Secrets
}
