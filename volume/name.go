package volume

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
)

// volumeID derives the id of a volume from its name, so that a repeated request finds the volume,
// whatever was lost since.
func volumeID(name string) string { return idOf("volume\x00" + name) }

func snapshotID(name string) string { return idOf("snapshot\x00" + name) }

func idOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return small(sum[:16])
}

var base = base32.StdEncoding.WithPadding(base32.NoPadding)

func small(b []byte) string { return strings.ToLower(base.EncodeToString(b)) }

// isID reports whether a text has the form of our ids: 26 characters of base 32. An id follows from
// the name alone, and does not name the node.
func isID(id string) bool {
	return len(id) == len(idOf("")) && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// GPT names of partitions have at most 36 characters (UEFI 2.10, 5.3.3).
const pvPrefix = drivebay.PVPrefix

// newPrefix begins the name of a partition that a volume is being copied to.
const newPrefix = content.OursPrefix + "new-"

func newName(id string) string { return newPrefix + id[:min(len(id), 22)] }

func partitionName(id string) string { return content.OursPrefix + id }

// idOfPartition returns the id of the volume that one of our partitions belongs to; "" for a physical
// volume or a foreign partition.
func idOfPartition(name string) string {
	id, ours := strings.CutPrefix(name, content.OursPrefix)
	if !ours || len(id) != len(idOf("")) || strings.Contains(id, "-") {
		return ""
	}
	return id
}

// pvName returns the name of the partition of a physical volume.
func pvName(uuid string) string { return pvPrefix + idOf("pv\x00" + uuid)[:8] }

// newGroup returns a random id for a volume group.
func newGroup() string { return strings.ToLower(rand.Text()[:8]) }

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return uuidAs(4, b)
}

// pvGUID returns the GUID of the partition of a physical volume. It follows from the UUID of the
// physical volume, which is in the record.
func pvGUID(uuid string) string {
	sum := sha256.Sum256([]byte("pv\x00" + uuid))
	return uuidAs(4, [16]byte(sum[:16]))
}

func uuidAs(version byte, b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|version<<4, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// The types of our partitions still describe a volume after the store has lost it. A partition of
// typeMaking is being made or wiped, and belongs to no volume yet or any more.
const (
	typeMaking  = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e01"
	typeFS      = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e02"
	typeRaw     = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e03"
	typeRawPart = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e04"
	typePV      = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e05"

	typeLUKSFS      = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e12"
	typeLUKSRaw     = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e13"
	typeLUKSRawPart = "3f1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e14"
)

// types maps the type of a partition that is a whole volume.
var types = map[string]struct {
	mode      drivebay.VolumeMode
	encrypted bool
}{
	typeFS: {drivebay.ModeFS, false}, typeRaw: {drivebay.ModeRaw, false}, typeRawPart: {drivebay.ModeRawPart, false},
	typeLUKSFS: {drivebay.ModeFS, true}, typeLUKSRaw: {drivebay.ModeRaw, true}, typeLUKSRawPart: {drivebay.ModeRawPart, true},
}
