package volume

import (
	"slices"
	"time"

	"github.com/drivebay/drivebay"
)

// readyTime is how long the first look over the drives holds back readiness. What
// depends on a drive that was not read by then stays UNAVAILABLE. The liveness probes of CSI
// drivers restart a plugin that is not ready for 20 s (livenessprobe, examples).
const readyTime = 15 * time.Second

// Unread says of each drive that may carry volumes without a record why it was not read,
// and whether the engine is ready: the first look over all drives has ended. A drive that
// hangs or fails holds that back for startTime, one that is only slow for readyTime. Once
// ready, the engine stays ready.
func (e *Engine) Unread() (why []string, ready bool) {
	unread, listed := e.unreadOf(everyDrive)
	why = said(unread)
	e.mu.Lock()
	found := len(e.found) > 0
	e.mu.Unlock()
	e.viewMu.Lock()
	defer e.viewMu.Unlock()
	e.looked = e.looked || e.ready && e.lookedEnough(unread, listed, found)
	return why, e.looked
}

// lookedEnough says whether readiness waits for no drive any more. Volumes that were found
// on unclaimed drives hold it back as well: the configuration claims a drive after it was
// read. Engine.viewMu is held.
func (e *Engine) lookedEnough(unread []unreadDrive, listed, found bool) bool {
	waited := e.machine.Now().Sub(e.began)
	slow := slices.ContainsFunc(unread, func(u unreadDrive) bool { return !failsReads(u.Drive) })
	switch {
	case waited >= readyTime:
		return true
	case !listed:
		return false
	case len(unread) == 0 && !found:
		return true
	}
	return !slow && waited >= startTime
}

// failsReads says of a drive that was not read that it hangs, or answers with errors, or
// not at all.
func failsReads(d *drivebay.Drive) bool {
	return d.Status != drivebay.StatusOnline || stuck(*d) || d.Content.Kind == drivebay.ContentUnknown && notReadYet(d) != neverRead
}
