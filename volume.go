package drivebay

import "time"

// Volume is one volume and everything known about it at one moment. Secrets are
// not part of it: it is written to disk and shown to people.
type Volume struct {
	ID     string     `json:"id"`
	Name   string     `json:"name"`
	Node   string     `json:"node"`
	Size   uint64     `json:"size"` // bytes
	Mode   VolumeMode `json:"mode"`
	FSType string     `json:"fsType,omitempty"` // ext4, xfs, btrfs; empty for block volumes
	FSUUID string     `json:"fsUUID,omitempty"` // chosen before the filesystem is made
	// LUKSUUID is that of its LUKS2 header, chosen before it is made; empty: the
	// volume is not encrypted.
	LUKSUUID   string            `json:"luksUUID,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Source     Source            `json:"source,omitzero"`
	Created    time.Time         `json:"created,omitzero"`
	Location   Location          `json:"location"`

	Health            Health            `json:"health"`            // by VolumeHealthOf
	OperationalStatus OperationalStatus `json:"operationalStatus"` // by OperationalStatusOf
	CSIStatus         CSIStatus         `json:"csiStatus"`         // by Moved and Failed
	Usage             VolumeUsage       `json:"usage"`             // by UsageMoved and UsageFailed

	Publications []Publication `json:"publications,omitempty"`

	// Lost is what an operator let go of when the volume was copied off a bad drive,
	// until he lets it be.
	Lost *Lost `json:"lost,omitempty"`

	// Mirror is which leg of a mirror holds everything; nil of other volumes, and of a
	// mirror of which nothing is written down.
	Mirror *Mirror `json:"mirror,omitempty"`

	// Failure is why CSIStatus is FAILED, or was until the try that is under way.
	Failure      *Failure[CSIStatus]   `json:"failure,omitempty"`
	UsageFailure *Failure[VolumeUsage] `json:"usageFailure,omitempty"` // the same for Usage
}

// Location is what a volume is made of. The drives are ids, in the order of
// their copies for a mirror.
type Location struct {
	Kind      LocationKind `json:"kind"`
	Drives    []string     `json:"drives,omitempty"`
	Partition string       `json:"partition,omitempty"` // unique GUID in the GPT
	VG        string       `json:"vg,omitempty"`
	LV        string       `json:"lv,omitempty"`
	Instance  string       `json:"instance,omitempty"` // tag of the logical volume: tells it from another one of its name
	Pool      string       `json:"pool,omitempty"`     // of a thin volume
	// Found says that the volume was found again in the middle of a move of its group: the
	// drives are in no order, and none of them is known to be the one that is left.
	Found bool `json:"found,omitempty"`
}

// Mirrored says whether the volume outlives one of its drives.
func (l Location) Mirrored() bool { return l.Kind == LocationMirror && len(l.Drives) > 1 }

// Publication is one path at which the volume is to be found.
type Publication struct {
	Path     string    `json:"path"`
	Staging  bool      `json:"staging,omitempty"` // the one place of the node that the others are bound to
	ReadOnly bool      `json:"readOnly,omitempty"`
	Access   Access    `json:"access,omitempty"`
	Flags    string    `json:"flags,omitempty"`   // a hash of the mount options, which are written down nowhere
	Context  string    `json:"context,omitempty"` // the SELinux label of all files, where it was mounted with one
	Device   string    `json:"device,omitempty"`  // "8:1 sda1": what was mounted, however the drive is named when it is back
	Since    time.Time `json:"since,omitzero"`
	Boot     string    `json:"boot,omitempty"` // of the machine, as it calls it: no mount outlives it
}

// Failure is what keeps FAILED from being a sink: what went wrong, from where,
// and who tries again.
type Failure[S ~uint8] struct {
	Before S         `json:"before"` // the state in which it failed
	Cause  string    `json:"cause"`
	Since  time.Time `json:"since,omitzero"` // the first of these tries
	Tries  int       `json:"tries"`
	Retry  RetryRule `json:"retry"`
	Next   time.Time `json:"next,omitzero"` // the next try of RetryTimed
}

// again is this failure after the one before, if that was of the same thing.
func (f Failure[S]) again(before S, last *Failure[S]) *Failure[S] {
	f.Before, f.Tries = before, 1
	if last != nil && last.Before == before {
		f.Since, f.Tries = last.Since, last.Tries+1
	}
	return &f
}

// Rest is the status of a volume that nothing is being done to, as its
// publications have it: CREATED, VOLUME_READY or PUBLISHED.
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

// State is where the volume stands in the table of CSI moves.
func (v *Volume) State() CSIState {
	s := CSIState{Status: v.CSIStatus, Rest: v.Rest()}
	if v.Failure != nil {
		s.Before = v.Failure.Before
	}
	return s
}

// Moved is the volume after an event other than a failure. Publications are
// brought up to date before, not by it.
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

// undecided says that an operator has to say whether the volume may be used.
func (v *Volume) undecided() bool {
	return v.CSIStatus == CSIFailed && v.Failure != nil && v.Failure.Retry == RetryOperator
}

// Undecided says why the volume may not be used before an operator decides; empty when
// it may.
func (v *Volume) Undecided() string {
	if !v.undecided() {
		return ""
	}
	return v.Failure.Cause
}

// Failed is the volume after what was being done to it failed. Before and Tries
// are counted here.
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
	if v.undecided() && v.Failure.Before == before { // another failure decides nothing
		return v, nil
	}
	v.CSIStatus, v.Failure = to, f.again(before, v.Failure)
	return v, nil
}

// UsageMoved is the volume after an event of its working life other than a failure.
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
		v.UsageFailure = nil
	}
	return v, nil
}

// UsageFailed is the volume after letting it go failed.
func (v Volume) UsageFailed(f Failure[VolumeUsage]) (Volume, error) {
	to, err := v.Usage.Next(VolumeUsageFail)
	if err != nil {
		return v, err
	}
	v.UsageFailure, v.Usage = f.again(v.Usage, v.UsageFailure), to
	return v, nil
}
