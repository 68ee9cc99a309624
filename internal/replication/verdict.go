package replication

import (
	"fmt"

	"github.com/drivebay/drivebay/internal/drbd"
)

// Relation is how the data of two sides are related, as DRBD finds out when they connect.
type Relation int

// The relations. RelationUnknown is that of a peer whose generations are not known.
const (
	RelationUnknown Relation = iota
	RelationSame
	// RelationOlder: the peer's data descend from the local ones. The local side is the target of a resync.
	RelationOlder
	// RelationNewer: the local data descend from the peer's.
	RelationNewer
	// RelationSplitBrain: both sides' data descend from common ones, and both were written since.
	RelationSplitBrain
	// RelationUnrelated: no common ancestor is known.
	RelationUnrelated
)

// justCreated is UUID_JUST_CREATED of include/linux/drbd.h: metadata that were never in use.
const justCreated = 4

// Compare follows drbd_uuid_compare of drivers/block/drbd/drbd_receiver.c (Linux 6.1), rules 10 to 100, by the numbers in the
// comments. Bit 0 marks a primary and does not count. Of two equal current identifiers the kernel also looks at who crashed; that
// makes no split brain. One thing differs: identifiers that stand for nothing (0, and those of new metadata) prove no common origin
// here. Where the kernel takes equal ones for a split brain, whose loser can be discarded, the data count as unrelated.
func Compare(local, peer drbd.Generations) Relation {
	mine, theirs := list(local), list(peer)
	isNew := func(current uint64) bool { return current == justCreated || current == 0 }
	switch {
	case isNew(mine[0]) && isNew(theirs[0]): // 10
		return RelationSame
	case isNew(mine[0]): // 20
		return RelationOlder
	case isNew(theirs[0]): // 30
		return RelationNewer
	case mine[0] == theirs[0]: // 40
		return RelationSame
	case contains(theirs[1:], mine[0]): // 50, 60
		return RelationOlder
	case contains(mine[1:], theirs[0]): // 70, 80
		return RelationNewer
	}
	for _, g := range mine[1:] { // 90, 100
		if contains(theirs[1:], g) {
			return RelationSplitBrain
		}
	}
	return RelationUnrelated
}

func list(g drbd.Generations) [4]uint64 {
	return [4]uint64{g.Current &^ 1, g.Bitmap &^ 1, g.History[0] &^ 1, g.History[1] &^ 1}
}

// contains does not find an identifier that stands for nothing: 0, or new metadata.
func contains(all []uint64, g uint64) bool {
	for _, a := range all {
		if a == g && g != 0 && g != justCreated {
			return true
		}
	}
	return false
}

// View is what one side knows of a replicated volume.
type View struct {
	drbd.Status
	// Peer are the generations that the peer's daemon reported, nil if it does not answer: DRBD itself does not
	// tell them.
	Peer *drbd.Generations
}

func (v View) relation() Relation {
	if v.Generations == nil || v.Peer == nil {
		return RelationUnknown
	}
	return Compare(*v.Generations, *v.Peer)
}

// unused reports whether the local metadata were never in use: they say nothing of the data.
func (v View) unused() bool { return v.Generations != nil && v.Generations.Current&^1 == justCreated }

func (v View) connected() bool { return v.State.Connection >= drbd.Connected }

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
	case s.Disk <= drbd.Failed:
		return Degraded, "the local disk is missing"
	case c >= drbd.StartingSyncS && c <= drbd.SyncTarget, c == drbd.PausedSyncS, c == drbd.PausedSyncT:
		return Resyncing, fmt.Sprintf("%d bytes are not in sync", v.OutOfSync)
	case c == drbd.Ahead, c == drbd.Behind:
		return Degraded, "the network is too slow: the peer is behind"
	case v.connected() && s.Disk == drbd.UpToDate && s.PeerDisk == drbd.UpToDate:
		return Ready, ""
	case v.connected() && s.Disk == drbd.UpToDate:
		return Degraded, fmt.Sprintf("the disk of the peer is %s", s.PeerDisk)
	case !v.connected() && v.relation() == RelationSplitBrain:
		return SplitBrain, "both sides were written without the other one: resync with force on the side whose data are to be discarded"
	case !v.connected() && v.relation() == RelationUnrelated:
		return SplitBrain, "the data of the two sides have no common history: disable the replication on the side whose data are to be discarded, and enable it again"
	case s.Disk < drbd.Consistent:
		return NeedsResync, fmt.Sprintf("the local disk is %s", s.Disk)
	case s.Connection == drbd.StandAlone:
		// DRBD ends here by itself after a split brain, and also when the peer has another secret: the state is the
		// same. Only the peer's generations show the difference.
		return Degraded, "not connected, and not trying to: the peer refused, or the connection was ended"
	}
	return Degraded, "the peer does not answer"
}
