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

// A volume's id follows from its name, so that whoever asks for it again finds it,
// whatever has been lost meanwhile.
func volumeID(name string) string { return idOf("volume\x00" + name) }

func snapshotID(name string) string { return idOf("snapshot\x00" + name) }

func idOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return small(sum[:16])
}

var base = base32.StdEncoding.WithPadding(base32.NoPadding)

func small(b []byte) string { return strings.ToLower(base.EncodeToString(b)) }

// isID says whether an id has the shape of ours: 26 characters of base 32. It follows from
// the name alone and tells no node.
func isID(id string) bool {
	return len(id) == len(idOf("")) && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// Names of partitions in the GPT: 36 characters at most (UEFI 2.10, 5.3.3).
const pvPrefix = drivebay.PVPrefix

// newPrefix begins the name of a partition that a volume is being copied to.
const newPrefix = content.OursPrefix + "new-"

func newName(id string) string { return newPrefix + id[:min(len(id), 22)] }

func partitionName(id string) string { return content.OursPrefix + id }

// idOfPartition is the volume that a partition of ours belongs to; "" for one of
// LVM and for a stranger's.
func idOfPartition(name string) string {
	id, ours := strings.CutPrefix(name, content.OursPrefix)
	if !ours || len(id) != len(idOf("")) || strings.Contains(id, "-") {
		return ""
	}
	return id
}

// pvName is the name of the partition of a physical volume.
func pvName(uuid string) string { return pvPrefix + idOf("pv\x00" + uuid)[:8] }

// newGroup is an id for a volume group.
func newGroup() string { return strings.ToLower(rand.Text()[:8]) }

// newUUID is a random one (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return uuidOf(b)
}

// pvGUID is the identity of the partition of a physical volume: it follows from
// that of the physical volume, which is what the record has.
func pvGUID(uuid string) string {
	sum := sha256.Sum256([]byte("pv\x00" + uuid))
	return uuidOf([16]byte(sum[:16]))
}

func uuidOf(b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Types of our partitions: what the store has forgotten of a volume, its type
// still says. A partition that is being made or wiped is nobody's yet, or any more.
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

// types are what partitions that are whole volumes are.
var types = map[string]struct {
	mode      drivebay.VolumeMode
	encrypted bool
}{
	typeFS: {drivebay.ModeFS, false}, typeRaw: {drivebay.ModeRaw, false}, typeRawPart: {drivebay.ModeRawPart, false},
	typeLUKSFS: {drivebay.ModeFS, true}, typeLUKSRaw: {drivebay.ModeRaw, true}, typeLUKSRawPart: {drivebay.ModeRawPart, true},
}
