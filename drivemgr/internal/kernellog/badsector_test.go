package kernellog

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// TestBadSectorStays: a bad sector ends only by a read of that sector, not with time.
func TestBadSectorStays(t *testing.T) {
	var w Window
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w.Add(Medium, Error{At: now, Sector: 4096, Placed: true}, host.LogLine{At: now, Text: "critical medium error"})
	k := &drivebay.Kernel{}
	if w.Count(k, now.Add(25*time.Hour)); len(k.BadSectors) != 1 || k.UnresolvedErrors != 1 || k.MediaErrors24h != 0 {
		t.Errorf("the sector was not read: bad sectors %v, %d unresolved, %d in the last 24 h", k.BadSectors, k.UnresolvedErrors, k.MediaErrors24h)
	}
}
