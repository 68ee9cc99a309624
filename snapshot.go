package drivebay

import (
	"strings"
	"time"
)

// Snapshot is one machine at one moment. It is immutable: whoever holds one may
// read it for as long as he likes, and everybody reads the same one.
type Snapshot struct {
	Seq     uint64    `json:"seq"` // grows by one with each publication
	At      time.Time `json:"at"`
	Machine Machine   `json:"machine"`
	// Complete is false while the list of drives itself could not be read whole;
	// then absence proves nothing, and no drive turns OFFLINE.
	Complete bool     `json:"complete"`
	Drives   []Drive  `json:"drives"`             // by ID
	Bays     []Bay    `json:"bays,omitempty"`     // every slot of every enclosure, empty ones too
	Problems []string `json:"problems,omitempty"` // what could not be seen, and what would let us see it
	// StoreFailing is why the record store cannot be written; "" while it can.
	StoreFailing string `json:"storeFailing,omitempty"`
}

// Machine says whose drives these are.
type Machine struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // real, recorded, simulated
}

// Bay is a place for a drive.
type Bay struct {
	Slot
	Drive string `json:"drive,omitempty"` // id; empty when the bay is empty or its drive is not known
}

// Find returns the drive that an operator means: its id, kernel name, /dev path,
// serial, WWN, or the only drive whose id begins so. Ambiguity is not a match.
func (s *Snapshot) Find(what string) (*Drive, bool) {
	if s == nil || what == "" {
		return nil, false
	}
	name := strings.TrimPrefix(what, "/dev/")
	var hit *Drive
	for i := range s.Drives {
		d := &s.Drives[i]
		if d.ID == what {
			return d, true
		}
		if d.named(what, name) {
			if hit != nil {
				return nil, false
			}
			hit = d
		}
	}
	return hit, hit != nil
}

func (d *Drive) named(what, name string) bool {
	if d.Name == name || (d.Serial != "" && strings.EqualFold(d.Serial, what)) || (d.WWN != "" && strings.EqualFold(d.WWN, what)) {
		return true
	}
	for _, p := range d.Paths {
		if p.Name == name {
			return true
		}
	}
	return len(what) >= 6 && strings.HasPrefix(d.ID, what)
}

// FindBay returns the bay of that name; "enclosure/bay" where one name is not enough.
func (s *Snapshot) FindBay(what string) (*Bay, bool) {
	var hit *Bay
	for i := range s.Bays {
		b := &s.Bays[i]
		if b.Bay == what || b.Enclosure+"/"+b.Bay == what {
			if hit != nil {
				return nil, false
			}
			hit = b
		}
	}
	return hit, hit != nil
}

// EventKind says what happened.
type EventKind string

const (
	EventAppeared    EventKind = "DriveAppeared"
	EventVanished    EventKind = "DriveVanished"
	EventReturned    EventKind = "DriveReturned"
	EventRenamed     EventKind = "DriveRenamed"
	EventMoved       EventKind = "DriveMoved"
	EventHealth      EventKind = "HealthChanged"
	EventFinding     EventKind = "FindingAdded"
	EventCleared     EventKind = "FindingCleared"
	EventIdentity    EventKind = "IdentityConflict"
	EventResized     EventKind = "DriveResized"
	EventSelfTest    EventKind = "SelfTest"
	EventLocate      EventKind = "Locate"
	EventAcknowledge EventKind = "Acknowledged"
	EventCordon      EventKind = "Cordon"
	EventClaim       EventKind = "Claim"
	EventUsage       EventKind = "UsageChanged"
	EventReplaced    EventKind = "DriveReplaced"
	EventNotReplaced EventKind = "DriveNotReplaced"
	EventWrongPulled EventKind = "WrongDrivePulled"
	EventSwapped     EventKind = "DrivesSwapped"
	EventQuarantined EventKind = "DriveQuarantined"
	EventNotReleased EventKind = "DriveNotReleased"
	EventFaultLight  EventKind = "FaultLight"
	EventForgotten   EventKind = "DriveForgotten"

	EventStoreFailed    EventKind = "StoreFailed"
	EventStoreRecovered EventKind = "StoreRecovered"
	EventStoreOlder     EventKind = "StoreOlder"

	EventVolumeCreated   EventKind = "VolumeCreated"
	EventVolumeFound     EventKind = "VolumeFound"
	EventVolumeDeleted   EventKind = "VolumeDeleted"
	EventVolumeExpanded  EventKind = "VolumeExpanded"
	EventVolumeFailed    EventKind = "VolumeFailed"
	EventVolumeReleased  EventKind = "VolumeReleased"
	EventVolumeHealed    EventKind = "VolumeHealed"
	EventVolumeNotHealed EventKind = "VolumeNotHealed"
	EventVolumeMoved     EventKind = "VolumeMoved"
	EventVolumeDataLoss  EventKind = "VolumeDataLoss" // found, or accepted
	EventVolumeLeft      EventKind = "VolumeLeft"     // something of one stays on a drive, and is nobody's
	EventVolumeAbnormal  EventKind = "VolumeAbnormal"
	EventVolumeRecovered EventKind = "VolumeRecovered"
	EventVolumeStaged    EventKind = "VolumeStaged"
	EventVolumeUnstaged  EventKind = "VolumeUnstaged"
	EventSnapshotCreated EventKind = "SnapshotCreated"
	EventSnapshotDeleted EventKind = "SnapshotDeleted"
)

// Event is one change of state, with its cause.
type Event struct {
	Seq    uint64    `json:"seq"`
	At     time.Time `json:"at"`
	Kind   EventKind `json:"kind"`
	Drive  string    `json:"drive,omitempty"`
	Volume string    `json:"volume,omitempty"`
	From   string    `json:"from,omitempty"`
	To     string    `json:"to,omitempty"`
	Cause  string    `json:"cause"` // a sentence: what was seen, on which drive, in which bay
}

// Record is what is remembered of a drive across restarts. All of it is lost
// without losing data: a drive is known again the next time it is seen.
type Record struct {
	Drive    Drive    `json:"drive"`   // as it was last published, without Evidence and Kernel
	History  []Sample `json:"history"` // oldest first, thinned with age
	Memory   Memory   `json:"memory"`
	Cordoned bool     `json:"cordoned,omitempty"`
	Claim    *Claim   `json:"claim,omitempty"`
	Usage    Usage    `json:"usage"`
	Leaving  *Leaving `json:"leaving,omitempty"` // nil while it is IN_USE
	// Succeeds says whose bay it was put into, when it was new; nil: nobody's.
	Succeeds *Succession `json:"succeeds,omitempty"`
	// Disks are the kernel's block devices that the drive was when it was last listed.
	Disks []Disk `json:"disks,omitempty"`
	// FullSize is the largest size that the drive had, in bytes.
	FullSize uint64 `json:"fullSize,omitempty"`
	// Duplicate says that it was here together with the drive whose serial and worldwide
	// name it has: it is another drive.
	Duplicate bool `json:"duplicate,omitempty"`
	// Kept are the findings in spite of which an operator keeps it.
	Kept []string `json:"kept,omitempty"`
	// LastShort and LastLong are when a self-test was last started by us.
	LastShort time.Time `json:"lastShort,omitzero"`
	LastLong  time.Time `json:"lastLong,omitzero"`
}

// Memory is what the verdict on a drive remembers, so that it does not flap.
type Memory struct {
	Findings []Finding         `json:"findings,omitempty"` // standing, those whose cause is gone included
	Seen     map[string]int    `json:"seen,omitempty"`     // rounds in a row that a candidate was seen
	Acked    map[string]uint64 `json:"acked,omitempty"`    // code -> level that an operator accepted
}

// RawPage is one answer of a drive as it came, for those who decode themselves.
type RawPage struct {
	Page  string `json:"page"`
	Data  []byte `json:"data,omitempty"`
	Error string `json:"error,omitempty"`
}
