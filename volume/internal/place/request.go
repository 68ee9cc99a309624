package place

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// defaultSize is the size of a volume whose request names none.
const defaultSize = partitions.GiB

// Most is a size beyond all drives. Sums of a few of them do not overflow.
const Most = 1 << 60

// SizeOf returns the size of a requested volume.
func SizeOf(r drivebay.SizeRange, c drivebay.Class, block bool, least uint64) (uint64, error) {
	u := Unit(c.Backing)
	least = max(least, Smallest(c, block))
	switch {
	case r.Limit > 0 && r.Required > r.Limit:
		return 0, fmt.Errorf("%w: the required size %s is larger than the limit %s", drivebay.ErrInvalid, partitions.SizeText(r.Required), partitions.SizeText(r.Limit))
	case r.Required > Most:
		return 0, fmt.Errorf("%w: requested %s, larger than any volume", drivebay.ErrRange, partitions.SizeText(r.Required))
	}
	size := r.Required
	if size == 0 {
		if size = defaultSize; r.Limit > 0 {
			size = min(size, r.Limit/u*u)
		}
	}
	if size = (max(size, least) + u - 1) / u * u; r.Limit > 0 && size > r.Limit {
		return 0, fmt.Errorf("%w: the smallest possible size is %s, larger than the limit %s", drivebay.ErrRange, partitions.SizeText(size), partitions.SizeText(r.Limit))
	}
	return size, nil
}

// ErrNoPassphrase is the error for an encrypted volume whose request has no passphrase.
var ErrNoPassphrase = fmt.Errorf("%w: the secrets have no %q", drivebay.ErrInvalid, drivebay.SecretPassphrase)

// Check refuses a request for a volume that no machine can satisfy.
func Check(r drivebay.VolumeRequest) error {
	if r.Class.Encryption != "" && !r.KeyAtStage && r.Secrets[drivebay.SecretPassphrase] == "" {
		return fmt.Errorf("volume %q: %w", r.Name, ErrNoPassphrase)
	}
	return r.Check()
}
