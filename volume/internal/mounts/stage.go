package mounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mountoptions"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// CanUse refuses a use for which the volume is not made or not ready. OnVolume adds the
// volume's id to the errors.
func CanUse(v *drivebay.Volume, block bool, fs string, options []string) error {
	if err := instances.Undecided(v); err != nil { // its mode may be that of the duplicate
		return err
	}
	if block == v.HasFilesystem() {
		return fmt.Errorf("%w: it is a volume of mode %v", drivebay.ErrNoSupport, v.Mode)
	}
	if fs != "" && !block && fs != v.FSType {
		return fmt.Errorf("%w: its filesystem is %s and not %q", drivebay.ErrNoSupport, v.FSType, fs)
	}
	if v.Usage == drivebay.VolumeReleased {
		return fmt.Errorf("%w: it was released: its drive leaves without it", drivebay.ErrRefused)
	}
	doing := v.CSIStatus
	if doing == drivebay.CSIFailed {
		doing = v.State().Before
	}
	switch doing {
	case drivebay.CSICreated, drivebay.CSIVolumeReady, drivebay.CSIPublished, drivebay.CSIResized:
	case drivebay.CSIResizing:
		if v.CSIStatus == drivebay.CSIResizing {
			return fmt.Errorf("%w: its expansion is in progress; retry later", drivebay.ErrPending)
		}
	default:
		return fmt.Errorf("%w: it is %v", drivebay.ErrRefused, doing)
	}
	if block && len(options) > 0 {
		return fmt.Errorf("%w: a block volume takes no mount options", drivebay.ErrInvalid)
	}
	return mountoptions.Check(v.FSType, options)
}

// Stage stages a volume at a path.
func (s *MountState) Stage(ctx context.Context, at MountPath, r drivebay.StageRequest) error {
	context, err := mountoptions.Context(r.Options)
	if err != nil {
		return err
	}
	want := drivebay.Publication{Path: at.String(), Staging: true, Context: context, Access: r.Access, Flags: mountoptions.Flags(r.Options),
		ReadOnly: slices.Contains(r.Options, "ro"), Device: s.D.Num + " " + s.D.Name, Since: s.Machine.Now(), Boot: s.Mirror.Boot()}
	if have := s.Staging(); have != nil && have.Path != want.Path && !guessed(have) {
		return fmt.Errorf("%w: it is staged at %s", drivebay.ErrBusy, have.Path)
	}
	if err := cmp.Or(s.MountTable.Settled(at.Place), s.stranger(at), s.hidden(at)); err != nil {
		return err
	}
	have := s.at(at)
	switch {
	case !s.same(at, want):
		if have != nil && have.Context != want.Context {
			return fmt.Errorf("%w: it is staged there with the SELinux label %q, not %q", drivebay.ErrExists, have.Context, want.Context)
		}
		return fmt.Errorf("%w: it is staged there in another way", drivebay.ErrExists)
	case have != nil:
		want.Since = have.Since
	}
	news := have == nil
	for _, fs := range s.filesystem(at, r.Options, want.ReadOnly) { // a block volume has none
		if _, err := fs.State(); err == nil {
			continue
		}
		if err := s.Clear(ctx, at); err != nil {
			return err
		}
		if _, err := fs.Open(ctx, device.Opening{}); err != nil {
			return s.Failed(s.heldByDead(err))
		}
		news = true
	}
	s.with(want)
	if err := s.Keep(); err != nil {
		return ledger.Begun(err)
	}
	if news {
		s.noteStaging(drivebay.EventVolumeStaged, "staged at", at)
	}
	if err := s.Grown(ctx, at); err != nil {
		return ledger.Begun(s.Failed(err))
	}
	return ledger.Begun(s.succeeded())
}

// same reports whether a call asks for what is at a path, if anything is. Of a mount that was found in the
// mount table, because the records were lost or a crash came before the record, only the table says
// something: whether it is read-only.
func (s *VolumeMounts) same(at MountPath, want drivebay.Publication) bool {
	have := s.at(at)
	if have == nil || have.Flags == "" {
		m, _ := s.T.Top(at.Target)
		return !s.live(at) || mounttable.IsReadOnly(m) == want.ReadOnly
	}
	return have.Staging == want.Staging && have.Flags == want.Flags && have.Access == want.Access && have.ReadOnly == want.ReadOnly
}

// Mount mounts the filesystem that the record names, and no other. It holds the device
// open meanwhile, so that no other device gets its number or its name.
func (s *MountState) Mount(ctx context.Context, at MountPath, options []string, readOnly bool) error {
	err := steps.Touch(ctx, s.Steps, &s.V, steps.MountTime, func(ctx context.Context) error {
		disk, err := s.Device.OpenSame(ctx, s.D, false)
		if err != nil {
			return err
		}
		defer disk.Close()
		if err := ProveFS(disk, &s.V); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil { // the caller has gone, and the volume may have been unstaged since
			return err
		}
		if err := s.Machine.MakeFolder(at.Place); err != nil {
			return err
		}
		s.Counters.Of(s.V.ID).forget() // not later: what the kernel says while it mounts counts
		return s.Machine.Mount(ctx, host.NewMount{Device: disk.Path(), FS: s.V.FSType, At: at.Place, ReadOnly: readOnly, Options: mountoptions.Own(&s.V, options)})
	})
	s.MountTable.Touched()
	return err
}

// Clear unmounts every mount of the volume at a path. It fails if a mount of something
// else is on top or appears below.
func (s *MountState) Clear(ctx context.Context, at MountPath) error {
	for range len(s.Ours(at)) {
		if err := s.stranger(at); err != nil {
			return err
		}
		err := steps.Touch(ctx, s.Steps, &s.V, steps.UnmountTime, func(ctx context.Context) error { return s.MountTable.Unmount(ctx, at.Place) })
		s.MountTable.Touched()
		if err != nil && !errors.Is(err, host.ErrNotMounted) {
			return err
		}
		t, err := s.MountTable.FreshTable(ctx)
		if err != nil {
			return err
		}
		s.T = t
	}
	return s.stranger(at)
}

// Unstage ends the staging of a volume.
func (s *MountState) Unstage(ctx context.Context, at MountPath) error {
	have := s.at(at)
	if have != nil && !have.Staging && have.Flags != "" {
		return fmt.Errorf("%w: it is published there, not staged", drivebay.ErrBusy)
	}
	if targets := s.targets(s.Now, at); have != nil && len(targets) > 0 {
		return fmt.Errorf("%w: it is published at %s", drivebay.ErrBusy, targets[0].Path)
	}
	news := have != nil
	if len(s.Ours(at)) > 0 {
		if err := s.Clear(ctx, at); err != nil {
			return err
		}
		news = true
	}
	s.without(at.String())
	if len(s.Now) == 0 && len(s.Lost) > 0 && s.V.HasFilesystem() && s.Unused(ctx) == nil { // the kernel does not show what has a block device open
		s.Lost = nil
	}
	if s.Staging() == nil {
		s.Counters.Of(s.V.ID).forget()
	}
	if err := s.Keep(); err != nil {
		return err
	}
	if news {
		s.noteStaging(drivebay.EventVolumeUnstaged, "unstaged from", at)
	}
	if len(s.V.Location.Drives) == 0 {
		s.Device.LockUnrecorded(ctx, &s.V, func(d mounttable.Device) bool { return len(s.T.Of(d)) > 0 })
		return nil
	}
	if err := s.closeUnused(ctx); err != nil {
		return err
	}
	if _, err := s.Device.Device(&s.V); err != nil || len(s.Now) > 0 || len(s.T.Of(s.D)) > 0 {
		return nil
	}
	// A device that stays active does no harm, and must not make the call fail.
	ctx, cancel := context.WithTimeout(ctx, steps.UnmountTime)
	defer cancel()
	if err := s.layers().Piece().Close(ctx); err != nil {
		s.Log.Warn("device not deactivated", "op", "unstage", "volume", s.V.ID, "err", err)
	}
	return nil
}

// noteStaging sends an event with the status that the volume has now.
func (s *MountState) noteStaging(kind drivebay.EventKind, did string, at MountPath) {
	if r, err := s.Ledger.Record(s.V.ID); err == nil {
		s.Ledger.Note(kind, &r.Volume, fmt.Sprintf("volume %q: %s %s", s.V.Name, did, at))
	}
}
