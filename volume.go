package drivebay

import "time"

// Volume is one volume and everything known about it at one moment. It has no secrets,
// because it is stored and shown to people.
type Volume struct {
	ID     string     `json:"id"`
	Name   string     `json:"name"`
	Node   string     `json:"node"`
	Size   uint64     `json:"size"` // bytes
	Mode   VolumeMode `json:"mode"`
	FSType string     `json:"fsType,omitempty"` // ext4, xfs, btrfs; empty for block volumes
	FSUUID string     `json:"fsUUID,omitempty"` // chosen before the filesystem is made
	// LUKSUUID is the UUID of its LUKS2 header, chosen before the header is made; empty:
	// the volume is not encrypted.
	LUKSUUID string `json:"luksUUID,omitempty"`
	// AwaitsKey is true for an encrypted volume that was made without a passphrase, until it is staged
	// first: it has its place, and no header and no filesystem.
	AwaitsKey  bool              `json:"awaitsKey,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Source     Source            `json:"source,omitzero"`
	Created    time.Time         `json:"created,omitzero"`
	Location   Location          `json:"location"`

	Health            Health            `json:"health"`            // by condition.HealthOf
	OperationalStatus OperationalStatus `json:"operationalStatus"` // by condition.OperationalStatusOf
	CSIStatus         CSIStatus         `json:"csiStatus"`         // by Moved and Failed
	Usage             VolumeUsage       `json:"usage"`             // by UsageMoved and UsageFailed

	Publications []Publication `json:"publications,omitempty"`

	// MoveBeforeUse is true if an operator wants a volume whose drive has to leave to be moved before it
	// is staged again. It ends with the move, or if the drive stays.
	MoveBeforeUse bool `json:"moveBeforeUse,omitempty"`

	// Lost is the data whose loss an operator accepted, until an operator clears it
	// (`drivebay volume clear`).
	Lost *Lost `json:"lost,omitempty"`

	// Mirror says which leg of a mirror holds everything; nil for other volumes, and for
	// a mirror about which nothing is recorded.
	Mirror *Mirror `json:"mirror,omitempty"`

	// Replication is how the volume is replicated; nil: it is not.
	Replication *Replication `json:"replication,omitempty"`

	// Failure is why CSIStatus is FAILED, or was FAILED before the present try.
	Failure      *Failure[CSIStatus]   `json:"failure,omitempty"`
	UsageFailure *Failure[VolumeUsage] `json:"usageFailure,omitempty"` // the same for Usage
}

// Encrypted reports whether a LUKS2 header is between the volume's data and its drive.
func (v *Volume) Encrypted() bool { return v.LUKSUUID != "" }

// HasFilesystem reports whether the volume is mounted as a filesystem. A block volume, and one whose
// mode is not known, has none that drivebay manages.
func (v *Volume) HasFilesystem() bool { return v.Mode == ModeFS }

// RawBlocks reports whether users of the volume read the blocks of its piece of the drives as they are:
// nothing above the piece hides what was written there before. The kernel takes old metadata at the end of a replicated
// volume's piece for those of the volume.
func (v *Volume) RawBlocks() bool {
	return v.Replication != nil || !v.HasFilesystem() && !v.Encrypted()
}

// Location is what a volume is made of. Drives are ids; those of a mirror are in the
// order of its legs.
type Location struct {
	Kind      LocationKind `json:"kind"`
	Drives    []string     `json:"drives,omitempty"`
	Partition string       `json:"partition,omitempty"` // unique GUID in the GPT
	VG        string       `json:"vg,omitempty"`
	LV        string       `json:"lv,omitempty"`
	Instance  string       `json:"instance,omitempty"` // tag of the logical volume: tells it apart from another one with its name
	Pool      string       `json:"pool,omitempty"`     // the thin pool of a thin volume
	// Found is true if the volume was adopted from its drives during a move of its group:
	// the drives are in no order, and it is not known which one the group was leaving. A drive
	// that was away then is added when it returns.
	Found bool `json:"found,omitempty"`
}

// Mirrored reports whether the volume survives the loss of one of its drives.
func (l Location) Mirrored() bool { return l.Kind == LocationMirror && len(l.Drives) > 1 }

// OnLVM reports whether the volume is a logical volume; else it is a partition.
func (l Location) OnLVM() bool { return l.VG != "" }

// Publication is one path at which the volume is staged or published.
type Publication struct {
	Path     string    `json:"path"`
	Staging  bool      `json:"staging,omitempty"` // the staging path, to which the other paths are bound
	ReadOnly bool      `json:"readOnly,omitempty"`
	Access   Access    `json:"access,omitempty"`
	Flags    string    `json:"flags,omitempty"`   // a hash of the mount options, which are not stored
	Context  string    `json:"context,omitempty"` // the SELinux label of all files, if it was mounted with one
	Device   string    `json:"device,omitempty"`  // "8:1 sda1": the device that was mounted; its name may change later
	Since    time.Time `json:"since,omitzero"`
	Boot     string    `json:"boot,omitempty"` // boot id of the machine: no mount survives a boot
	Pod      Pod       `json:"pod,omitzero"`   // for which Kubernetes publishes the volume
}

// Pod is a pod of Kubernetes.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Failure says what failed, in which state, and what tries again, so that FAILED is not
// final.
type Failure[S ~uint8] struct {
	Before S         `json:"before"` // the state in which it failed
	Cause  string    `json:"cause"`
	Since  time.Time `json:"since,omitzero"` // the time of the first of these tries
	Tries  int       `json:"tries"`
	Retry  RetryRule `json:"retry"`
	Next   time.Time `json:"next,omitzero"` // the time of the next try, for RetryTimed
}

// again returns the failure with the count of tries, which continues if last failed in
// the same state.
func (f Failure[S]) again(before S, last *Failure[S]) *Failure[S] {
	f.Before, f.Tries = before, 1
	if last != nil && last.Before == before {
		f.Since, f.Tries = last.Since, last.Tries+1
	}
	return &f
}

// Rest returns the status that a volume without work under way has by its publications:
// CREATED, VOLUME_READY or PUBLISHED.
func (v *Volume) Rest() CSIStatus {
	rest := CSICreated
	for _, p := range v.Publications {
		if !p.Staging {
			return CSIPublished
		}
		rest = CSIVolumeReady
	}
	return rest
}

// State returns the state of the volume in the table of CSI moves.
func (v *Volume) State() CSIState {
	s := CSIState{Status: v.CSIStatus, Rest: v.Rest()}
	if v.Failure != nil {
		s.Before = v.Failure.Before
	}
	return s
}

// Moved returns the volume after an event other than a failure. The caller updates
// the publications before.
func (v Volume) Moved(e CSIEvent) (Volume, error) {
	if e == CSIFail {
		return v, errCause("volume", v.ID)
	}
	to, err := v.State().Next(e)
	if err != nil {
		return v, err
	}
	v.CSIStatus = to
	if !to.underWay() && to != CSIFailed {
		v.Failure = nil
	}
	return v, nil
}

// NeedsOperator reports whether an operator has to decide if the volume may be used.
func (v *Volume) NeedsOperator() bool {
	return v.CSIStatus == CSIFailed && v.Failure != nil && v.Failure.Retry == RetryOperator
}

// Undecided returns why the volume may not be used before an operator decides; empty if
// it may be used.
func (v *Volume) Undecided() string {
	if !v.NeedsOperator() {
		return ""
	}
	return v.Failure.Cause
}

// Failed returns the volume after the work under way failed. It sets Before and Tries
// of the failure.
func (v Volume) Failed(f Failure[CSIStatus]) (Volume, error) {
	state := v.State()
	to, err := state.Next(CSIFail)
	if err != nil {
		return v, err
	}
	before := state.Status
	if before == CSIFailed {
		before = state.Before
	}
	if v.NeedsOperator() && v.Failure.Before == before { // the operator still has to decide
		return v, nil
	}
	v.CSIStatus, v.Failure = to, f.again(before, v.Failure)
	return v, nil
}

// UsageMoved returns the volume after a usage event other than a failure.
func (v Volume) UsageMoved(e VolumeUsageEvent) (Volume, error) {
	if e == VolumeUsageFail {
		return v, errCause("usage of volume", v.ID)
	}
	to, err := v.Usage.Next(e)
	if err != nil {
		return v, err
	}
	v.Usage = to
	if to != VolumeReleasing {
		v.UsageFailure, v.MoveBeforeUse = nil, false
	}
	return v, nil
}

// UsageFailed returns the volume after its move or release failed.
func (v Volume) UsageFailed(f Failure[VolumeUsage]) (Volume, error) {
	to, err := v.Usage.Next(VolumeUsageFail)
	if err != nil {
		return v, err
	}
	v.UsageFailure, v.Usage = f.again(v.Usage, v.UsageFailure), to
	return v, nil
}
