package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// PublishVolume makes a staged volume appear at a path: a folder for its filesystem, a file for its
// device.
func (e *Engine) PublishVolume(ctx context.Context, r drivebay.PublishRequest) error {
	at, err := e.checkPath(r.Target)
	if err != nil {
		return err
	}
	if r.Staging == "" {
		return fmt.Errorf("publish volume %s: %w: no staging path is given", r.Volume, drivebay.ErrBusy)
	}
	from, err := e.checkPath(r.Staging)
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
		s, err := e.mountState(ctx, v)
		if err != nil {
			return err
		}
		if err := e.mayPublish(s, at); err != nil {
			return err
		}
		return s.publishAt(ctx, from, at, r)
	})
}

// mayPublish refuses a further path for a volume on a drive that shrank or whose layout is unknown.
// An existing path stays.
func (e *Engine) mayPublish(s *mountState, at mountPath) error {
	if s.at(at) != nil && s.live(at) {
		return nil
	}
	if !e.untrusted(s.v.Location.Drives) {
		return nil
	}
	return e.trusted(s.v.Location.Drives)
}

func (s *mountState) publishAt(ctx context.Context, from, at mountPath, r drivebay.PublishRequest) error {
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
			return fmt.Errorf("%w: it is published there with other options", drivebay.ErrExists)
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

// mayJoin applies the table of the specification for a second path of one volume (NodePublishVolume):
// one path alone, or any number. A block volume is read-only at all paths or at none, because the
// mount of its device node does not limit writes to the device.
func (s *mountState) mayJoin(at mountPath, want drivebay.Publication) error {
	for _, p := range append(s.targets(at), s.unrecorded(at)...) {
		switch {
		case want.Access.Exclusive() || s.exclusive(p):
			return fmt.Errorf("%w: its access mode allows one path, and it is published at %s", drivebay.ErrBusy, p.Path)
		case s.v.Mode != drivebay.ModeFS && p.ReadOnly != want.ReadOnly:
			return fmt.Errorf("%w: a block volume must be read-only on every path or on none, and %s differs", drivebay.ErrBusy, p.Path)
		}
	}
	return nil
}

// exclusive reports whether a path excludes other paths. For a mount that was found in the mount
// table after its record was lost, only the access of the stage is known; without that, no other path
// may join.
func (s *mountState) exclusive(p drivebay.Publication) bool {
	access := p.Access
	if staged := s.staging(); access == drivebay.AccessUnknown && staged != nil {
		access = staged.Access
	}
	return access == drivebay.AccessUnknown || access.Exclusive()
}

// unrecorded returns the paths below our roots at which the mount table has the volume and the record
// has not. It ignores parts of a filesystem that a kubelet has bound elsewhere (volume-subpaths).
func (s *mountState) unrecorded(but mountPath) []drivebay.Publication {
	var out []drivebay.Publication
	for _, m := range s.t.of(s.d) {
		at, ok := s.pathOfTarget(m.Target)
		if ok && at != but && s.recorded(at) == nil && (m.Root == "/" || shows(m) != "") {
			out = append(out, drivebay.Publication{Path: at.String(), ReadOnly: isReadOnly(m)})
		}
	}
	return out
}

// bind makes a path show the volume. If the filesystem is not mounted, a bind shows the bare folder
// below, and a pod would write to the system's disk: so bind reads the mount table before and after.
func (s *mountState) bind(ctx context.Context, from, at mountPath, readOnly bool) error {
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

// proveLive returns an error unless a path shows the volume now.
func (s *mountState) proveLive(ctx context.Context, at mountPath) error {
	t, err := s.freshTable(ctx)
	if err != nil {
		return err
	}
	if m, mounted := t.top(at.target); !mounted || !carries(m, s.d) {
		return fmt.Errorf("%w: it is not mounted at %s any more", drivebay.ErrBusy, at)
	}
	return nil
}

func (s *mountState) bindDevice(ctx context.Context, at mountPath, readOnly bool) error {
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

// UnpublishVolume undoes PublishVolume, whatever the state of the volume, and also without a record.
// It removes the path after the mount, but never content that was put there.
func (e *Engine) UnpublishVolume(ctx context.Context, id, path string) error {
	at, err := e.checkPath(path)
	if err != nil {
		return err
	}
	return e.letGoAt(ctx, "unpublish", id, func(ctx context.Context, s *mountState) error { return s.unpublish(ctx, at) })
}

func (s *mountState) unpublish(ctx context.Context, at mountPath) error {
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
	return inOurWords(s.machine.Remove(at.Place)) // a repeated call removes what this one has not
}

// writable makes a device that was published read-only writable again. If that fails, the next
// publication sets the mode again.
func (s *mountState) writable(ctx context.Context) {
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
