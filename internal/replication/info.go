package replication

import (
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
)

// Info is what GetVolumeReplicationInfo reports of the last synchronization, and what is known of the one that runs.
type Info struct {
	drivebay.ReplicationPast

	// Started and Total are those of the resync that runs. A clock that is set meanwhile spoils a duration, and
	// cannot make it negative.
	Started time.Time
	Total   uint64
}

// Known returns a past without a last synchronization that is still to come, by a clock that was ahead.
func Known(past drivebay.ReplicationPast, now time.Time) drivebay.ReplicationPast {
	if past.LastSync.After(now) {
		past.LastSync = time.Time{}
	}
	return past
}

// Observe returns the info after one more look at the volume.
func (i Info) Observe(v View, now time.Time) Info {
	verdict, _ := Judge(v)
	if i.LastSync.After(now) { // a clock was ahead: with that time, the peer would count as up to date until then
		i.LastSync = now
	}
	switch c := v.State.Connection; {
	case verdict == Ready:
		if !i.Started.IsZero() {
			i.Bytes, i.Duration = i.Total, max(0, now.Sub(i.Started))
			i.Started, i.Total = time.Time{}, 0
		}
		i.LastSync = now
	case verdict != Resyncing:
		i.Started, i.Total = time.Time{}, 0
	default:
		if i.Started.IsZero() {
			i.Started = now
		}
		if c >= drbd.SyncSource {
			i.Total = max(i.Total, v.ResyncTotal)
		}
	}
	return i
}
