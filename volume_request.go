package drivebay

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// SizeRange is what a caller wants of a size, in bytes; 0 says nothing.
type SizeRange struct {
	Required uint64 `json:"required,omitempty"`
	Limit    uint64 `json:"limit,omitempty"`
}

// Holds says whether a size is one of those that are wanted.
func (r SizeRange) Holds(size uint64) bool {
	return size >= r.Required && (r.Limit == 0 || size <= r.Limit)
}

// Source is what a volume begins with; empty: with nothing.
type Source struct {
	Snapshot string `json:"snapshot,omitempty"`
	Volume   string `json:"volume,omitempty"`
}

// VolumeRequest asks for a volume.
type VolumeRequest struct {
	Name   string
	Size   SizeRange
	Block  bool   // a block device, not a filesystem
	FSType string // of the capability; empty: the class's
	Class  Class
	Source Source
	// Secrets have the passphrase of a volume that is encrypted; what is made of it
	// is in the volume's own header, and nowhere else.
	Secrets Secrets
}

// Class is what a StorageClass says of its volumes.
type Class struct {
	Drives     Type    // UNKNOWN: any
	Backing    Backing // never empty
	Wipe       Wipe    // never empty
	Encryption string  // "" or EncryptionLUKS2
	FSType     string  // never empty
}

// Backing is what a volume is to be made of.
type Backing string

// Wipe is what becomes of the data of a deleted volume.
type Wipe string

const (
	BackingPartition Backing = "partition"
	BackingDrive     Backing = "drive"
	BackingLVM       Backing = "lvm"
	BackingThin      Backing = "thin"
	BackingMirror    Backing = "mirror"

	WipeDiscard Wipe = "discard" // the drive is told that nobody needs it; where it cannot be told, zeros
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

// EncryptionLUKS2 is the one way of encryption that there is.
const EncryptionLUKS2 = "luks2"

// FSTypes are the filesystems that a volume can have; the first is the default.
var FSTypes = []string{"ext4", "xfs", "btrfs"}

// ParseClass reads the parameters of a class. What is not known is refused: a
// word that was misspelt would be a promise that is not kept.
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
			// Keys of the sidecars: the provisioner takes out those that it knows, and adds some
			// by itself (external-provisioner, --extra-create-metadata).
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
	return none, fmt.Errorf("%w: %q is none of %s", ErrInvalid, value, strings.Join(sortedKeys(known), ", "))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Capacity is what can be made of a class of volumes.
type Capacity struct {
	Available uint64 `json:"available"` // in all
	Largest   uint64 `json:"largest"`   // of one volume: a volume of this size can be made, one extent more cannot
	Smallest  uint64 `json:"smallest"`
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
	LUKSUUID string    `json:"luksUUID,omitempty"` // of what it is a copy of; empty: not encrypted
}

// Access is who may use a volume, and how, on its one node.
type Access uint8

const (
	AccessUnknown      Access = iota
	AccessWriter              // at one path
	AccessReader              // read-only, at one path
	AccessSingleWriter        // at one path
	AccessMultiWriter         // at any number of paths
)

// Exclusive says whether only one path may have the volume: the CSI specification's
// tables for NodePublishVolume, as they are for those who offer
// SINGLE_NODE_MULTI_WRITER. Whoever knows of that asks for it where several pods may
// have a volume; SINGLE_NODE_WRITER is for those who do not.
func (a Access) Exclusive() bool {
	switch a {
	case AccessWriter, AccessReader, AccessSingleWriter:
		return true
	}
	return false
}

// StageRequest asks for a volume to be made ready on its node. Options are for
// the mount alone: they are kept nowhere.
type StageRequest struct {
	Volume  string
	Path    string
	Block   bool
	FSType  string // empty: whatever it has
	Options []string
	Access  Access
	Secrets Secrets
}

// PublishRequest asks for a staged volume at a path.
type PublishRequest struct {
	Volume   string
	Staging  string
	Target   string
	Block    bool
	FSType   string
	Options  []string
	Access   Access
	ReadOnly bool
}

// Secrets come with a call and go with it. They cannot be printed.
type Secrets map[string]string

func (Secrets) String() string               { return "(secrets)" }
func (Secrets) GoString() string             { return "(secrets)" }
func (Secrets) MarshalText() ([]byte, error) { return []byte("(secrets)"), nil }
func (Secrets) MarshalJSON() ([]byte, error) { return []byte(`"(secrets)"`), nil }

// SecretPassphrase is the key of the passphrase of an encrypted volume among the
// secrets of a call.
const SecretPassphrase = "passphrase"

// StatsRequest asks how a volume is at a path.
type StatsRequest struct {
	Volume  string
	Path    string
	Staging string // may be empty
}

// VolumeStats is the answer.
type VolumeStats struct {
	Bytes     Amount
	Inodes    *Amount // nil: there is no fixed number, or it is a block volume
	Condition Condition
}

// Amount is how much there is of something.
type Amount struct{ Total, Used, Available uint64 }

// VolumePowers is what a machine can do for volumes beyond the plain.
type VolumePowers struct {
	Snapshots bool // and clones: LVM's thin volumes work here
}
