package inventory

import (
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// readyTime is how long the first listing of all drives delays readiness. Operations on a drive that
// was not read by then stay UNAVAILABLE. The liveness probes of CSI drivers restart a plugin that is
// not ready for 20 s (livenessprobe, examples).
const readyTime = 15 * time.Second

// Unread returns why drives that may carry volumes without a record were not read, and whether the
// engine is ready: the first listing of all drives has ended. A drive that hangs or fails delays that
// by StartTime, one that is only slow by readyTime. Once ready, the engine stays ready.
func (e *Inventory) Unread() (why []string, ready bool) {
	unread, listed := e.unreadOf(EveryDrive)
	why = said(unread)
	e.Ledger.Mu.Lock()
	found := slices.ContainsFunc(e.Instances.Found, func(f drivebay.FoundVolume) bool { return f.Issue == "" })
	e.Ledger.Mu.Unlock()
	e.ViewMu.Lock()
	defer e.ViewMu.Unlock()
	e.firstListingEnded = e.firstListingEnded || e.Ready && e.lookedEnough(unread, listed, found)
	return why, e.firstListingEnded
}

// lookedEnough reports whether readiness waits for no drive any more. Volumes that were found on
// unclaimed drives delay it as well: the configuration claims a drive after it was read.
// Inventory.ViewMu is held.
func (e *Inventory) lookedEnough(unread []unreadDrive, listed, found bool) bool {
	waited := e.Machine.Now().Sub(e.Instances.FirstListedAt)
	slow := slices.ContainsFunc(unread, func(u unreadDrive) bool { return !failsReads(u.Drive) })
	switch {
	case waited >= readyTime:
		return true
	case !listed:
		return false
	case len(unread) == 0 && !found:
		return true
	}
	return !slow && waited >= partitions.StartTime
}

// failsReads reports whether a drive that was not read hangs, returns errors, or does not answer.
func failsReads(d *drivebay.Drive) bool {
	return d.Status != drivebay.StatusOnline || partitions.Stuck(*d) || d.Content.Kind == drivebay.ContentUnknown && partitions.NotReadYet(d) != partitions.NeverRead
}
