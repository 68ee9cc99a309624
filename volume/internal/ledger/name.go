package ledger

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
)

// IsID reports whether a text has the form of our ids: 26 characters of base 32. An id follows from
// the name alone, and does not name the node.
func IsID(id string) bool {
	return len(id) == len(drivebay.ShortHash("")) && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// GPT names of partitions have at most 36 characters (UEFI 2.10, 5.3.3).
const PVPrefix = drivebay.PVPrefix

// NewPrefix begins the name of a partition that a volume is being copied to.
const NewPrefix = content.OursPrefix + "new-"

// NewName returns the name of the partition that a volume is copied to.
func NewName(id string) string { return NewPrefix + id[:min(len(id), 22)] }

// PartitionName returns the name of the partition of a volume.
func PartitionName(id string) string { return content.OursPrefix + id }

// IDOfPartition returns the id of the volume that one of our partitions belongs to; "" for a physical
// volume or a foreign partition.
func IDOfPartition(name string) string {
	id, ours := strings.CutPrefix(name, content.OursPrefix)
	if !ours || len(id) != len(drivebay.ShortHash("")) || strings.Contains(id, "-") {
		return ""
	}
	return id
}

// PVName returns the name of the partition of a physical volume.
func PVName(uuid string) string { return PVPrefix + drivebay.ShortHash("pv\x00" + uuid)[:8] }

// NewGroup returns a random id for a volume group.
func NewGroup() string { return strings.ToLower(rand.Text()[:8]) }

// NewUUID returns a random UUID (RFC 9562, version 4).
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return UUIDAs(4, b)
}

// UUIDAs formats bytes as a UUID of a version.
func UUIDAs(version byte, b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|version<<4, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// The types of our partitions still describe a volume after the store has lost it. A partition of
// TypeMaking is being made or wiped, and belongs to no volume yet or any more.
const (
	TypeMaking  = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e01"
	typeFS      = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e02"
	TypeRaw     = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e03"
	typeRawPart = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e04"
	TypePV      = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e05"

	typeLUKSFS      = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e12"
	typeLUKSRaw     = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e13"
	typeLUKSRawPart = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e14"
)

// Types maps the type of a partition that is a whole volume.
var Types = map[string]struct {
	Mode      drivebay.VolumeMode
	Encrypted bool
}{
	typeFS: {drivebay.ModeFS, false}, TypeRaw: {drivebay.ModeRaw, false}, typeRawPart: {drivebay.ModeRawPart, false},
	typeLUKSFS: {drivebay.ModeFS, true}, typeLUKSRaw: {drivebay.ModeRaw, true}, typeLUKSRawPart: {drivebay.ModeRawPart, true},
}
