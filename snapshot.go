package drivebay

import "time"

// Snapshot is the state of one machine at one moment. It is immutable: all readers share
// it, for any length of time.
type Snapshot struct {
	Seq uint64 `json:"seq"` // grows by one with each publication
	// StateSeq grows when something other than a counter has changed. On a machine in use a counter changes with each look.
	StateSeq uint64    `json:"-"`
	At       time.Time `json:"at"`
	Machine  Machine   `json:"machine"`
	// Complete is false if the list of drives could not be read completely. Then absence
	// proves nothing, and no drive turns OFFLINE.
	Complete bool     `json:"complete"`
	Drives   []Drive  `json:"drives"`             // by ID
	Bays     []Bay    `json:"bays,omitempty"`     // every slot of every enclosure, including empty ones
	Problems []string `json:"problems,omitempty"` // what could not be read, and what would make it readable
	// StoreFailing is why the record store cannot be written; "" while it can.
	StoreFailing string `json:"storeFailing,omitempty"`
}

// Machine identifies the machine that has the drives.
type Machine struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // real, recorded, simulated
	// Hardware is what the firmware says about the machine; nil if it says nothing.
	Hardware *Hardware `json:"hardware,omitempty"`
}

// Bay is a place for a drive.
type Bay struct {
	Slot
	Drive string `json:"drive,omitempty"` // id; empty when the bay is empty or its drive is not known
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
	EventVolumeDataLoss  EventKind = "VolumeDataLoss" // found, or accepted by an operator
	EventVolumeLeft      EventKind = "VolumeLeft"     // data of a volume stay on a drive and belong to no volume
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
	Place  string    `json:"place,omitempty"` // of the drive then: "server ACME R740, serial ABC123, bay 13"
	Cause  string    `json:"cause"`           // a sentence: what was observed, on which drive, in which bay
}

// Record is what is stored about a drive across restarts. Its loss loses no user data: a
// new record is made the next time the drive is listed.
type Record struct {
	Drive    Drive    `json:"drive"`   // as it was last published, without Evidence and Kernel
	History  []Sample `json:"history"` // oldest first, thinned with age
	Memory   Memory   `json:"memory"`
	Cordoned bool     `json:"cordoned,omitempty"`
	Claim    *Claim   `json:"claim,omitempty"`
	Usage    Usage    `json:"usage"`
	Leaving  *Leaving `json:"leaving,omitempty"` // nil while it is IN_USE
	// Succeeds names the drive that was in its bay before it, when it was new; nil: there was none.
	Succeeds *Succession `json:"succeeds,omitempty"`
	// Disks are the kernel's block devices of the drive when it was last listed.
	Disks []DiskIdentity `json:"disks,omitempty"`
	// FullSize is the largest size that the drive had, in bytes.
	FullSize uint64 `json:"fullSize,omitempty"`
	// Duplicate is true if it was listed together with the drive that has the same serial
	// and worldwide name: the two are different drives.
	Duplicate bool `json:"duplicate,omitempty"`
	// Forced is true while it is REMOVING by force: volumes may still be on it.
	Forced bool     `json:"forced,omitempty"`
	Kept   []string `json:"kept,omitempty"`   // the findings despite which an operator keeps it
	Logged string   `json:"logged,omitempty"` // its errors in the kernel's log, as package kernellog encodes them
	// LastShort and LastLong are when the daemon last started a self-test.
	LastShort time.Time `json:"lastShort,omitzero"`
	LastLong  time.Time `json:"lastLong,omitzero"`
}

// Memory is the history of the verdict on a drive, kept so that it does not flap.
type Memory struct {
	Findings []Finding         `json:"findings,omitempty"` // the standing ones, also with a cause that is gone
	Seen     map[string]int    `json:"seen,omitempty"`     // code -> rounds in a row, of a finding not confirmed yet
	SeenAt   time.Time         `json:"seenAt,omitzero"`    // of the last round
	Acked    map[string]uint64 `json:"acked,omitempty"`    // code -> level that an operator accepted
}

// RawPage is one answer of a drive, not decoded, for clients that decode it themselves.
type RawPage struct {
	Page  string `json:"page"`
	Data  []byte `json:"data,omitempty"`
	Error string `json:"error,omitempty"`
}
