package drivebay

import (
	"slices"
	"sort"
	"strings"
	"time"
)

// VolumeView is a volume with its condition and the work under way.
type VolumeView struct {
	Volume
	Condition Condition `json:"condition"`
	// Facts are what the condition is based on. A caller that asks about a path replaces
	// their mounts.
	Facts *Facts `json:"-"`
	// Work describes the work under way for people; empty: none.
	Work string `json:"work,omitempty"`
	// Progress is that of the copy or the wipe that the work does now; nil: neither is under way.
	Progress *Progress `json:"progress,omitempty"`
	// Space is the space of its filesystem; nil: it is not mounted, or was not read. A change of it
	// alone does not change the number of the set.
	Space *Space `json:"space,omitempty"`
}

// Space is the space of a filesystem in bytes.
type Space struct {
	Used uint64 `json:"used"`
	Free uint64 `json:"free"` // for users other than root
}

// SpaceOf returns the space of the filesystem in a volume's facts; nil: it was not read.
func SpaceOf(f *Facts) *Space {
	if f.FS == nil || f.FS.Bytes == nil || f.FS.Free == nil {
		return nil
	}
	unused := *f.FS.Free + f.FS.Reserved
	return &Space{Used: *f.FS.Bytes - min(unused, *f.FS.Bytes), Free: *f.FS.Free}
}

// VolumeSet is all volumes at one moment. It does not change after it is published.
type VolumeSet struct {
	Seq       uint64           `json:"seq"` // 0: no listing is complete yet
	At        time.Time        `json:"at"`
	Volumes   []*VolumeView    `json:"volumes"`             // by ID
	Snapshots []VolumeSnapshot `json:"snapshots,omitempty"` // by ID
	Found     []FoundVolume    `json:"found,omitempty"`     // by ID
	Drives    *Snapshot        `json:"-"`                   // the drives at that moment
	Problems  []string         `json:"problems,omitempty"`
}

// FoundVolume is a volume that is only shown: it has no record, and its drive is not claimed or it has an Issue.
type FoundVolume struct {
	ID     string       `json:"id"`
	Name   string       `json:"name,omitempty"` // if the drive has it
	Kind   LocationKind `json:"kind"`
	Drives []string     `json:"drives"`
	Size   uint64       `json:"size"`            // bytes that it occupies, a header included
	Issue  string       `json:"issue,omitempty"` // why no record can be made of it, whether its drive is claimed or not
	Next   string       `json:"next,omitempty"`  // what ends the Issue
}

// Get returns a volume by its id.
func (s *VolumeSet) Get(id string) (*VolumeView, bool) {
	i, ok := slices.BinarySearchFunc(s.Volumes, id, func(v *VolumeView, id string) int { return strings.Compare(v.ID, id) })
	if !ok {
		return nil, false
	}
	return s.Volumes[i], true
}

// After returns the volumes whose ids come after id, which need not exist.
func (s *VolumeSet) After(id string) []*VolumeView {
	return s.Volumes[sort.Search(len(s.Volumes), func(i int) bool { return s.Volumes[i].ID > id }):]
}

// GetSnapshot returns a snapshot of a volume by its id.
func (s *VolumeSet) GetSnapshot(id string) (*VolumeSnapshot, bool) {
	i, ok := slices.BinarySearchFunc(s.Snapshots, id, func(v VolumeSnapshot, id string) int { return strings.Compare(v.ID, id) })
	if !ok {
		return nil, false
	}
	return &s.Snapshots[i], true
}

// VolumeRecord is what is stored about a volume: the volume itself and the work on it. A
// daemon that finds unfinished Work continues it.
type VolumeRecord struct {
	Volume Volume `json:"volume"`
	Work   *Work  `json:"work,omitempty"`
	Scrub  *Scrub `json:"scrub,omitempty"`  // the newest result of the checks of its filesystem
	NoneOn string `json:"noneOn,omitempty"` // the drive that had nothing of its group when the other one was given up in mid-move
	// Reasons are those reasons of its condition that events have reported and that still hold.
	Reasons []string `json:"reasons,omitempty"`
	// Left are copies of the volume that could not be wiped, because their drives were offline. Each is wiped when its drive returns.
	Left     []LeftCopy `json:"left,omitempty"`
	FSErrors uint64     `json:"fsErrors,omitempty"` // how many errors the filesystem had counted when it was last mounted, until it is repaired
	GaveUp   string     `json:"gaveUp,omitempty"`   // the mount of the filesystem that stopped taking writes: the kernel says it once
	// LostWrites is how often in the day up to LostAt the kernel said that the filesystem has lost a write.
	LostWrites uint64    `json:"lostWrites,omitempty"`
	LostAt     time.Time `json:"lostAt,omitzero"`
}

// Work is an operation that writes to drives. Everything is chosen before it starts, so
// that it can be repeated after an interruption with the same result.
type Work struct {
	Op    WorkOp    `json:"op"`
	Since time.Time `json:"since,omitzero"`
	Size  uint64    `json:"size,omitempty"` // the new size of the volume in bytes; for WorkRemove that of a growth which it cut short
	// PVs holds the UUIDs of the physical volumes to make, by drive id.
	PVs map[string]string `json:"pvs,omitempty"`
	// Move is the move, for WorkMove.
	Move *Move `json:"move,omitempty"`
	// Made are the steps that are done and not repeated, above all wipes.
	Made []string `json:"made,omitempty"`
}

// WorkOp is a kind of Work.
type WorkOp string

const (
	WorkCreate  WorkOp = "create"
	WorkExpand  WorkOp = "expand"
	WorkRemove  WorkOp = "remove"
	WorkMove    WorkOp = "move"
	WorkEncrypt WorkOp = "encrypt" // of a volume that was made without a passphrase
)

// ForgottenVolume is a volume or snapshot whose record was deleted although it was not
// removed. When it returns with its drive, it is not the one that a new request with its
// name asks for.
type ForgottenVolume struct {
	ID       string    `json:"id"`
	Instance string    `json:"instance"` // GUID of its partition, or tag of its logical volume
	At       time.Time `json:"at"`
	// Replaced is true if a new volume has its name since, or if it was deleted while a
	// drive of it that may return was missing: it is not adopted again.
	Replaced bool `json:"replaced,omitempty"`
}

// Key returns the key of the record in a store.
func (f ForgottenVolume) Key() string { return f.ID + "/" + f.Instance }

// Remains are ranges of a partition in which volumes leave data when they move off it.
type Remains struct {
	Drive     string         `json:"drive"`
	Partition string         `json:"partition"` // GUID
	Ranges    []RemainsRange `json:"ranges"`
	Tries     int            `json:"tries,omitempty"` // failed tries to wipe them
}

// RemainsRange is a range of a partition in bytes, and how to wipe it.
type RemainsRange struct {
	Start uint64 `json:"start"`
	Size  uint64 `json:"size"`
	Wipe  Wipe   `json:"wipe"`
}

// SnapshotRecord is what is stored about a snapshot.
type SnapshotRecord struct {
	Snapshot VolumeSnapshot `json:"snapshot"`
	Work     *Work          `json:"work,omitempty"`
}
