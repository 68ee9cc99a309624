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

// Until returns a past that is not later than now. A clock that was ahead while both sides had the same data has recorded a
// time that is still to come: with it, the peer would count as up to date for as long as the clock was ahead.
func Until(past drivebay.ReplicationPast, now time.Time) drivebay.ReplicationPast {
	if past.LastSync.After(now) {
		past.LastSync = now
	}
	return past
}

// Observe returns the info after one more look at the volume.
func (i Info) Observe(v View, now time.Time) Info {
	verdict, _ := Judge(v)
	i.ReplicationPast = Until(i.ReplicationPast, now)
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
