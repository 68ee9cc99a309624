package groups

import (
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// A record is a claim on its bytes: a partition or logical volume that is smaller than its volume is not the whole
// volume, and what lies behind it is not free.

// Smaller says how much smaller the piece of a volume is than its record; "" if it is not, or is not listed.
func (e *Groups) Smaller(v *drivebay.Volume) string {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return e.smaller(v)
}

// smaller is Smaller with Ledger.Mu held.
func (e *Groups) smaller(v *drivebay.Volume) string {
	if have, listed := e.Partitions.PieceSize(v); listed && have < partitions.LeastOf(v) {
		return partitions.SmallerText(have, partitions.LeastOf(v))
	}
	return ""
}
