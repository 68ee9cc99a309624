package provision

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
)

// origin describes the source of a copy.
type origin struct {
	drivebay.Location
	size   uint64
	block  bool
	fs     string
	luks   string // UUID of its LUKS header; empty: not encrypted
	fsUUID string // UUID of its filesystem: a copy has the same
}

// SizeNow returns the size of a thin volume or snapshot. LVM knows it better than a record from before the volume has grown.
func (e *Provisioner) SizeNow(l drivebay.Location, recorded, overhead uint64) uint64 {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	lv := partitions.LVIn(e.Partitions.Index.LVM.Group(l.VG), l)
	if lv == nil {
		return recorded
	}
	return max(recorded, lv.Size-min(lv.Size, overhead))
}

// originOf returns the source of a new volume.
func (e *Provisioner) originOf(s drivebay.Source) (origin, error) {
	if s.Snapshot != "" {
		r, ok := e.Ledger.Snapshot(s.Snapshot)
		switch {
		case !ok:
			return origin{}, e.Ledger.MissingSnapshot(s.Snapshot)
		case r.Work != nil:
			return origin{}, fmt.Errorf("snapshot %s: %w: it is being made or removed", s.Snapshot, drivebay.ErrPending)
		}
		if err := errors.Join(e.Instances.RefuseSecondSnapshot(&r.Snapshot), e.VerifySnapshot(&r.Snapshot)); err != nil {
			return origin{}, err
		}
		o := origin{Location: r.Snapshot.Location, size: e.SizeNow(r.Snapshot.Location, r.Snapshot.Size, place.Overhead(r.Snapshot.LUKSUUID)), block: r.Snapshot.Block, fs: r.Snapshot.FSType, luks: r.Snapshot.LUKSUUID}
		e.Ledger.Mu.Lock()
		defer e.Ledger.Mu.Unlock()
		if g := e.Partitions.Index.LVM.Group(o.VG); g != nil && g.LV(o.LV) != nil {
			o.fsUUID = partitions.TagOf(g.LV(o.LV), groups.KeyUUID)
		}
		return o, nil
	}
	r, err := e.Ledger.Record(s.Volume)
	if err != nil {
		return origin{}, err
	}
	v := &r.Volume
	if v.Location.Kind != drivebay.LocationThin {
		return origin{}, fmt.Errorf("volume %s: %w: only thin volumes can be copied, this one is %v; use a StorageClass with drivebay.io/backing: thin", v.ID, drivebay.ErrNoSupport, v.Location.Kind)
	}
	return origin{v.Location, e.SizeNow(v.Location, v.Size, place.OverheadOf(v)), !v.HasFilesystem(), v.FSType, v.LUKSUUID, v.FSUUID}, e.Whole(v)
}

// besideSource places a copy in the pool of its source. The copy of a filesystem has the UUID
// of the source: xfs is mounted with nouuid for that, and a btrfs would be treated as a device
// of the original.
func (e *Provisioner) besideSource(v *drivebay.Volume, work *drivebay.Work, r drivebay.VolumeRequest, without map[string]bool) error {
	o, err := e.originOf(r.Source)
	if err != nil {
		return err
	}
	switch {
	case ledger.IsMoving(o.Location):
		return groups.RefuseMoving(o.Location)
	case o.block != r.Block:
		return fmt.Errorf("%w: a copy must have the volume mode of its source", drivebay.ErrInvalid)
	case !r.Block && r.FSType != "" && r.FSType != o.fs:
		return fmt.Errorf("%w: the copy of a volume with %s has no %s", drivebay.ErrInvalid, o.fs, r.FSType)
	case (o.luks != "") != (r.Class.Encryption != ""):
		return fmt.Errorf("%w: source and copy must both be encrypted or both not", drivebay.ErrInvalid)
	case o.fs == "btrfs":
		return fmt.Errorf("%w: a btrfs cannot be copied: two with one UUID cannot be mounted", drivebay.ErrNoSupport)
	}
	if err := ofClass(e.Drives.Snapshot(), o.Location, r.Class); err != nil {
		return err
	}
	if r.Size.Limit > 0 && r.Size.Limit < o.size {
		return fmt.Errorf("%w: the source has %s, more than the limit %s", drivebay.ErrRange, partitions.SizeText(o.size), partitions.SizeText(r.Size.Limit))
	}
	r.Size.Required = cmp.Or(r.Size.Required, o.size)
	if v.Size, err = place.SizeOf(r.Size, r.Class, r.Block, o.size); err != nil {
		return err
	}
	for _, room := range e.Inventory.PlacementView().Rooms(r.Class) {
		if room.PV == nil || room.PV.Group != o.VG || without[place.KeyOf(o.Drives)] {
			continue
		}
		if left := room.PV.Extents * lvm.ExtentSize; left < v.Size+place.Overhead(o.luks) {
			return fmt.Errorf("%w: the pool has %s that no volume has reserved, the copy needs %s", drivebay.ErrNoSpace, partitions.SizeText(left), partitions.SizeText(v.Size+place.Overhead(o.luks)))
		}
		v.Location, work.PVs = o.Location, room.PV.Members
		v.FSType, v.FSUUID, v.LUKSUUID = o.fs, o.fsUUID, o.luks
		v.Location.Instance = e.Instances.NewInstance()
		v.Location.LV, err = lvm.VolumeName(v.ID)
		return err
	}
	return takesNoCopy(e, o.Location)
}

// takesNoCopy returns why no copy is made in the pool of a source, with the cause: there is no other place for it.
func takesNoCopy(e *Provisioner, source drivebay.Location) error {
	if err := e.Device.NotHere(&drivebay.Volume{Location: source}); errors.Is(err, drivebay.ErrUnavailable) { // it takes volumes once it is back
		return err
	}
	if err := e.Device.MayWrite(source.Drives...); err != nil {
		return err
	}
	var why []string
	drives := e.Drives.Snapshot()
	for _, id := range source.Drives {
		d, known := drives.Get(id)
		if !known {
			continue
		}
		away := func(format string, args ...any) error {
			return fmt.Errorf("drive %s (%s): %w: %s", id, d.Name, drivebay.ErrUnavailable, fmt.Sprintf(format, args...))
		}
		switch {
		case d.Kernel != nil && d.Kernel.Frozen > 0:
			return away("no request to it has completed for %v", d.Kernel.Frozen)
		case d.NotWritten() != "":
			return away("%s", d.NotWritten())
		case d.Health == drivebay.HealthUnknown || d.Content.Kind == drivebay.ContentUnknown:
			return away("it takes no new volumes while its health or content is unknown: `drivebay explain %s` names the cause", id)
		}
		if why = append(why, d.Refusals()...); d.Cordoned {
			why = append(why, "it is cordoned")
		}
		if d.Health != drivebay.HealthGood {
			why = append(why, "its health is "+d.Health.String())
		}
	}
	return fmt.Errorf("%w: drive %s takes no new volumes: %s", drivebay.ErrNoSpace, strings.Join(source.Drives, ", "), strings.Join(why, "; "))
}

// ofClass refuses a copy whose class is for drives of another type than that of its source: it is made in the pool of the source, so that no
// repetition of the request can succeed.
func ofClass(drives *drivebay.Snapshot, source drivebay.Location, c drivebay.Class) error {
	for _, id := range source.Drives {
		if d, known := drives.Get(id); known && c.Drives != drivebay.TypeUnknown && d.Type != c.Drives {
			return fmt.Errorf("%w: a copy is on the drive of its source, and drive %s (%s) is no %v: use a class for its type, or one for any", drivebay.ErrNoSupport, id, d.Name, c.Drives)
		}
	}
	return nil
}
