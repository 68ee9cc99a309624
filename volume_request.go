package drivebay

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// SizeRange is the requested size in bytes; 0 is no limit.
type SizeRange struct {
	Required uint64 `json:"required,omitempty"`
	Limit    uint64 `json:"limit,omitempty"`
}

// Holds reports whether a size is within the range.
func (r SizeRange) Holds(size uint64) bool {
	return size >= r.Required && (r.Limit == 0 || size <= r.Limit)
}

// Source is the snapshot or volume that a new volume is a copy of; empty: none.
type Source struct {
	Snapshot string `json:"snapshot,omitempty"`
	Volume   string `json:"volume,omitempty"`
}

// VolumeRequest asks for a volume.
type VolumeRequest struct {
	Name   string
	Size   SizeRange
	Block  bool   // a block device, not a filesystem
	FSType string // of the capability; empty: that of the class
	Class  Class
	Source Source
	// Nodes are the nodes of a cluster on which it may be made, the best first; nil: any, the one with
	// the most room first. The engine of a machine
	// does not read them.
	Nodes []string
	// Secrets have the passphrase of an encrypted volume. What is derived from it is only
	// in the header of the volume.
	Secrets Secrets
	// KeyAtStage requests an encrypted volume without its passphrase: the first StageVolume brings it,
	// and writes the header and the filesystem.
	KeyAtStage bool
}

// Class is what a StorageClass requires of its volumes.
type Class struct {
	Drives     Type    // UNKNOWN: any
	Backing    Backing // never empty
	Wipe       Wipe    // never empty
	Encryption string  // "" or EncryptionLUKS2
	FSType     string  // empty only where the capacity for block volumes is asked
}

// Backing is what a new volume is made of.
type Backing string

// Wipe is how the data of a deleted volume are erased.
type Wipe string

const (
	BackingPartition Backing = "partition"
	BackingDrive     Backing = "drive"
	BackingLVM       Backing = "lvm"
	BackingThin      Backing = "thin"
	BackingMirror    Backing = "mirror"

	WipeDiscard Wipe = "discard" // the blocks are discarded; where the drive cannot do that, zeros are written
	WipeZero    Wipe = "zero"
	WipeNone    Wipe = "none" // signatures only
)

// Parameters of a StorageClass.
const (
	ParameterClass      = "drivebay.io/class"
	ParameterBacking    = "drivebay.io/backing"
	ParameterWipe       = "drivebay.io/wipe"
	ParameterEncryption = "drivebay.io/encryption"
	ParameterFSType     = "csi.storage.k8s.io/fstype"
)

// EncryptionLUKS2 is the only kind of encryption.
const EncryptionLUKS2 = "luks2"

// FSTypes are the filesystems that a volume can have; the first is the default.
var FSTypes = []string{"ext4", "xfs", "btrfs"}

// ParseClass returns the class that the parameters of a StorageClass describe. It refuses
// unknown ones: a misspelled parameter must not be ignored.
func ParseClass(parameters map[string]string) (Class, error) {
	c := Class{Backing: BackingPartition, Wipe: WipeDiscard, FSType: FSTypes[0]}
	for _, key := range sortedKeys(parameters) {
		value := parameters[key]
		var err error
		switch key {
		case ParameterClass:
			c.Drives, err = oneOf(value, map[string]Type{"any": TypeUnknown, "hdd": TypeHDD, "ssd": TypeSSD, "nvme": TypeNVMe})
		case ParameterBacking:
			c.Backing, err = oneOf(value, words(BackingPartition, BackingDrive, BackingLVM, BackingThin, BackingMirror))
		case ParameterWipe:
			c.Wipe, err = oneOf(value, words(WipeDiscard, WipeZero, WipeNone))
		case ParameterEncryption:
			c.Encryption, err = oneOf(value, words(EncryptionLUKS2))
		case ParameterFSType:
			c.FSType, err = oneOf(value, words(FSTypes...))
		default:
			// Keys of the sidecars: the provisioner removes those that it knows, and adds some
			// of its own (external-provisioner, --extra-create-metadata).
			if !strings.HasPrefix(key, "csi.storage.k8s.io/") {
				err = fmt.Errorf("%w: there is no such parameter", ErrInvalid)
			}
		}
		if err != nil {
			return c, fmt.Errorf("parameter %s: %w", key, err)
		}
	}
	return c, nil
}

func words[S ~string](all ...S) map[string]S {
	out := map[string]S{}
	for _, w := range all {
		out[string(w)] = w
	}
	return out
}

func oneOf[V any](value string, known map[string]V) (V, error) {
	if v, ok := known[value]; ok {
		return v, nil
	}
	var none V
	return none, fmt.Errorf("%w: %q; want one of %s", ErrInvalid, value, strings.Join(sortedKeys(known), ", "))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Capacity is the space for new volumes of a class, in bytes.
type Capacity struct {
	Available uint64 `json:"available"` // in total
	Largest   uint64 `json:"largest"`   // of one volume: this size can be made, one extent more cannot
	Smallest  uint64 `json:"smallest"`
}

// DriveRoom is the space that one drive has left for new volumes, whether or not it may get any now.
type DriveRoom struct {
	Backings map[Backing]BackingRoom // of BackingMirror: one leg; a backing without space is not in it
	Group    string                  // the volume group that the drive is in; "": none
	Kind     LocationKind            // of the volumes in that group; UNKNOWN: it has none yet
	Members  []string                // ids of the drives of the group, sorted
}

// BackingRoom is the space of a drive for volumes of one backing in bytes. An encrypted volume needs
// some of it for its header.
type BackingRoom struct {
	Largest   uint64 // of one volume
	Available uint64 // of all volumes together
}

// RoomQuery asks whether a volume has room: to leave a drive, or else to grow to a size.
type RoomQuery struct {
	Leave string // id of one of its drives
	Size  uint64 // bytes
}

// VolumeRoom answers a RoomQuery, by the drives and volumes as they are now.
type VolumeRoom struct {
	Against string `json:"against,omitempty"` // why there is no room now; empty: there is
	Target  string `json:"target,omitempty"`  // id of the drive that a volume that leaves would move to
	Moves   string `json:"moves,omitempty"`   // id of the volume that moves first, so that this one can grow
}

// VolumeSnapshot is a volume as it was at one moment.
type VolumeSnapshot struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Source   string    `json:"source"` // id of the volume
	Node     string    `json:"node"`
	Size     uint64    `json:"size"`
	Created  time.Time `json:"created,omitzero"`
	Location Location  `json:"location"`
	FSType   string    `json:"fsType,omitempty"`
	Block    bool      `json:"block,omitempty"`
	LUKSUUID string    `json:"luksUUID,omitempty"` // that of its source; empty: not encrypted
	// Unavailable is why it cannot be used now: its drive or its node is away. No record has it.
	Unavailable string `json:"unavailable,omitempty"`
}

// Access is how pods may use a volume on its node.
type Access uint8

const (
	AccessUnknown      Access = iota
	AccessWriter              // at one path
	AccessReader              // read-only, at one path
	AccessSingleWriter        // at one path
	AccessMultiWriter         // at any number of paths
)

// Exclusive reports whether only one path may have the volume, by the tables of the CSI
// specification for NodePublishVolume and a plugin with SINGLE_NODE_MULTI_WRITER. An
// orchestrator that knows this mode requests it for a volume of several pods;
// SINGLE_NODE_WRITER comes from one that does not know it.
func (a Access) Exclusive() bool {
	switch a {
	case AccessWriter, AccessReader, AccessSingleWriter:
		return true
	}
	return false
}

// StageRequest asks to make a volume ready on its node. Options are for the mount only:
// they are stored nowhere.
type StageRequest struct {
	Volume  string
	Path    string
	Block   bool
	FSType  string // empty: the one that it has
	Options []string
	Access  Access
	Secrets Secrets
}

// PublishRequest asks to make a staged volume available at a path.
type PublishRequest struct {
	Volume   string
	Staging  string
	Target   string
	Block    bool
	FSType   string
	Options  []string
	Access   Access
	ReadOnly bool
	Pod      Pod // that uses the path; zero: not known
}

// Secrets are the secrets of one call. They are not stored and cannot be printed.
type Secrets map[string]string

func (Secrets) String() string               { return "(secrets)" }
func (Secrets) GoString() string             { return "(secrets)" }
func (Secrets) MarshalText() ([]byte, error) { return []byte("(secrets)"), nil }
func (Secrets) MarshalJSON() ([]byte, error) { return []byte(`"(secrets)"`), nil }

// SecretPassphrase is the key of the passphrase of an encrypted volume among the
// secrets of a call.
const SecretPassphrase = "passphrase"

// StatsRequest asks for the usage and condition of a volume at a path.
type StatsRequest struct {
	Volume  string
	Path    string
	Staging string // may be empty
}

// VolumeStats is the answer to a StatsRequest.
type VolumeStats struct {
	Bytes     Amount
	Inodes    *Amount // nil: the number is not fixed, or it is a block volume
	Condition Condition
}

// Amount is a number of bytes or inodes.
type Amount struct{ Total, Used, Available uint64 }

// VolumeCapabilities is what a machine supports besides plain volumes.
type VolumeCapabilities struct {
	Snapshots bool // and clones: thin logical volumes work on this machine
	Unknown   bool // whether it has them is not known yet
}
