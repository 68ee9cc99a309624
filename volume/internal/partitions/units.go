package partitions

import (
	"crypto/sha256"
	"fmt"
	"regexp"

	"github.com/drivebay/drivebay/volume/internal/ledger"
)

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// IsUUID reports whether a text is a UUID. It checks what is read from a drive before that names anything.
func IsUUID(text string) bool { return uuidForm.MatchString(text) }

// LUKSHeader is the room for the header: the default of cryptsetup.
const LUKSHeader = 16 * MiB

// SizeText formats a size for people. A size that is not a whole number of MiB has the exact number of
// bytes, too: such sizes come from callers and from drives, and may differ by a few bytes only.
func SizeText(n uint64) string {
	switch {
	case n%GiB == 0:
		return fmt.Sprintf("%d GiB", n/GiB)
	case n%MiB == 0:
		return fmt.Sprintf("%d MiB", n/MiB)
	case n >= GiB:
		return fmt.Sprintf("%.1f GiB (%d bytes)", float64(n)/GiB, n)
	case n >= MiB:
		return fmt.Sprintf("%.1f MiB (%d bytes)", float64(n)/MiB, n)
	}
	return fmt.Sprintf("%d bytes", n)
}

// PVGUID returns the GUID of the partition of a physical volume. It follows from the UUID of the
// physical volume, which is in the record.
func PVGUID(uuid string) string {
	sum := sha256.Sum256([]byte("pv\x00" + uuid))
	return ledger.UUIDAs(4, [16]byte(sum[:16]))
}

const (
	MiB = 1 << 20
	GiB = 1 << 30
)
