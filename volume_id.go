package drivebay

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// VolumeID derives the id of a volume from its name, so that a repeated request finds the volume,
// whatever was lost since.
func VolumeID(name string) string { return ShortHash("volume\x00" + name) }

// SnapshotID returns the id of the snapshot with that name.
func SnapshotID(name string) string { return ShortHash("snapshot\x00" + name) }

// ShortHash returns 128 bits of the SHA-256 of a text, as 26 characters of lower-case base 32.
func ShortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}
