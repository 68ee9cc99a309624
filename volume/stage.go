package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// StageVolume makes a volume ready at a path of its own: it mounts the filesystem
// there, and PublishVolume binds the paths of pods to it. For a block volume it
// activates the device; the path stays empty.
func (e *Engine) StageVolume(ctx context.Context, r drivebay.StageRequest) error {
	at, err := e.checkPath(r.Path)
	if err != nil {
		return err
	}
	r.Options = plainOptions(r.Options)
	return e.onVolume(ctx, "stage", r.Volume, func(ctx context.Context, v drivebay.Volume) error {
		if err := canUse(&v, r.Block, r.FSType, r.Options); err != nil {
			return err
		}
		if stagedAt(&v) == nil { // e2fsck opens an unmounted device exclusively
			e.stopScrub(ctx, v.ID)
		}
		if _, err := e.activate(ctx, &v); err != nil {
			return inOurWords(err)
		}
		s, err := e.mountState(ctx, v)
		if err != nil {
			return err
		}
		if err = s.unlock(ctx, at, r.Secrets); err != nil {
			err = s.failed(err)
		} else {
			err = s.stage(ctx, at, r)
		}
		if err != nil {
			s.lockAgain(ctx)
		}
		return err
	})
}

// canUse refuses a use for which the volume is not made or not ready. onVolume adds the
// volume's id to the errors.
func canUse(v *drivebay.Volume, block bool, fs string, options []string) error {
	if err := undecided(v); err != nil { // its mode may be that of the duplicate
		return err
	}
	if block == (v.Mode == drivebay.ModeFS) {
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
	return checkOptions(v.FSType, options)
}

func (s *mountState) stage(ctx context.Context, at mountPath, r drivebay.StageRequest) error {
	context, err := contextOf(r.Options)
	if err != nil {
		return err
	}
	want := drivebay.Publication{Path: at.String(), Staging: true, Context: context, Access: r.Access, Flags: flagsOf(r.Options),
		ReadOnly: slices.Contains(r.Options, "ro"), Device: s.d.num + " " + s.d.name, Since: s.machine.Now(), Boot: s.boot()}
	if have := s.staging(); have != nil && have.Path != want.Path {
		return fmt.Errorf("%w: it is staged at %s", drivebay.ErrBusy, have.Path)
	}
	if err := s.stranger(at); err != nil {
		return err
	}
	if have := s.at(at); have != nil {
		if !have.Staging || !same(*have, want) {
			if have.Context != want.Context {
				return fmt.Errorf("%w: it is staged there with the SELinux label %q, not %q", drivebay.ErrExists, have.Context, want.Context)
			}
			return fmt.Errorf("%w: it is staged there in another way", drivebay.ErrExists)
		}
		want.Since = have.Since
	}
	news := s.at(at) == nil
	if s.v.Mode == drivebay.ModeFS && !s.live(at) {
		if err := s.clear(ctx, at); err != nil {
			return err
		}
		if err := s.mount(ctx, at, r.Options, want.ReadOnly); err != nil {
			return s.failed(err)
		}
		news = true
	}
	s.with(want)
	if err := s.keep(nil); err != nil {
		return err
	}
	if news {
		s.noteStaging(drivebay.EventVolumeStaged, "staged at", at)
	}
	if err := s.grown(ctx, at); err != nil {
		return s.failed(err)
	}
	return s.succeeded()
}

// same reports whether a repeated call asks for what is there. A mount that was adopted
// because a crash came before its record has no flags: it matches every call.
func same(have, want drivebay.Publication) bool {
	return have.Flags == "" || have.Flags == want.Flags && have.Access == want.Access && have.ReadOnly == want.ReadOnly
}

// mount mounts the filesystem that the record names, and no other. It holds the device
// open meanwhile, so that no other device gets its number or its name.
func (s *mountState) mount(ctx context.Context, at mountPath, options []string, readOnly bool) error {
	err := touch(ctx, s.Engine, &s.v, mountTime, func(ctx context.Context) error {
		disk, err := s.machine.OpenDisk(ctx, s.d.dev, false)
		if err != nil {
			return err
		}
		defer disk.Close()
		if disk.DevNum() != s.d.num {
			return fmt.Errorf("%w: %s is another device now", drivebay.ErrRefused, s.d.dev)
		}
		if err := proveFS(disk, &s.v); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil { // the caller has gone, and the volume may have been unstaged since
			return err
		}
		if err := s.machine.MakeFolder(at.Place); err != nil {
			return err
		}
		return s.machine.Mount(ctx, host.NewMount{Device: disk.Path(), FS: s.v.FSType, At: at.Place, ReadOnly: readOnly, Options: ownOptions(&s.v, options)})
	})
	s.touched()
	s.counters.of(s.v.ID).forget()
	return err
}

// clear unmounts every mount of the volume at a path. It fails if a mount of something
// else is on top or appears below.
func (s *mountState) clear(ctx context.Context, at mountPath) error {
	for range len(s.ours(at)) {
		if err := s.stranger(at); err != nil {
			return err
		}
		err := touch(ctx, s.Engine, &s.v, unmountTime, func(ctx context.Context) error { return s.machine.Unmount(ctx, at.Place) })
		s.touched()
		if err != nil && !errors.Is(err, host.ErrNotMounted) {
			return err
		}
		t, err := s.freshTable(ctx)
		if err != nil {
			return err
		}
		s.t = t
	}
	return s.stranger(at)
}

// UnstageVolume undoes StageVolume. No fault of the volume prevents that, not even a
// missing record. A path at which the volume is not staged counts as unstaged.
func (e *Engine) UnstageVolume(ctx context.Context, id, path string) error {
	at, err := e.checkPath(path)
	if err != nil {
		return err
	}
	return e.letGoAt(ctx, "unstage", id, func(ctx context.Context, s *mountState) error {
		e.stopScrub(ctx, id)
		return s.unstage(ctx, at)
	})
}

func (s *mountState) unstage(ctx context.Context, at mountPath) error {
	if have := s.at(at); have != nil && !have.Staging {
		return fmt.Errorf("%w: it is published there, not staged", drivebay.ErrBusy)
	}
	if targets := s.targets(at); len(targets) > 0 && s.at(at) != nil {
		return fmt.Errorf("%w: it is published at %s", drivebay.ErrBusy, targets[0].Path)
	}
	news := s.at(at) != nil
	if len(s.ours(at)) > 0 {
		if err := s.clear(ctx, at); err != nil {
			return err
		}
		news = true
	}
	s.without(at)
	if s.staging() == nil {
		s.counters.of(s.v.ID).forget()
	}
	if err := s.keep(nil); err != nil {
		return err
	}
	if news {
		s.noteStaging(drivebay.EventVolumeUnstaged, "unstaged from", at)
	}
	if err := s.lockUnused(ctx); err != nil {
		return err
	}
	if _, err := s.device(&s.v); err != nil || len(s.now) > 0 || len(s.t.of(s.d)) > 0 {
		return nil
	}
	// A device that stays active does no harm, and must not make the call fail.
	ctx, cancel := context.WithTimeout(ctx, unmountTime)
	defer cancel()
	if err := s.deactivate(ctx, &s.v); err != nil {
		s.log.Warn("device not deactivated", "op", "unstage", "volume", s.v.ID, "err", err)
	}
	return nil
}

// noteStaging sends an event with the status that the volume has now.
func (s *mountState) noteStaging(kind drivebay.EventKind, did string, at mountPath) {
	if r, err := s.record(s.v.ID); err == nil {
		s.note(kind, &r.Volume, fmt.Sprintf("volume %q: %s %s", s.v.Name, did, at))
	}
}
