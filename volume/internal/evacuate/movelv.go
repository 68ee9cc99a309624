package evacuate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// copyTick is how often the engine asks the kernel for the progress of a copy; no drive is touched.
const copyTick = 2 * time.Second

// moveLogicalVolume moves one logical volume, even while it is in use.
func (e *Evacuator) moveLogicalVolume(ctx context.Context, h *groups.VolumeGroup, head groups.Direction, m lvm.PVMove) error {
	if e.Moves.KernelLogClosed.Load() {
		return fmt.Errorf("%w: the kernel's log cannot be read, which alone says what cannot be copied", drivebay.ErrRefused)
	}
	if err := e.awaitMoveSlot(ctx, h.VG); err != nil {
		return err
	}
	defer func() { <-e.MovesLV }()
	if _, err := e.LVM.CopyProgress(ctx, h.VG, device.TheMove); !errors.Is(err, lvm.ErrNotFound) && err != nil {
		return err // the progress of the move could not be read
	}
	began := e.Moves.CopyErrorsOf()
	e.throttle()
	name, err := e.startPvmove(ctx, h, m)
	if err != nil {
		return err
	}
	e.throttle() // the parameter may not have existed before
	e.Log.Info("step", "op", "move "+m.Volume, "volume", h.VG)
	if err := e.Opt.After(h.VG, "move "+m.Volume); err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrStopped, err)
	}
	if whole, err := e.awaitCopy(ctx, h, head, m, name, began); err != nil || !whole {
		return err // the caller cancels it next
	}
	if err := e.Write.LVMRun(ctx, h.Location, lvm.EndMove(h.VG, m.From)); err != nil {
		return err
	}
	if err := e.Opt.After(h.VG, "moved "+m.Volume); err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrStopped, err)
	}
	return nil
}

// awaitCopy waits until everything is copied, or until something prevents that.
func (e *Evacuator) awaitCopy(ctx context.Context, h *groups.VolumeGroup, head groups.Direction, m lvm.PVMove, name string, began moves.CopyErrors) (done bool, err error) {
	for whole := 0; whole < 2; { // by the second time, the engine has read the kernel's log
		if err := e.LVM.KeepFailedWrites(ctx, h.VG, name); err != nil && !errors.Is(err, lvm.ErrNotFound) {
			return false, err
		}
		if err := e.pause(ctx); err != nil {
			return false, err
		}
		c, err := e.LVM.CopyProgress(ctx, h.VG, name)
		if errors.Is(err, lvm.ErrNotFound) { // its user has deactivated it
			if err = e.Write.LVMRun(ctx, h.Location, lvm.Activate(h.VG, m.Volume)); err == nil {
				continue
			}
		}
		if err != nil {
			return false, err
		}
		now, leg := e.Moves.CopyErrorsOf(), c.Unwritten()
		if now.Unwritten != began.Unwritten {
			leg = 1
		}
		if c.Unread() || leg >= 0 {
			e.Moves.CopyFailed()
		}
		switch {
		case now.Unheard != began.Unheard:
			err := fmt.Errorf("logical volume %s/%s: lines of the kernel's log were lost while it was copied: whether all of it could be read is unknown, and the copy starts again", h.VG, m.Volume)
			return false, errors.Join(err, e.cancelMove(ctx, h, name, m.From))
		case now.Unread != began.Unread || c.Unread():
			return false, e.giveUpMove(ctx, h, head, m, name)
		case leg >= 0:
			err := fmt.Errorf("logical volume %s/%s: drive %s could not be written", h.VG, m.Volume, []string{head.From, head.To}[leg])
			return false, errors.Join(err, e.cancelMove(ctx, h, name, m.From))
		case !e.directionUnchanged(h.VG, head):
			return false, nil
		case c.Whole():
			whole++
		}
		e.reportProgress(h, m, c)
	}
	return true, nil
}

// cancelMove returns a volume to where it was, with everything that was ever written to it.
func (e *Evacuator) cancelMove(ctx context.Context, h *groups.VolumeGroup, name, from string) error {
	if err := e.cancelUnstartedMove(ctx, h.VG, name); err != nil {
		return err
	}
	if err := e.Erase.LeavesCopy(ctx, h, from); err != nil {
		return err
	}
	if err := e.Write.LVMRun(ctx, h.Location, lvm.AbortMove(h.VG, from)); err != nil {
		return err
	}
	if err := e.Opt.After(h.VG, "move taken back"); err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrStopped, err)
	}
	return nil
}

// cancelUnstartedMove is the part of cancelMove that needs neither LVM nor the other drive: no write
// waits any longer.
func (e *Evacuator) cancelUnstartedMove(ctx context.Context, vg, name string) error {
	if err := e.LVM.RevertToSource(ctx, vg, name); !errors.Is(err, lvm.ErrNotFound) {
		return err
	}
	return nil
}

// startPvmove starts pvmove, and stops the command once the report shows the move.
func (e *Evacuator) startPvmove(ctx context.Context, h *groups.VolumeGroup, m lvm.PVMove) (name string, err error) {
	devices, err := e.Groups.LVMDevices(h.Location)
	if err == nil {
		err = e.Device.MayWrite(h.Drives...)
	}
	if err != nil {
		return "", err
	}
	child, cancel := context.WithCancel(ctx)
	came := make(chan error, 1)
	e.Running.Go(func() {
		came <- ledger.Safely(child, "volume group "+h.VG, func(ctx context.Context) error { return e.LVM.StartMove(ctx, devices, m) })
	})
	defer func() {
		cancel()
		if name != "" {
			<-came
		}
	}()
	for {
		select {
		case err := <-came:
			return "", cmpErr(err, "pvmove ended without starting a move")
		case <-ctx.Done():
			return "", ctx.Err()
		case <-e.Machine.After(copyTick / 2):
		}
		// The report waits for the lock of a command that changes the group: what it shows is done.
		e.Groups.Reports.Delete(h.VG)
		r, err := e.Groups.ReportOf(ctx, h.Location)
		if err != nil {
			return "", err
		}
		if g := r.Group(h.VG); g != nil && g.Move(m.From) != nil {
			e.Groups.LVMChanges.Add(1)
			return g.Move(m.From).Name, nil
		}
	}
}

func cmpErr(err error, otherwise string) error {
	if err != nil {
		return steps.InOurWords(groups.OurError(err))
	}
	return errors.New(otherwise)
}

// giveUpMove cancels the move of a volume that cannot be read. The volume stays where it is, and its
// record says why.
func (e *Evacuator) giveUpMove(ctx context.Context, h *groups.VolumeGroup, head groups.Direction, m lvm.PVMove, name string) error {
	if err := e.cancelMove(ctx, h, name, m.From); err != nil {
		return err
	}
	why := fmt.Sprintf("drive %s cannot be read where it lies", head.From)
	e.Ledger.Mu.Lock()
	if t := e.Groups.GroupMoves[h.VG]; t != nil {
		if t.Lost == nil {
			t.Lost = map[string]string{}
		}
		t.Lost[m.Volume] = why
	}
	e.Ledger.Mu.Unlock()
	var errs []error
	var left []string
	for _, r := range h.Dependents([]string{m.Volume}) {
		rec, err := e.Ledger.Change(r.Volume.ID, func(r *drivebay.VolumeRecord) error {
			if v, err := r.Volume.UsageFailed(drivebay.Failure[drivebay.VolumeUsage]{Cause: why, Since: e.Machine.Now(), Retry: drivebay.RetryOperator}); err == nil {
				r.Volume = v
			}
			return nil
		})
		if errs = append(errs, err); err == nil {
			e.Ledger.Note(drivebay.EventVolumeFailed, &rec.Volume, "it cannot be moved: "+why)
			left = append(left, r.Volume.ID)
		}
	}
	e.Ledger.InBackground("survey", func() { e.CopyAway.Survey(left, head.From, why) })
	return errors.Join(errs...)
}

// awaitMoveSlot waits until no other volume of the machine moves, and until late lines about the errors of one that has moved do not count for
// the next, nor hide its own.
func (e *Evacuator) awaitMoveSlot(ctx context.Context, vg string) error {
	defer e.Groups.SetWaitReason(vg, "")
	select {
	case e.MovesLV <- struct{}{}:
	default:
		e.Groups.SetWaitReason(vg, "a volume of another group moves first: one volume of the machine moves at a time")
		select {
		case e.MovesLV <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for e.Moves.LogsErrorsIn() > 0 {
		e.Groups.SetWaitReason(vg, "the kernel has just logged copy errors of a mirror, maybe of one that drivebay did not make (dm-raid1): volumes move once it has logged none for 6 s")
		if err := e.pause(ctx); err != nil {
			<-e.MovesLV
			return err
		}
	}
	return nil
}

func (e *Evacuator) pause(ctx context.Context) error {
	select {
	case <-e.Machine.After(copyTick):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reportProgress records how far a group is while one of its volumes moves.
func (e *Evacuator) reportProgress(h *groups.VolumeGroup, m lvm.PVMove, c lvm.Copy) {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	g, t := e.Partitions.Index.LVM.Group(h.VG), e.Groups.GroupMoves[h.VG]
	if last, ok := e.Groups.Reports.Load(h.VG); ok && last.(groups.Reported).Report.Group(h.VG) != nil {
		g = last.(groups.Reported).Report.Group(h.VG)
	}
	if g == nil || t == nil {
		return
	}
	done, under := g.AllocatedOn(m.To), uint64(0)
	if move := g.Move(m.From); move != nil {
		under = move.Size
	} else if lv := g.LV(m.Volume); lv != nil { // the new leg of a mirror
		under = lv.Size
	}
	t.Pace.Goes(done-min(done, under)+uint64(float64(under)*c.Part()), done+g.AllocatedOn(m.From)-min(done, under)*btou(g.Move(m.From) != nil), e.Machine.Now())
}

func btou(b bool) uint64 { return uint64(inventory.Btoi(b)) }
