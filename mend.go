package drivebay

// HealRequest asks for a volume to be put right where it is used. Nothing that a
// healing does can lose data.
type HealRequest struct {
	Volume  string
	Path    string // where it is published, or staged; empty: wherever it is
	Staging string // likewise
	Block   *bool  // what the caller takes it for; nil: he does not say
	// Options are those of the mount, for who knows them: they are kept nowhere, and
	// what was mounted with some is mounted again only with the same. They count
	// where Block is given.
	Options []string
	DryRun  bool // tell what would be done
	Safe    bool // nobody asks: only what the daemon may do on its own
	// Fsck has a filesystem that nobody has mounted repaired as far as its own
	// program does that without asking. Nothing else of a healing changes a
	// filesystem.
	Fsck    bool
	Secrets Secrets
}

// HealReport is what a healing came to. How the volume is after it, its view says.
type HealReport struct {
	Volume string     `json:"volume"`
	Steps  []HealStep `json:"steps"` // in the order in which they were done, or would be
	DryRun bool       `json:"dryRun,omitempty"`
	// Remaining are the findings on the volume that no step has ended, or would.
	Remaining []VolumeFinding `json:"remaining,omitempty"`
}

// HealStep is one repair that was called for.
type HealStep struct {
	Repair string `json:"repair"` // a row of the table of repairs
	Why    string `json:"why"`    // what was seen
	Done   string `json:"done,omitempty"`
	Failed string `json:"failed,omitempty"` // why it was not done
}

// ReclaimRequest asks for the space that a filesystem has no use for to be given
// back to the drive or pool below it.
type ReclaimRequest struct {
	Volume  string
	Path    string // where it is published or staged; empty: wherever it is mounted, or nowhere
	Staging string
	Block   *bool
	Secrets Secrets
}

// Reclaimed is what was used before and after, in bytes; nil: nobody can tell.
type Reclaimed struct {
	Before, After *uint64
}

// KeyRequest asks for another passphrase of an encrypted volume: Secrets have the
// old one, New the new one. The old one works until the new one is proved.
type KeyRequest struct {
	Volume  string
	Path    string
	Secrets Secrets
	New     Secrets
}
