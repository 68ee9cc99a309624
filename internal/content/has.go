package content

import (
	"cmp"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// front is how far into a device the formats begin that are in use. What backups finds behind it are copies, which no mount reads. Detect looks
// for no copies in a partition of a drive.
const front = 1 << 20

func isCopy(s drivebay.Signature) bool { return s.Partition == "" && s.Offset >= front }

// Has reports whether a device, or a partition of it, has a filesystem or header where it is used.
func Has(c drivebay.Content, partition, format, uuid string) bool {
	return slices.ContainsFunc(c.Signatures, func(s drivebay.Signature) bool {
		return s.Partition == partition && s.Format == format && (uuid == "" || strings.EqualFold(s.UUID, uuid)) && !isCopy(s)
	})
}

// Describe says what a device has.
func Describe(c drivebay.Content) string {
	var found []string
	for _, s := range c.Signatures {
		what := strings.TrimSpace(s.Format + " " + s.UUID)
		if isCopy(s) {
			what = "only a copy of the superblock of " + what
		}
		if !slices.Contains(found, what) {
			found = append(found, what)
		}
	}
	return cmp.Or(strings.Join(found, ", "), "nothing")
}
