package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// plainErrors are the errors of a removal that show the caller what to do.
var plainErrors = []error{drivebay.ErrUnavailable, drivebay.ErrBusy, drivebay.ErrPending, drivebay.ErrNoSupport, drivebay.ErrPermission, drivebay.ErrTimeout,
	context.DeadlineExceeded, context.Canceled, ledger.ErrPanic}

// Retriable makes an error of a removal that is not the caller's fault one that is retried: the
// drive is gone, or answers with errors.
func (e *Provisioner) Retriable(v *drivebay.Volume, err error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	broken := is(drivebay.ErrNotFound) || is(fs.ErrNotExist) || is(host.ErrUnreadable) || is(host.ErrIO) || is(host.ErrGone) || is(inventory.ErrLacking) || e.wentAway(v)
	if (is(drivebay.ErrPermission) || is(lvm.ErrUnknown)) && isReadOnly(e.Machine, e.Drives.Snapshot(), v) {
		return readOnly(err)
	}
	if err == nil || slices.ContainsFunc(plainErrors, is) || is(drivebay.ErrRefused) && !broken {
		return err
	}
	return fmt.Errorf("%w: %w", drivebay.ErrUnavailable, err)
}

// readOnly makes the error of a write to a read-only drive one that is retried. As a lack of privilege it would not be.
func readOnly(err error) error {
	return fmt.Errorf("%w: its drive is read-only: %v", drivebay.ErrUnavailable, err)
}

// isReadOnly reports whether the kernel refuses writes to a drive of a volume: its errors look like those of a lack of privilege, and LVM has none of
// its own for that.
func isReadOnly(files host.Files, s *drivebay.Snapshot, v *drivebay.Volume) bool {
	return slices.ContainsFunc(v.Location.Drives, func(id string) bool {
		d, known := steps.DriveOf(s, id)
		if !known {
			return false
		}
		ro, err := files.ReadFile("sys/block/" + d.Name + "/ro")
		return err == nil && strings.TrimSpace(string(ro)) == "1"
	})
}

// Reached makes an error of a call for a volume with a record ErrUnavailable if the volume was not found, or its drive cannot be
// read: it exists, and the call may succeed once its drive is back. An error that shows the caller what to do stays.
func (e *Provisioner) Reached(v *drivebay.Volume, err error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	broken := is(drivebay.ErrNotFound) || is(host.ErrUnreadable) || is(host.ErrIO) || is(host.ErrGone) || is(inventory.ErrLacking) || v.Location.OnLVM() && e.Groups.LVMLate() != ""
	if (is(drivebay.ErrPermission) || is(lvm.ErrUnknown)) && isReadOnly(e.Machine, e.Drives.Snapshot(), v) {
		return readOnly(err)
	}
	if err == nil || slices.ContainsFunc(plainErrors, is) || slices.ContainsFunc(callersFault, is) || is(drivebay.ErrRefused) && !broken || !broken && !e.wentAway(v) {
		return err
	}
	return fmt.Errorf("%w: %w", drivebay.ErrUnavailable, err)
}

// callersFault are those of ledger.CallersFault that no drive causes.
var callersFault = slices.DeleteFunc(slices.Clone(ledger.CallersFault), func(err error) bool { return err == fs.ErrNotExist })

// ofRequest are the errors of a creation that the request causes, or that only the log explains.
var ofRequest = []error{drivebay.ErrInvalid, drivebay.ErrExists, drivebay.ErrRange, drivebay.ErrSecret, ledger.ErrPanic}

// HalfMade makes the error of a creation one that is retried, if a part of the volume or snapshot is on its drive.
func HalfMade(l *ledger.Ledger, id string, err error) error {
	r, recErr := l.Record(id)
	s, isSnapshot := l.Snapshot(id)
	half := recErr == nil && isHalfMade(&r.Volume) || isSnapshot && s.Work != nil && s.Work.Op == drivebay.WorkCreate
	if !half || slices.ContainsFunc(ofRequest, func(target error) bool { return errors.Is(err, target) }) {
		return err
	}
	return ledger.Begun(err)
}

func isHalfMade(v *drivebay.Volume) bool {
	state := v.State()
	return state.Status == drivebay.CSICreating || state.Status == drivebay.CSIFailed && state.Before == drivebay.CSICreating
}

// MayRemove refuses a volume that the record, the kernel or LVM shows as in use.
func (e *Provisioner) MayRemove(ctx context.Context, v *drivebay.Volume) error {
	if v.Rest() != drivebay.CSICreated || v.Replication != nil && !v.Replication.Ended {
		return fmt.Errorf("%w: it is %s", drivebay.ErrBusy, cmp.Or(inventory.UsedAt(v), "staged or published"))
	}
	mounts, err := e.Mounts.Mounted(ctx, v)
	switch {
	case err != nil && !errors.Is(err, drivebay.ErrNotFound):
		return err
	case len(mounts) > 0:
		return fmt.Errorf("%w: it is mounted at %s", drivebay.ErrBusy, mounts[0].Target)
	}
	if !v.Location.OnLVM() {
		return nil
	}
	e.Groups.Reports.Delete(v.Location.VG)                          // another program can have made a snapshot right before
	if r, err := e.Write.MaybeReport(ctx, v.Location); err == nil { // else the removal says what is wrong
		return groups.MayRemove(r, v.Location)
	}
	return nil
}

// mayLeave refuses to leave a part of a volume unwiped, on a drive that is lost for good, before every drive was read: the record can be older
// than a new leg of the mirror.
func (e *Provisioner) mayLeave(id string) error {
	rec, err := e.Ledger.Record(id)
	if err != nil || rec.Work != nil && rec.Work.Op == drivebay.WorkRemove {
		return err
	}
	if _, _, alone := e.Mirror.SurvivingMirror(&rec); alone || mirror.LostForGood(e.Drives.Snapshot(), rec.Volume.Location) {
		return e.Inventory.UnreadDrives(inventory.EveryDrive)
	}
	return nil
}

// WantRemoved records that a volume is to be removed.
func (e *Provisioner) WantRemoved(id string) error {
	if err := e.mayLeave(id); err != nil {
		return err
	}
	_, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) (err error) {
		work := &drivebay.Work{Op: drivebay.WorkRemove, Since: e.Machine.Now()}
		switch {
		case partitions.IsFoundHalf(r):
			work.Made = []string{partitions.FoundHalf}
		case r.Work != nil && r.Work.Op == drivebay.WorkCreate:
			work.Made = []string{partitions.NeverWhole}
		case r.Work != nil && r.Work.Op == drivebay.WorkExpand: // the growth may have changed the table, and not yet the kernel
			work.Size = r.Work.Size
		}
		if r.Volume.CSIStatus != drivebay.CSIRemoving {
			if r.Volume, err = r.Volume.Moved(drivebay.CSIRemove); err != nil {
				return err
			}
		}
		if r.Work == nil || r.Work.Op != drivebay.WorkRemove {
			r.Work = work
		}
		return nil
	})
	return err
}

// Remove completes a removal, and forgets the volume.
func (e *Provisioner) Remove(ctx context.Context, id string) error {
	rec, err := e.Ledger.Record(id)
	if err != nil {
		return err
	}
	if rec.Work == nil || rec.Work.Op != drivebay.WorkRemove { // only a recorded removal permits a wipe
		return fmt.Errorf("volume %s: %w: it is not being removed", id, drivebay.ErrRefused)
	}
	is, plan, err := e.planRemoval(rec)
	if err == nil {
		err = e.Steps.Run(ctx, id, plan)
	}
	if err != nil {
		return e.Ledger.Failed(ctx, id, err)
	}
	v := rec.Volume
	if v.CSIStatus == drivebay.CSIRemoving {
		v, _ = v.Moved(drivebay.CSIDone)
	}
	was := drivebay.ForgottenVolume{ID: id, Instance: instances.InstanceOf(v.Location), Replaced: true}
	if len(is.Location.Drives) < ledger.DrivesPerGroup(is.Location.Kind) { // its other leg may return
		err = e.Instances.MarkForgotten(was)
	} else {
		err = e.Instances.UnmarkForgotten(was.Key())
	}
	if err := errors.Join(err, e.Ledger.Forget(id)); err != nil {
		return err
	}
	e.Ledger.Note(drivebay.EventVolumeDeleted, &v, fmt.Sprintf("volume %q was removed", v.Name))
	return nil
}

// planRemoval returns the plan that removes a volume, and what it removes: a mirror may lack
// its other drive.
func (e *Provisioner) planRemoval(rec drivebay.VolumeRecord) (is drivebay.Volume, plan []steps.Step, err error) {
	if is, _, _ = e.Mirror.SurvivingMirror(&rec); mirror.LostForGood(e.Drives.Snapshot(), rec.Volume.Location) {
		return is, nil, e.Device.Stack(&is).Forget()
	}
	if is, err = e.Mirror.AsRemoved(&rec); err != nil {
		return is, nil, err
	}
	rec.Volume = is
	plan, err = e.piece(rec).remove()
	return is, plan, err
}

// Wiped returns the step that wipes a volume as its class requires, while the volume still
// exists.
func (e *Provisioner) Wiped(v *drivebay.Volume, there func(context.Context) (bool, error)) steps.Step {
	return e.Steps.Made(v.ID, partitions.WipeStep, func(ctx context.Context) error {
		if is, err := there(ctx); err != nil || !is {
			return err
		}
		if groups.RemainsWipe(v) != drivebay.WipeNone {
			d, err := e.Device.Stack(v).Piece().Open(ctx, device.Opening{})
			if do := erase.RangeWipe(groups.WipeOf(v)); err == nil && do != nil {
				err = e.LUKS.OverwritePiece(ctx, v, "wipe", 0, d.Size, do)
			}
			if err == nil {
				err = e.Mirror.LeavesLegs(ctx, v)
			}
			if err != nil {
				return err
			}
		}
		return e.LUKS.OnPiece(ctx, v, true, erase.ClearMarks)
	})
}

// wentAway reports whether the kernel lacks a drive of a volume: the kernel may be ahead of the
// snapshot.
func (e *Provisioner) wentAway(v *drivebay.Volume) bool {
	s := e.Drives.Snapshot()
	return slices.ContainsFunc(v.Location.Drives, func(id string) bool {
		d, known := steps.DriveOf(s, id)
		if !known || d.Status != drivebay.StatusOnline {
			return true
		}
		_, err := e.Machine.ReadDir("sys/block/" + d.Name)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// MayReclaim returns why nothing of a volume can be discarded.
func (e *Provisioner) MayReclaim(ctx context.Context, v *drivebay.Volume, r drivebay.ReclaimRequest) error {
	switch {
	case r.Block != nil && *r.Block == v.HasFilesystem():
		return fmt.Errorf("%w: it is a volume of mode %v", drivebay.ErrInvalid, v.Mode)
	case !v.HasFilesystem():
		return fmt.Errorf("%w: not supported for a block volume: only its user knows which blocks are in use", drivebay.ErrNoSupport)
	case v.Encrypted(): // a discard would show on the drive which blocks are free (cryptsetup(8), --allow-discards)
		return fmt.Errorf("%w: discards are disabled for an encrypted volume", drivebay.ErrNoSupport)
	}
	if err := errors.Join(mounts.CanUse(v, false, "", nil), e.Device.MayWrite(v.Location.Drives...)); err != nil {
		return err
	}
	return e.Mounts.HasPaths(ctx, v, r.Path, r.Staging)
}
