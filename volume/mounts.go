package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// The mount table says what is mounted, never memory: a crash between a mount and its record, and an
// unmount by another process, change only the table. A record adds the purpose and the access.

// mounted returns the mounts of a volume's device from a new mount table.
func (e *Engine) mounted(ctx context.Context, v *drivebay.Volume) ([]host.Mount, error) {
	d, err := e.plain(v)
	if err != nil {
		return nil, err
	}
	t, err := e.freshTable(ctx)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.ID, err)
	}
	return t.of(d), nil
}

// mountState is a volume, its device and the mount table at the moment of a call.
type mountState struct {
	*Engine
	v   drivebay.Volume
	d   device // zero: absent
	t   *mountTable
	now []drivebay.Publication // publications of the record that are still in effect
}

func (e *Engine) mountState(ctx context.Context, v drivebay.Volume) (*mountState, error) {
	t, err := e.freshTable(ctx)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.ID, err)
	}
	return e.mountStateIn(v, t), nil
}

func (e *Engine) mountStateIn(v drivebay.Volume, t *mountTable) *mountState {
	s := &mountState{Engine: e, v: v, t: t}
	if d, err := e.plain(&v); err == nil {
		s.d = d
	}
	for _, p := range v.Publications {
		if at, err := e.checkPath(p.Path); p.Staging && v.Mode != drivebay.ModeFS || err == nil && len(s.ours(at)) > 0 {
			s.now = append(s.now, p)
		}
	}
	return s
}

// ours returns the mounts of the volume at a path: of its device, or of the device that it had when
// it was mounted there. A drive that left and came back has another number, and its mounts are dead;
// the kernel does not reuse a number that is mounted.
func (s *mountState) ours(at mountPath) []host.Mount {
	var out []host.Mount
	for _, m := range s.t.on[at.target] {
		if s.isOurs(m, at) {
			out = append(out, m)
		}
	}
	return out
}

// isOurs reports whether a mount at a path shows the volume: by its current device, the record, or
// the mounted device itself.
func (s *mountState) isOurs(m host.Mount, at mountPath) bool {
	return carries(m, s.d) || carries(m, s.former(at)) || s.mountOf(s.v.ID, m) || isUnlinked(m)
}

// former returns the device that the engine mounted at a path.
func (s *mountState) former(at mountPath) device {
	if p := s.recorded(at); p != nil {
		return madeOf(*p)
	}
	return device{}
}

func (s *mountState) recorded(at mountPath) *drivebay.Publication {
	path := at.String()
	i := slices.IndexFunc(s.v.Publications, func(p drivebay.Publication) bool { return p.Path == path })
	if i < 0 {
		return nil
	}
	return &s.v.Publications[i]
}

// live reports whether a path shows the volume's current device.
func (s *mountState) live(at mountPath) bool {
	m, ok := s.t.top(at.target)
	if !ok || !carries(m, s.d) || strings.HasSuffix(m.Root, unlinked) {
		return false
	}
	p := s.at(at)
	return p == nil || !renumbered(m, s.d, madeOf(*p))
}

// stranger returns an error if a path shows anything but the volume.
func (s *mountState) stranger(at mountPath) error {
	m, ok := s.t.top(at.target)
	if !ok || s.isOurs(m, at) {
		return nil
	}
	return fmt.Errorf("volume %s: path %s: %w: something else is mounted there: %s", s.v.ID, at, drivebay.ErrRefused, what(m))
}

// staging returns the staging publication.
func (s *mountState) staging() *drivebay.Publication {
	for _, p := range s.now {
		if p.Staging {
			return &p
		}
	}
	return nil
}

// targets returns the publications except staging and one path.
func (s *mountState) targets(but mountPath) []drivebay.Publication {
	return slices.DeleteFunc(slices.Clone(s.now), func(p drivebay.Publication) bool { return p.Staging || p.Path == but.String() })
}

// at returns the publication at a path if it is still in effect.
func (s *mountState) at(at mountPath) *drivebay.Publication {
	for _, p := range s.now {
		if p.Path == at.String() {
			return &p
		}
	}
	return nil
}

// keep writes the current publications to the record.
func (s *mountState) keep(more func(*drivebay.Volume) error) error {
	if more == nil && slices.Equal(s.now, s.v.Publications) && atRest(s.v) {
		return nil
	}
	_, err := s.changeSoon(s.v.ID, func(r *drivebay.VolumeRecord) error {
		r.Volume.Publications = s.now
		if err := settle(&r.Volume); err != nil {
			return err
		}
		if more != nil {
			return more(&r.Volume)
		}
		return nil
	})
	return err
}

func (s *mountState) without(at mountPath) {
	s.now = slices.DeleteFunc(s.now, func(p drivebay.Publication) bool { return p.Path == at.String() })
}

func (s *mountState) with(p drivebay.Publication) {
	s.now = append(slices.DeleteFunc(s.now, func(have drivebay.Publication) bool { return have.Path == p.Path }), p)
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
