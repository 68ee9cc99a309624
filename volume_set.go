package drivebay

import (
	"slices"
	"sort"
	"strings"
	"time"
)

// VolumeView is a volume with what is known of it.
type VolumeView struct {
	Volume
	Condition Condition `json:"condition"`
	// Facts are what the condition stands on, the mounts left out: who asks about a
	// path adds that path's.
	Facts *Facts `json:"-"`
	// Work is what is under way, for people; empty: nothing.
	Work string `json:"work,omitempty"`
}

// VolumeSet is all volumes at one moment. Nobody changes one that has been
// published.
type VolumeSet struct {
	Seq       uint64           `json:"seq"` // 0: nothing has been looked at yet
	At        time.Time        `json:"at"`
	Volumes   []*VolumeView    `json:"volumes"`             // by ID
	Snapshots []VolumeSnapshot `json:"snapshots,omitempty"` // by ID
	Found     []FoundVolume    `json:"found,omitempty"`     // by ID
	Drives    *Snapshot        `json:"-"`                   // the drives that this stands on
	Problems  []string         `json:"problems,omitempty"`
}

// FoundVolume is a volume of ours on a drive that is not claimed, in no record: it came
// with the drive from another machine, or the records were lost. It is shown only.
type FoundVolume struct {
	ID     string       `json:"id"`
	Name   string       `json:"name,omitempty"` // where it is written on the drive
	Kind   LocationKind `json:"kind"`
	Drives []string     `json:"drives"`
	Size   uint64       `json:"size"` // bytes that it takes, a header included
}

// Get finds a volume by its id.
func (s *VolumeSet) Get(id string) (*VolumeView, bool) {
	i, ok := slices.BinarySearchFunc(s.Volumes, id, func(v *VolumeView, id string) int { return strings.Compare(v.ID, id) })
	if !ok {
		return nil, false
	}
	return s.Volumes[i], true
}

// Find is Get for people: by id, name, or the beginning of an id that only one has.
func (s *VolumeSet) Find(what string) (*VolumeView, bool) {
	if v, ok := s.Get(what); ok || what == "" {
		return v, ok
	}
	var hit *VolumeView
	for _, v := range s.Volumes {
		if v.Name == what || len(what) >= 6 && strings.HasPrefix(v.ID, what) {
			if hit != nil {
				return nil, false
			}
			hit = v
		}
	}
	return hit, hit != nil
}

// After are the volumes whose ids come after one, which need not exist any more.
func (s *VolumeSet) After(id string) []*VolumeView {
	return s.Volumes[sort.Search(len(s.Volumes), func(i int) bool { return s.Volumes[i].ID > id }):]
}

// GetSnapshot finds a snapshot of a volume by its id.
func (s *VolumeSet) GetSnapshot(id string) (*VolumeSnapshot, bool) {
	i, ok := slices.BinarySearchFunc(s.Snapshots, id, func(v VolumeSnapshot, id string) int { return strings.Compare(v.ID, id) })
	if !ok {
		return nil, false
	}
	return &s.Snapshots[i], true
}

// VolumeRecord is what is remembered of a volume: itself, and what is being done
// to it. Whoever finds Work unfinished takes it up again.
type VolumeRecord struct {
	Volume Volume `json:"volume"`
	Work   *Work  `json:"work,omitempty"`
	Scrub  *Scrub `json:"scrub,omitempty"` // the newest verdict on its filesystem
	// Reasons are those of its condition that events have named and that still hold.
	Reasons []string `json:"reasons,omitempty"`
}

// Work is a piece of destructive work with everything chosen before it was begun,
// so that doing it twice does it once.
type Work struct {
	Op    WorkOp    `json:"op"`
	Since time.Time `json:"since,omitzero"`
	Size  uint64    `json:"size,omitempty"` // in bytes, that the volume is to have
	// PVs are the physical volumes to be made, by drive id.
	PVs map[string]string `json:"pvs,omitempty"`
	// Move is where a volume comes from and goes to, of WorkMove.
	Move *Move `json:"move,omitempty"`
	// Made are the steps that need no second look: a wipe, above all.
	Made []string `json:"made,omitempty"`
}

// WorkOp names a kind of work.
type WorkOp string

const (
	WorkCreate WorkOp = "create"
	WorkExpand WorkOp = "expand"
	WorkRemove WorkOp = "remove"
	WorkMove   WorkOp = "move"
)

// ForgottenVolume is a volume or snapshot whose record was dropped while it was not
// removed: when it returns on its drive it is not the one that a new request by its
// name asks for.
type ForgottenVolume struct {
	ID       string    `json:"id"`
	Instance string    `json:"instance"` // GUID of its partition, or tag of its logical volume
	At       time.Time `json:"at"`
	// Replaced says that a new volume has its name since, or that it was deleted without a
	// drive that may return: it is not taken in again.
	Replaced bool `json:"replaced,omitempty"`
}

// Key is the name of the record in a store.
func (f ForgottenVolume) Key() string { return f.ID + "/" + f.Instance }

// Remains are ranges of a partition in which volumes that move off it leave their data.
type Remains struct {
	Drive     string         `json:"drive"`
	Partition string         `json:"partition"` // GUID
	Ranges    []RemainsRange `json:"ranges"`
	Tries     int            `json:"tries,omitempty"` // that failed to wipe them
}

// RemainsRange is a range of a partition in bytes, and how it is to be wiped.
type RemainsRange struct {
	Start uint64 `json:"start"`
	Size  uint64 `json:"size"`
	Wipe  Wipe   `json:"wipe"`
}

// SnapshotRecord is what is remembered of a snapshot.
type SnapshotRecord struct {
	Snapshot VolumeSnapshot `json:"snapshot"`
	Work     *Work          `json:"work,omitempty"`
}
