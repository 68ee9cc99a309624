package replication

import (
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
)

// justCreated is UUID_JUST_CREATED of include/linux/drbd.h: metadata that were never in use.
const justCreated = 4

// View is what one side knows of a replicated volume.
type View struct {
	drbd.Status
	// Conflict is why the kernel refused the peer when they connected last. The kernel says it only once, in its log.
	Conflict drivebay.ReplicationConflict
}

// unused reports whether the local metadata were never in use: they say nothing of the data.
func (v View) unused() bool { return v.Generations != nil && v.Generations.Current&^1 == justCreated }

func (v View) connected() bool { return v.State.Connection >= drbd.Connected }

// differs reports whether both sides count as up to date and have other data. A verification marks what differs, and
// changes no state (drivers/block/drbd/drbd_worker.c, w_e_end_ov_reply): nothing copies it by itself.
func (v View) differs() bool {
	return v.connected() && v.State.Disk == drbd.UpToDate && v.State.PeerDisk == drbd.UpToDate && v.OutOfSync > 0
}

// Complete reports whether the local data are all of the volume, and not known to be old.
func (v View) Complete() bool { return v.State.Disk >= drbd.Consistent }

// Remote reports whether a primary without a disk has the data of its peer.
func (v View) Remote() bool {
	return v.State.Role == drbd.RolePrimary && v.State.Disk <= drbd.Failed && v.connected() && v.State.PeerDisk == drbd.UpToDate
}

// Verdict is the state of the replication of a volume.
type Verdict int

// The verdicts.
const (
	// Ready: both sides have the same data.
	Ready Verdict = iota
	// Degraded: writes reach one side only, or later.
	Degraded
	// Resyncing: one side gets from the other one what it missed.
	Resyncing
	// NeedsResync: the local data are old or incomplete, and no resync runs.
	NeedsResync
	// SplitBrain: both sides were written without the other one. An operator has to name the loser.
	SplitBrain
)

func (v Verdict) String() string {
	return [...]string{"ready", "degraded", "resyncing", "needs resync", "split brain"}[v]
}

// Judge says what a state means, and why.
func Judge(v View) (Verdict, string) {
	s := v.State
	switch c := s.Connection; {
	case v.Remote():
		return Degraded, "the local disk is missing, and the peer has the data: put its drive back, or fail over and make this side again (docs/replication.md, When a drive fails)"
	case s.Disk <= drbd.Failed:
		return Degraded, "the local disk is missing: put its drive back, or make this side again (docs/replication.md, When a drive fails)"
	case c >= drbd.StartingSyncS && c <= drbd.SyncTarget, c == drbd.PausedSyncS, c == drbd.PausedSyncT:
		return Resyncing, "one side gets what it missed from the other one"
	case c == drbd.Ahead, c == drbd.Behind:
		return Degraded, "the network is too slow: the peer is behind"
	case s.Suspended:
		return Degraded, fmt.Sprintf("the kernel holds all requests of the volume until `drbdsetup resume-io %d`", v.Minor)
	case v.differs():
		return Degraded, fmt.Sprintf("the data of the two sides differ in %d bytes, as a verification found: `drbdsetup invalidate %d` on the side with the wrong data copies all of the other side's", v.OutOfSync, v.Minor)
	case v.connected() && s.Disk == drbd.UpToDate && s.PeerDisk == drbd.UpToDate:
		return Ready, ""
	case v.connected() && s.Disk == drbd.UpToDate && s.PeerDisk <= drbd.Failed:
		return Degraded, "the disk of the peer is missing"
	case v.connected() && s.Disk == drbd.UpToDate:
		return Degraded, fmt.Sprintf("the disk of the peer is %s", s.PeerDisk)
	case !v.connected() && v.Conflict == drivebay.SplitBrain:
		return SplitBrain, "both sides were written without the other one: resync with force on the side whose data are to be discarded"
	case !v.connected() && v.Conflict == drivebay.UnrelatedData:
		return SplitBrain, "the data of the two sides have no common history: disable the replication on the side whose data are to be discarded, and enable it again"
	case !v.connected() && v.Conflict == drivebay.PeerTooSmall:
		return Degraded, "the volume of the peer is too small: grow it on the other side, and connect both again with resync or promote"
	case !v.connected() && v.Conflict == drivebay.RefusedByPeer:
		return Degraded, "the peer refused the data of this side: `drivebay replication status` on the other machine says why"
	case s.Disk < drbd.Consistent:
		return NeedsResync, fmt.Sprintf("the local disk is %s", s.Disk)
	case s.Connection == drbd.StandAlone:
		// DRBD ends here by itself after a split brain, and also when the peer has another secret: the state is the
		// same. Only its log tells which.
		return Degraded, "not connected, and not trying to: the peer refused (secret, pair and protocol have to be the same on both sides), or the connection was ended"
	}
	return Degraded, "the peer does not answer"
}
