package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// PublishVolume makes a staged volume appear at a path: a folder for its
// filesystem, a file for its device.
func (e *Engine) PublishVolume(ctx context.Context, r drivebay.PublishRequest) error {
	at, err := e.spot(r.Target)
	if err != nil {
		return err
	}
	if r.Staging == "" {
		return fmt.Errorf("publish volume %s: %w: no staging path is given", r.Volume, drivebay.ErrBusy)
	}
	from, err := e.spot(r.Staging)
	if err != nil {
		return err
	}
	if at == from || strings.HasPrefix(at.target, from.target+"/") {
		return fmt.Errorf("publish volume %s: path %s: %w: it is in the volume itself", r.Volume, at, drivebay.ErrInvalid)
	}
	r.Options = plainOptions(r.Options)
	return e.onVolume(ctx, "publish", r.Volume, func(ctx context.Context, v drivebay.Volume) error {
		if err := canUse(&v, r.Block, r.FSType, r.Options); err != nil {
			return err
		}
		s, err := e.scene(ctx, v)
		if err != nil {
			return err
		}
		if err := e.mayPublish(s, at); err != nil {
			return err
		}
		return s.publishAt(ctx, from, at, r)
	})
}

// mayPublish refuses a further path for a volume on a drive that shrank or whose
// layout is unknown. A path that has
// it already keeps it.
func (e *Engine) mayPublish(s *scene, at spot) error {
	if s.at(at) != nil && s.live(at) {
		return nil
	}
	if !e.untrusted(s.v.Location.Drives) {
		return nil
	}
	return e.trusted(s.v.Location.Drives)
}

func (s *scene) publishAt(ctx context.Context, from, at spot, r drivebay.PublishRequest) error {
	context, err := contextOf(r.Options)
	if err != nil {
		return err
	}
	want := drivebay.Publication{Path: at.String(), Context: context, Access: r.Access, Flags: flagsOf(r.Options), Device: s.d.num + " " + s.d.name, Since: s.machine.Now(), Boot: s.boot(),
		ReadOnly: r.ReadOnly || r.Access == drivebay.AccessReader || slices.Contains(r.Options, "ro")}
	staged := s.staging()
	if staged == nil || staged.Path != from.String() || s.d.num == "" || s.v.Mode == drivebay.ModeFS && !s.live(from) {
		return fmt.Errorf("%w: it is not staged at %s", drivebay.ErrBusy, from)
	}
	if err := sameContext(*staged, context); err != nil {
		return err
	}
	if err := s.stranger(at); err != nil {
		return err
	}
	if have := s.at(at); have != nil && s.live(at) {
		if have.Staging || !same(*have, want) {
			return fmt.Errorf("%w: it is published there in another way", drivebay.ErrExists)
		}
		want.Since = have.Since
		if have.Flags != "" {
			return s.keep(nil)
		}
	}
	if err := s.mayJoin(at, want); err != nil {
		return err
	}
	if !s.live(at) {
		if err := s.clear(ctx, at); err != nil {
			return err
		}
		if err := s.bind(ctx, from, at, want.ReadOnly); err != nil {
			return s.failed(err)
		}
	}
	s.with(want)
	if err := s.keep(nil); err != nil {
		return err
	}
	return s.succeeded()
}

// mayJoin is the table of the specification for a second path of one volume
// (NodePublishVolume): one alone, or any number. The whole device of a block
// volume is read-only or it is not, since the mount of its node says nothing
// about writing to it.
func (s *scene) mayJoin(at spot, want drivebay.Publication) error {
	for _, p := range append(s.targets(at), s.unrecorded(at)...) {
		switch {
		case want.Access.Exclusive() || s.exclusive(p):
			return fmt.Errorf("%w: only one path may have it, and %s has it", drivebay.ErrBusy, p.Path)
		case s.v.Mode != drivebay.ModeFS && p.ReadOnly != want.ReadOnly:
			return fmt.Errorf("%w: a block device is read-only for all or for nobody, and %s has it otherwise", drivebay.ErrBusy, p.Path)
		}
	}
	return nil
}

// exclusive says whether a path has the volume for itself alone. Of a mount that was
// found in the mount table after its record was lost nothing is known but what the
// volume was staged for: without that, nobody else joins.
func (s *scene) exclusive(p drivebay.Publication) bool {
	access := p.Access
	if staged := s.staging(); access == drivebay.AccessUnknown && staged != nil {
		access = staged.Access
	}
	return access == drivebay.AccessUnknown || access.Exclusive()
}

// unrecorded are the paths below our roots at which the mount table has the volume and
// the record has not. Pieces of a filesystem that a kubelet has bound elsewhere
// (volume-subpaths) are not.
func (s *scene) unrecorded(but spot) []drivebay.Publication {
	var out []drivebay.Publication
	for _, m := range s.t.of(s.d) {
		at, ok := s.spotOf(m.Target)
		if ok && at != but && s.recorded(at) == nil && (m.Root == "/" || shows(m) != "") {
			out = append(out, drivebay.Publication{Path: at.String(), ReadOnly: isReadOnly(m)})
		}
	}
	return out
}

// bind has a path show the volume. Where the filesystem is not mounted, a bind shows the
// bare folder below, and a pod would write to the disk of the system: so the mount table is
// asked before and after.
func (s *scene) bind(ctx context.Context, from, at spot, readOnly bool) error {
	defer s.touched()
	if s.v.Mode != drivebay.ModeFS {
		return s.bindDevice(ctx, at, readOnly)
	}
	if err := s.proveLive(ctx, from); err != nil {
		return err
	}
	if err := s.machine.MakeFolder(at.Place); err != nil {
		return inOurWords(err)
	}
	err := touch(ctx, s.Engine, &s.v, mountTime, func(ctx context.Context) error {
		return s.machine.Bind(ctx, from.Place, at.Place, readOnly)
	})
	if err != nil {
		return err
	}
	if err := s.proveLive(ctx, at); err != nil { // it was unmounted at this moment
		return errors.Join(err, touch(ctx, s.Engine, &s.v, unmountTime, func(ctx context.Context) error { return s.machine.Unmount(ctx, at.Place) }))
	}
	return nil
}

// proveLive wants the volume to be seen at a path now.
func (s *scene) proveLive(ctx context.Context, at spot) error {
	t, err := s.freshTable(ctx)
	if err != nil {
		return err
	}
	if m, mounted := t.top(at.target); !mounted || !carries(m, s.d) {
		return fmt.Errorf("%w: it is not mounted at %s any more", drivebay.ErrBusy, at)
	}
	return nil
}

func (s *scene) bindDevice(ctx context.Context, at spot, readOnly bool) error {
	if err := s.machine.MakeFile(at.Place); err != nil {
		return inOurWords(err)
	}
	return touch(ctx, s.Engine, &s.v, mountTime, func(ctx context.Context) error {
		disk, err := s.machine.OpenDisk(ctx, s.d.dev, false)
		if err != nil {
			return err
		}
		defer disk.Close()
		if disk.DevNum() != s.d.num {
			return fmt.Errorf("%w: %s is another device now", drivebay.ErrRefused, s.d.dev)
		}
		if err := ctx.Err(); err != nil { // the caller has gone, and the volume may have been unstaged since
			return err
		}
		if err := disk.SetReadOnly(readOnly); err != nil {
			return err
		}
		return s.machine.BindDevice(ctx, s.d.dev, at.Place, readOnly)
	})
}

// UnpublishVolume undoes PublishVolume, whatever is wrong with the volume, and also if
// no record has it. The
// path goes with the mount, but never anything that somebody has put there.
func (e *Engine) UnpublishVolume(ctx context.Context, id, path string) error {
	at, err := e.spot(path)
	if err != nil {
		return err
	}
	return e.letGoAt(ctx, "unpublish", id, func(ctx context.Context, s *scene) error { return s.unpublish(ctx, at) })
}

func (s *scene) unpublish(ctx context.Context, at spot) error {
	have := s.at(at)
	if have != nil && have.Staging {
		return fmt.Errorf("%w: it is staged there, not published", drivebay.ErrBusy)
	}
	if err := s.clear(ctx, at); err != nil {
		return err
	}
	s.without(at)
	if have != nil && have.ReadOnly && s.v.Mode != drivebay.ModeFS && len(s.targets(at)) == 0 {
		s.writable(ctx)
	}
	if err := s.keep(nil); err != nil {
		return err
	}
	return inOurWords(s.machine.Remove(at.Place)) // a call again removes what this one did not come to
}

// writable lets a device be written to again that was published read-only. Where
// that fails the next publication says again what it is to be.
func (s *scene) writable(ctx context.Context) {
	if s.d.num == "" {
		return
	}
	err := touch(ctx, s.Engine, &s.v, probeTime, func(ctx context.Context) error {
		disk, err := s.machine.OpenDisk(ctx, s.d.dev, false)
		if err != nil {
			return err
		}
		defer disk.Close()
		if disk.DevNum() != s.d.num {
			return nil
		}
		return disk.SetReadOnly(false)
	})
	if err != nil {
		s.log.Warn("device stays read-only", "op", "unpublish", "volume", s.v.ID, "err", err)
	}
}
