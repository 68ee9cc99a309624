package mounts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
)

// The mount table says what is mounted, never memory: a crash between a mount and its record, and an
// unmount by another process, change only the table. A record adds the purpose and the access.

// Mounted returns the mounts of a volume's device from a new mount table.
func (e *Mounter) Mounted(ctx context.Context, v *drivebay.Volume) ([]host.Mount, error) {
	d, err := e.Device.Stack(v).State()
	if err != nil {
		return nil, err
	}
	t, err := e.MountTable.FreshTable(ctx)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.ID, err)
	}
	return t.Of(d), nil
}

// VolumeMounts is a volume, its device and what the mount table shows of it at the moment of a call.
type VolumeMounts struct {
	*Mounter
	V    drivebay.Volume
	D    mounttable.Device // zero: absent
	T    *mounttable.MountTable
	Now  []drivebay.Publication // publications of the record that are still in effect
	Lost []drivebay.Publication // publications of the record that are not mounted any more
}

// MountState changes the mounts of a volume, and its record with them.
type MountState struct{ VolumeMounts }

// MountState returns the mount state of a volume by a table read now.
func (e *Mounter) MountState(ctx context.Context, v drivebay.Volume) (*MountState, error) {
	t, err := e.MountTable.FreshTable(ctx)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.ID, err)
	}
	return e.MountStateIn(v, t), nil
}

// MountStateIn returns the mount state of a volume by a table.
func (e *Mounter) MountStateIn(v drivebay.Volume, t *mounttable.MountTable) *MountState {
	s := &MountState{VolumeMounts{Mounter: e, V: v, T: t}}
	if d, err := e.Device.Stack(&v).State(); err == nil {
		s.D = d
	}
	for _, p := range v.Publications {
		if at, err := e.CheckPath(p.Path); s.stagedAsBlock(p) || err == nil && len(s.Ours(at)) > 0 {
			s.Now = append(s.Now, p)
		} else {
			s.Lost = append(s.Lost, p)
		}
	}
	return s
}

// Ours returns the mounts of the volume at a path: of its device, or of the device that it had when
// it was mounted there. A drive that left and came back has another number, and its mounts are dead;
// the kernel does not reuse a number that is mounted.
func (s *VolumeMounts) Ours(at MountPath) []host.Mount {
	var out []host.Mount
	for _, m := range s.T.On[at.Target] {
		if s.isOurs(m, at) {
			out = append(out, m)
		}
	}
	return out
}

// stagedAsBlock reports whether a publication is the staging of a block volume, which is mounted nowhere.
func (s *VolumeMounts) stagedAsBlock(p drivebay.Publication) bool {
	return p.Staging && !s.V.HasFilesystem()
}

// isOurs reports whether a mount at a path shows the volume: by its current device, the record, or
// the mounted device itself.
func (s *VolumeMounts) isOurs(m host.Mount, at MountPath) bool {
	return mounttable.Carries(m, s.D) || mounttable.Carries(m, s.former(at)) || s.mountOf(s.V.ID, m) || mounttable.IsUnlinked(m)
}

// former returns the device that the engine mounted at a path.
func (s *VolumeMounts) former(at MountPath) mounttable.Device {
	if p := s.recorded(at); p != nil {
		return inventory.MadeOf(*p)
	}
	return mounttable.Device{}
}

func (s *VolumeMounts) recorded(at MountPath) *drivebay.Publication { return in(s.V.Publications, at) }

// live reports whether a path shows the volume's current device.
func (s *VolumeMounts) live(at MountPath) bool {
	m, ok := s.T.Top(at.Target)
	if !ok || !mounttable.Carries(m, s.D) || strings.HasSuffix(m.Root, mounttable.Unlinked) || s.hidden(at) != nil {
		return false
	}
	p := s.at(at)
	return p == nil || !renumbered(m, s.D, s.madeOf(*p, m))
}

// stranger returns an error if a path shows anything but the volume.
func (s *VolumeMounts) stranger(at MountPath) error {
	m, ok := s.T.Top(at.Target)
	if !ok || s.isOurs(m, at) {
		return nil
	}
	return fmt.Errorf("volume %s: path %s: %w: something else is mounted there, unmount that first: %s", s.V.ID, at, drivebay.ErrRefused, mounttable.What(m))
}

// hidden returns an error if a later mount hides what is mounted at a path: a program that opens the path
// gets that mount.
func (s *VolumeMounts) hidden(at MountPath) error {
	if above, hidden := s.T.Above(at.Target); hidden && len(s.T.On[at.Target]) > 0 {
		return fmt.Errorf("volume %s: path %s: %w: it is hidden by another mount: %s at %s", s.V.ID, at, drivebay.ErrRefused, mounttable.What(above), above.Target)
	}
	return nil
}

// Staging returns the staging publication.
func (s *VolumeMounts) Staging() *drivebay.Publication {
	return mirror.StagedAt(&drivebay.Volume{Publications: slices.Clone(s.Now)})
}

// targets returns publications except staging and one path.
func (s *VolumeMounts) targets(of []drivebay.Publication, but MountPath) []drivebay.Publication {
	return slices.DeleteFunc(slices.Clone(of), func(p drivebay.Publication) bool { return p.Staging || p.Path == but.String() })
}

// at returns the publication at a path if it is still in effect.
func (s *VolumeMounts) at(at MountPath) *drivebay.Publication { return in(s.Now, at) }

func in(all []drivebay.Publication, at MountPath) *drivebay.Publication {
	for _, p := range all {
		if p.Path == at.String() {
			return &p
		}
	}
	return nil
}

// Keep writes the publications to the record. One that was unmounted by hand stays in it: its container
// may have the volume still, and its path shows a bare folder to the next one.
func (s *MountState) Keep() error {
	all := slices.Concat(s.Now, s.Lost)
	if slices.Equal(all, s.V.Publications) && atRest(s.V) {
		return nil
	}
	_, err := s.Ledger.ChangeSoon(s.V.ID, func(r *drivebay.VolumeRecord) error {
		r.Volume.Publications = all
		return settle(&r.Volume)
	})
	return err
}

func (s *VolumeMounts) without(path string) {
	is := func(p drivebay.Publication) bool { return p.Path == path }
	s.Now, s.Lost = slices.DeleteFunc(s.Now, is), slices.DeleteFunc(s.Lost, is)
}

// with adds a publication. A volume is staged at one path.
func (s *VolumeMounts) with(p drivebay.Publication) {
	s.without(p.Path)
	s.Lost = slices.DeleteFunc(s.Lost, func(was drivebay.Publication) bool { return p.Staging && was.Staging })
	for i := range s.Now {
		s.Now[i].Staging = s.Now[i].Staging && !p.Staging
	}
	s.Now = append(s.Now, p)
}

// atRest reports whether the status agrees with the publications, or does not depend on them.
func atRest(v drivebay.Volume) bool {
	switch v.CSIStatus {
	case drivebay.CSICreated, drivebay.CSIVolumeReady, drivebay.CSIPublished:
		return v.CSIStatus == v.Rest()
	}
	return true
}

// settle moves a volume to the status that its publications require.
func settle(v *drivebay.Volume) error {
	for !atRest(*v) {
		up := v.Rest() > v.CSIStatus
		var event drivebay.CSIEvent
		switch {
		case up && v.CSIStatus == drivebay.CSICreated:
			event = drivebay.CSIStage
		case up:
			event = drivebay.CSIPublish
		case v.CSIStatus == drivebay.CSIPublished:
			event = drivebay.CSIUnpublish
		default:
			event = drivebay.CSIUnstage
		}
		next, err := v.Moved(event)
		if err != nil {
			return err
		}
		*v = next
	}
	return nil
}
