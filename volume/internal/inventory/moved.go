package inventory

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/units"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// UsedAt returns where the volume is in use. A replicated volume always is: DRBD has its piece open.
func UsedAt(v *drivebay.Volume) string {
	at := ""
	switch r := v.Replication; {
	case r == nil:
	case r.Ended:
		at = "not decided upon (" + r.Why() + ")"
	default:
		at = "replicated to " + r.Peer.String()
	}
	for _, p := range v.Publications {
		if !p.Staging {
			return "published at " + p.Path
		}
		at = "staged at " + p.Path
	}
	return at
}

// Copyable reports whether a volume that is not in use is whole. A mount that failed has left
// it whole.
func Copyable(v *drivebay.Volume) bool {
	state := v.State()
	if state.Status == drivebay.CSIFailed {
		state.Status = state.Before
	}
	return state.Status == drivebay.CSICreated || state.Status == drivebay.CSIVolumeReady || state.Status == drivebay.CSIPublished || state.Status == drivebay.CSIResized
}

// Moved reports whether a volume is on its new drive, whatever is left on the old one.
func Moved(r *drivebay.VolumeRecord) bool {
	m := partitions.MoveOf(r)
	return m != nil && r.Volume.Location.Partition == m.To.Partition
}

// TakeBackStep is recorded before anything of a copy is removed: the copy does not continue
// then.
const TakeBackStep = "take back"

// TakenBack reports whether a move ends where it began.
func TakenBack(r *drivebay.VolumeRecord) bool {
	return partitions.MoveOf(r) != nil && slices.Contains(r.Work.Made, TakeBackStep)
}

// mayHaveMoved reports whether a record may be older than the end of its move: the drive that the volume is to leave does not show it.
// The other drive may then have the only copy. Ledger.Mu is held.
func (e *Inventory) mayHaveMoved(r *drivebay.VolumeRecord) bool {
	m := partitions.MoveOf(r)
	if m == nil || Moved(r) || TakenBack(r) {
		return false
	}
	from := r.Volume
	from.Location = m.From
	_, there := e.Partitions.Listed(&from)
	return !there
}

// ClassOf returns the class of a volume. For a volume that was found again, it is what can be
// seen of it.
func ClassOf(v *drivebay.Volume) drivebay.Class {
	c, err := drivebay.ParseClass(v.Parameters)
	if err != nil {
		c, _ = drivebay.ParseClass(nil)
	}
	c.FSType, c.Encryption, c.Backing = cmp.Or(v.FSType, c.FSType), "", drivebay.BackingPartition
	if v.Encrypted() {
		c.Encryption = drivebay.EncryptionLUKS2
	}
	if v.Location.Kind == drivebay.LocationDrive {
		c.Backing = drivebay.BackingDrive
	}
	return c
}

// LargerBlocks reports whether a drive has larger logical blocks than the one that a volume is on. The volume cannot move there:
// Linux mounts no filesystem whose sectors or blocks are smaller than the blocks of its device (fs/xfs/xfs_buf.c, xfs_setsize_buftarg;
// fs/ext4/super.c, "bad block size"), and what a block volume holds is not known.
func LargerBlocks(s *drivebay.Snapshot, v *drivebay.Volume, d *drivebay.Drive) bool {
	from, known := steps.DriveOf(s, v.Location.Drives[0])
	return known && d.LogicalBlock > max(from.LogicalBlock, 512)
}

// sitesToMove returns the places where a partition or a whole drive can move with all that is in it, best first.
func (s PlacementView) sitesToMove(v *drivebay.Volume) []place.Site {
	return slices.DeleteFunc(s.sites(ClassOf(v)), func(at place.Site) bool {
		return slices.ContainsFunc(at.Rooms, func(r place.DriveSpace) bool { return LargerBlocks(s.Drives, v, r.Drive) })
	})
}

// ChooseToLeave returns the place where a volume with a piece of a size moves when it has to leave its drive: not another unit of
// the same device, which fails and is pulled with it.
func (s PlacementView) ChooseToLeave(v *drivebay.Volume, size uint64) (place.Site, error) {
	without := map[string]bool{v.Location.Drives[0]: true}
	if from, known := steps.DriveOf(s.Drives, v.Location.Drives[0]); known {
		for i := range s.Drives.Drives {
			if d := &s.Drives.Drives[i]; units.OfOneDevice(from, d) {
				without[d.ID] = true
			}
		}
	}
	at, err := s.choose(s.sitesToMove(v), ClassOf(v), size, without)
	if err != nil {
		err = fmt.Errorf("no other drive of its class has room for it, with blocks no larger than those of its drive: %w", err)
	}
	return at, err
}
