package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// What is mounted is asked of the mount table, never of memory: whoever crashed
// between a mount and its record, and whoever unmounts behind our back, changes
// the table only. A record adds what the table cannot tell: what for, and for whom.

// mounted are the mounts of a volume's device, as the mount table has them now.
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

// scene is a volume, its device and the mount table, at the moment of a call.
type scene struct {
	*Engine
	v   drivebay.Volume
	d   device // zero: not there now
	t   *table
	now []drivebay.Publication // those of the record that are still true
}

func (e *Engine) scene(ctx context.Context, v drivebay.Volume) (*scene, error) {
	t, err := e.freshTable(ctx)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.ID, err)
	}
	return e.sceneOn(v, t), nil
}

func (e *Engine) sceneOn(v drivebay.Volume, t *table) *scene {
	s := &scene{Engine: e, v: v, t: t}
	if d, err := e.plain(&v); err == nil {
		s.d = d
	}
	for _, p := range v.Publications {
		if at, err := e.spot(p.Path); p.Staging && v.Mode != drivebay.ModeFS || err == nil && len(s.ours(at)) > 0 {
			s.now = append(s.now, p)
		}
	}
	return s
}

// ours are the mounts of the volume at a path: of its device, or of the one that
// it was when it was mounted there. A drive that left and came back has another
// number, and its mounts are dead; the kernel gives no number away that is mounted.
func (s *scene) ours(at spot) []host.Mount {
	var out []host.Mount
	for _, m := range s.t.on[at.target] {
		if s.isOurs(m, at) {
			out = append(out, m)
		}
	}
	return out
}

// isOurs says that a mount at a path is one of the volume, by what is known of it now,
// by the record, or by the device itself.
func (s *scene) isOurs(m host.Mount, at spot) bool {
	return carries(m, s.d) || carries(m, s.former(at)) || s.mountOf(s.v.ID, m)
}

// former is the device that was mounted at a path when we did it.
func (s *scene) former(at spot) device {
	if p := s.recorded(at); p != nil {
		return madeOf(*p)
	}
	return device{}
}

func (s *scene) recorded(at spot) *drivebay.Publication {
	path := at.String()
	i := slices.IndexFunc(s.v.Publications, func(p drivebay.Publication) bool { return p.Path == path })
	if i < 0 {
		return nil
	}
	return &s.v.Publications[i]
}

// live says whether what is seen at a path is the volume as it is now.
func (s *scene) live(at spot) bool {
	m, ok := s.t.top(at.target)
	if !ok || !carries(m, s.d) || strings.HasSuffix(m.Root, unlinked) {
		return false
	}
	p := s.at(at)
	return p == nil || !renumbered(m, s.d, madeOf(*p))
}

// stranger is what is seen at a path if that is not the volume's.
func (s *scene) stranger(at spot) error {
	m, ok := s.t.top(at.target)
	if !ok || s.isOurs(m, at) {
		return nil
	}
	return fmt.Errorf("volume %s: path %s: %w: something else is mounted there: %s", s.v.ID, at, drivebay.ErrRefused, what(m))
}

// staging is where the volume is staged.
func (s *scene) staging() *drivebay.Publication {
	for _, p := range s.now {
		if p.Staging {
			return &p
		}
	}
	return nil
}

// targets are where it is published, but for one path.
func (s *scene) targets(but spot) []drivebay.Publication {
	return slices.DeleteFunc(slices.Clone(s.now), func(p drivebay.Publication) bool { return p.Staging || p.Path == but.String() })
}

// at is the publication at a path that still is one.
func (s *scene) at(at spot) *drivebay.Publication {
	for _, p := range s.now {
		if p.Path == at.String() {
			return &p
		}
	}
	return nil
}

// keep makes what is true the record's.
func (s *scene) keep(more func(*drivebay.Volume) error) error {
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

func (s *scene) without(at spot) {
	s.now = slices.DeleteFunc(s.now, func(p drivebay.Publication) bool { return p.Path == at.String() })
}

func (s *scene) with(p drivebay.Publication) {
	s.now = append(slices.DeleteFunc(s.now, func(have drivebay.Publication) bool { return have.Path == p.Path }), p)
}

// atRest says that the status is what the publications say, or none that they decide.
func atRest(v drivebay.Volume) bool {
	switch v.CSIStatus {
	case drivebay.CSICreated, drivebay.CSIVolumeReady, drivebay.CSIPublished:
		return v.CSIStatus == v.Rest()
	}
	return true
}

// settle moves a volume to where its publications say that it is.
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
