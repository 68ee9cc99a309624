package mounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mountoptions"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// MayPublish refuses a further path for a volume on a drive that shrank or whose layout is unknown.
// An existing path stays.
func (e *Mounter) MayPublish(s *MountState, at MountPath) error {
	if s.at(at) != nil && s.live(at) || !e.Inventory.Untrusted(s.V.Location.Drives) {
		return nil
	}
	return e.Partitions.Trusted(s.V.Location.Drives)
}

// PublishAt publishes a staged volume at a path.
func (s *MountState) PublishAt(ctx context.Context, from, at MountPath, r drivebay.PublishRequest) error {
	context, err := mountoptions.Context(r.Options)
	if err != nil {
		return err
	}
	want := drivebay.Publication{Path: at.String(), Context: context, Access: r.Access, Flags: mountoptions.Flags(r.Options), Device: s.D.Num + " " + s.D.Name, Since: s.Machine.Now(), Boot: s.Mirror.Boot(), Pod: r.Pod,
		ReadOnly: r.ReadOnly || r.Access == drivebay.AccessReader || slices.Contains(r.Options, "ro")}
	if err := cmp.Or(s.MountTable.Settled(from.Place), s.MountTable.Settled(at.Place), s.hidden(from), s.hidden(at)); err != nil {
		return err
	}
	staged := s.Staging()
	if staged == nil || staged.Path != from.String() || s.D.Num == "" || !s.stagedAsBlock(*staged) && !s.live(from) {
		return s.Device.OrAway(&s.V, fmt.Errorf("%w: it is not staged at %s", drivebay.ErrBusy, from))
	}
	if err := mountoptions.SameContext(*staged, context); err != nil {
		return err
	}
	if err := s.stranger(at); err != nil {
		return err
	}
	if s.live(at) && !s.same(at, want) {
		return fmt.Errorf("%w: it is published there with other options", drivebay.ErrExists)
	}
	if have := s.at(at); have != nil && s.live(at) {
		want.Since = have.Since
		if have.Flags != "" {
			return s.Keep()
		}
	}
	if err := s.mayJoin(at, want); err != nil {
		return err
	}
	if !s.live(at) {
		if err := s.Clear(ctx, at); err != nil {
			return err
		}
		if err := s.Bind(ctx, from, at, want.ReadOnly); err != nil {
			return s.Failed(err)
		}
	}
	s.with(want)
	if err := s.Keep(); err != nil {
		return ledger.Begun(err)
	}
	return ledger.Begun(s.succeeded())
}

// mayJoin applies the table of the specification for a second path of one volume (NodePublishVolume):
// one path alone, or any number. A block volume is read-only at all paths or at none, because the
// mount of its device node does not limit writes to the device.
func (s *VolumeMounts) mayJoin(at MountPath, want drivebay.Publication) error {
	for _, p := range slices.Concat(s.targets(s.Now, at), s.targets(s.Lost, at), s.unrecorded(at)) {
		switch {
		case want.Access.Exclusive() || s.exclusive(p):
			return fmt.Errorf("%w: its access mode allows one path, and it is published at %s", drivebay.ErrBusy, p.Path)
		case !s.V.HasFilesystem() && p.ReadOnly != want.ReadOnly:
			return fmt.Errorf("%w: a block volume must be read-only on every path or on none, and %s differs", drivebay.ErrBusy, p.Path)
		}
	}
	return nil
}

// exclusive reports whether a path excludes other paths. For a mount that was found in the mount
// table after its record was lost, only the access of the stage is known; without that, no other path
// may join.
func (s *VolumeMounts) exclusive(p drivebay.Publication) bool {
	access := p.Access
	if staged := s.Staging(); access == drivebay.AccessUnknown && staged != nil {
		access = staged.Access
	}
	return access == drivebay.AccessUnknown || access.Exclusive()
}

// unrecorded returns the paths below our roots at which the mount table has the volume and the record
// has not. It ignores parts of a filesystem that a kubelet has bound elsewhere (volume-subpaths).
func (s *VolumeMounts) unrecorded(but MountPath) []drivebay.Publication {
	var out []drivebay.Publication
	for _, m := range s.T.Of(s.D) {
		at, ok := s.pathOfTarget(m.Target)
		if ok && at != but && s.recorded(at) == nil && (m.Root == "/" || mounttable.Shows(m) != "") {
			out = append(out, drivebay.Publication{Path: at.String(), ReadOnly: mounttable.IsReadOnly(m)})
		}
	}
	return out
}

// Bind makes a path show the volume. If the filesystem is not mounted, a bind shows the bare folder
// below, and a pod would write to the system's disk: so bind reads the mount table before and after.
func (s *MountState) Bind(ctx context.Context, from, at MountPath, readOnly bool) error {
	defer s.MountTable.Touched()
	if !s.V.HasFilesystem() {
		return s.bindDevice(ctx, at, readOnly)
	}
	if err := s.proveLive(ctx, from); err != nil {
		return err
	}
	if err := s.Machine.MakeFolder(at.Place); err != nil {
		return steps.InOurWords(err)
	}
	err := steps.Touch(ctx, s.Steps, &s.V, steps.MountTime, func(ctx context.Context) error {
		return s.Machine.Bind(ctx, from.Place, at.Place, readOnly)
	})
	if err != nil {
		return err
	}
	if err := s.proveLive(ctx, at); err != nil { // it was unmounted at this moment
		left := steps.Touch(ctx, s.Steps, &s.V, steps.UnmountTime, func(ctx context.Context) error { return s.MountTable.Unmount(ctx, at.Place) })
		if left != nil {
			return ledger.Begun(errors.Join(err, left))
		}
		return err
	}
	return nil
}

// proveLive returns an error unless a path shows the volume now.
func (s *MountState) proveLive(ctx context.Context, at MountPath) error {
	t, err := s.MountTable.FreshTable(ctx)
	if err != nil {
		return err
	}
	m, mounted := t.Top(at.Target)
	if _, hidden := t.Above(at.Target); !mounted || hidden || !mounttable.Carries(m, s.D) {
		return s.Device.OrAway(&s.V, fmt.Errorf("%w: it is not mounted at %s any more", drivebay.ErrBusy, at))
	}
	return nil
}

func (s *MountState) bindDevice(ctx context.Context, at MountPath, readOnly bool) error {
	if err := s.Machine.MakeFile(at.Place); err != nil {
		return steps.InOurWords(err)
	}
	return steps.Touch(ctx, s.Steps, &s.V, steps.MountTime, func(ctx context.Context) error {
		disk, err := s.Device.OpenOf(ctx, &s.V, s.D)
		if err != nil {
			return err
		}
		defer disk.Close()
		if err := disk.SetReadOnly(readOnly); err != nil {
			return err
		}
		return s.Machine.BindDevice(ctx, s.D.Dev, at.Place, readOnly)
	})
}

// Unpublish ends a publication of a volume.
func (s *MountState) Unpublish(ctx context.Context, at MountPath) error {
	have := s.at(at)
	if have != nil && have.Staging && !guessed(have) {
		return fmt.Errorf("%w: it is staged there, not published", drivebay.ErrBusy)
	}
	if err := s.Clear(ctx, at); err != nil {
		return err
	}
	s.without(at.String())
	if have != nil && have.ReadOnly && !s.V.HasFilesystem() && len(s.targets(s.Now, at)) == 0 {
		s.writable(ctx)
	}
	if err := s.Keep(); err != nil {
		return err
	}
	return steps.InOurWords(s.Machine.Remove(at.Place)) // a repeated call removes what this one has not
}

// writable makes a device that was published read-only writable again. If that fails, the next
// publication sets the mode again.
func (s *MountState) writable(ctx context.Context) {
	if s.D.Num == "" {
		return
	}
	err := steps.Touch(ctx, s.Steps, &s.V, steps.ProbeTime, func(ctx context.Context) error {
		disk, err := s.Device.OpenOf(ctx, &s.V, s.D)
		if err != nil {
			return err
		}
		defer disk.Close()
		return disk.SetReadOnly(false)
	})
	if err != nil {
		s.Log.Warn("device stays read-only", "op", "unpublish", "volume", s.V.ID, "err", err)
	}
}
