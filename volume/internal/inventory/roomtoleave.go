package inventory

import (
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
)

// RoomToLeave returns the drive to which a volume would move now if it had to leave one of its drives. It
// chooses as the move does, and changes nothing.
func (s PlacementView) RoomToLeave(v *drivebay.Volume, from string) (to string, err error) {
	if !slices.Contains(v.Location.Drives, from) {
		return "", fmt.Errorf("drive %s: %w: the volume is not on it", from, drivebay.ErrInvalid)
	}
	if v.Location.OnLVM() {
		return s.roomForGroup(v, from)
	}
	p, ok := partitions.Instanced(s.Index.Parts[from], ledger.PartitionName(v.ID), v.Location.Partition)
	if !ok {
		return "", fmt.Errorf("its partition is not listed: %w", drivebay.ErrPending)
	}
	size := (p.Size+partitions.MiB-1)/partitions.MiB*partitions.MiB - place.OverheadOf(v)
	at, err := s.ChooseToLeave(v, size)
	if err != nil {
		return "", err
	}
	return at.Rooms[0].Drive.ID, nil
}

// roomForGroup is RoomToLeave for a volume that moves with its volume group.
func (s PlacementView) roomForGroup(v *drivebay.Volume, from string) (string, error) {
	g := s.Index.LVM.Group(v.Location.VG)
	if g == nil { // or LVM has not been asked yet
		return "", fmt.Errorf("volume group %s is not listed: %w", v.Location.VG, drivebay.ErrPending)
	}
	d, err := s.Spare(WantLike(s.Drives, v.Location.Drives, from, g, s.Index.LVM.Members(g)[from]), v.Location.Drives)
	if err != nil {
		return "", err
	}
	return d.ID, nil
}
