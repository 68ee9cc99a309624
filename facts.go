package drivebay

import "time"

// Facts holds everything that the condition of a volume may depend on. A part or
// number that is nil was not read: it neither causes a finding nor excludes one.
type Facts struct {
	Volume Volume  `json:"-"`
	Drives []Drive `json:"drives,omitempty"` // the drives of the volume, as known now
	// Complete is true when Drives come from a complete listing of the machine: a
	// drive of the volume that is not among them is gone.
	Complete bool `json:"complete"`
	// Gone is true when a complete listing of its drives lacks its partition or logical volume, or has less of it.
	Gone        bool   `json:"gone,omitempty"`
	Smaller     string `json:"smaller,omitempty"`     // how much less
	Overwritten string `json:"overwritten,omitempty"` // what its piece has in place of its filesystem or header, read while it was in no use
	// Layouts holds, by drive id, how the kernel's partitions differ from those of the
	// partition table.
	Layouts map[string]string `json:"layouts,omitempty"`
	// MoveBlocked is the error that has ended every attempt to move the volume off a drive, three times in a row or more.
	MoveBlocked string      `json:"moveBlocked,omitempty"`
	LV          *LVFacts    `json:"lv,omitempty"`
	FS          *FSFacts    `json:"fs,omitempty"`
	IO          *IOFacts    `json:"io,omitempty"`
	Mount       *MountFacts `json:"mount,omitempty"`
	// Replication is what the kernel said last; nil: the volume is not replicated, or nothing is known yet.
	Replication *ReplicationInfo `json:"replication,omitempty"`
}

// LVFacts is what LVM and device-mapper report about a logical volume.
type LVFacts struct {
	// Unreadable holds, by drive id, why LVM cannot read the physical volume there.
	// InUse is true when the device of such a volume is in use and works without LVM. Unknown says since when LVM has made no report, and why.
	Unreadable map[string]string `json:"unreadable,omitempty"`
	InUse      bool              `json:"inUse,omitempty"`
	Unknown    string            `json:"unknown,omitempty"`

	MissingPVs      []string `json:"missingPVs,omitempty"` // physical volumes missing in its group, as LVM names them
	Partial         bool     `json:"partial,omitempty"`    // a part of it is on a device that is missing
	Inactive        bool     `json:"inactive,omitempty"`
	Suspended       bool     `json:"suspended,omitempty"`
	PoolFailed      bool     `json:"poolFailed,omitempty"`     // the thin pool cannot be used before it is repaired
	OutOfData       bool     `json:"outOfData,omitempty"`      // the thin pool reports no data space left
	MetadataLocked  bool     `json:"metadataLocked,omitempty"` // the thin pool's metadata is read-only
	DataPercent     *float64 `json:"dataPercent,omitempty"`
	MetadataPercent *float64 `json:"metadataPercent,omitempty"`
	SyncPercent     *float64 `json:"syncPercent,omitempty"`   // of a mirror: how much is in sync
	RefreshNeeded   bool     `json:"refreshNeeded,omitempty"` // a leg of the mirror failed writes and is left out
	Mismatches      uint64   `json:"mismatches,omitempty"`    // places where the legs differ, by the last check
	Changed         string   `json:"changed,omitempty"`       // what another program has changed of it, and the command that undoes that
}

// FSFacts is what is known about the filesystem without a new request to it.
type FSFacts struct {
	Errors   uint64  `json:"errors,omitempty"`   // inconsistencies that the kernel counted
	ReadOnly bool    `json:"readOnly,omitempty"` // it is read-only although no call requested that
	Shutdown bool    `json:"shutdown,omitempty"` // XFS has shut it down
	Bytes    *uint64 `json:"bytes,omitempty"`
	Free     *uint64 `json:"free,omitempty"`     // bytes free for users other than root
	Reserved uint64  `json:"reserved,omitempty"` // bytes free for root only
	// Full is the used percentage, of the space that users can fill, from which on the
	// filesystem counts as full; 0: a full filesystem is no finding.
	Full       int     `json:"full,omitempty"`
	Inodes     *uint64 `json:"inodes,omitempty"`
	FreeInodes *uint64 `json:"freeInodes,omitempty"`
	Scrub      *Scrub  `json:"scrub,omitempty"`
}

// Scrub is the result of the read-only checks of a filesystem.
type Scrub struct {
	At      time.Time `json:"at"`                // of the newest check
	Corrupt int       `json:"corrupt,omitempty"` // how many checks in a row, to the newest, found it corrupted
	Mounted bool      `json:"mounted,omitempty"` // it was mounted during the check: a single check can be wrong
	Text    string    `json:"text,omitempty"`    // what the newest check found
}

// IOFacts is how the volume's device responds to requests.
type IOFacts struct {
	Frozen time.Duration `json:"frozen,omitempty"` // for how long requests have waited and none completed
	Await  time.Duration `json:"await,omitempty"`  // how long a request takes at present
	Errors uint64        `json:"errors,omitempty"` // requests failed within a day, cause not proved gone
	// Unreadable counts the sectors of the volume, or of its thin pool, that a drive
	// cannot read. UnreadableOn holds the ids of these drives.
	Unreadable   uint64   `json:"unreadable,omitempty"`
	UnreadableOn []string `json:"unreadableOn,omitempty"`
	ReadError    string   `json:"readError,omitempty"` // why the daemon's small read of it failed
}

// MountFacts compares the paths at which the volume is staged and published with the
// mount table.
type MountFacts struct {
	Staging *PathFacts `json:"staging,omitempty"` // nil: not staged, or not checked
	Target  *PathFacts `json:"target,omitempty"`  // of several targets, the first that is not mounted
}

// PathFacts is what the mount table has at one path.
type PathFacts struct {
	Path      string `json:"path"`
	Mounted   bool   `json:"mounted"`             // the volume is mounted there
	Dead      bool   `json:"dead,omitempty"`      // a device of the volume that is gone is mounted there
	Other     string `json:"other,omitempty"`     // what is mounted there instead
	ReadError string `json:"readError,omitempty"` // why reading the path failed
}
