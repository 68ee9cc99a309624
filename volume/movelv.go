package volume

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
)

// theMove is LVM's name for the one move that a group can have.
const theMove = "pvmove0"

// copyTick is how often the engine asks the kernel for the progress of a copy; no drive is touched.
const copyTick = 2 * time.Second

// copyErrors counts what the kernel could not copy. Only the kernel's log says so (Linux 6.1,
// drivers/md/dm-raid1.c, recovery_complete), and it does not name the mirror. So one volume of the
// machine moves at a time. kernelLogGaps counts losses of log lines, which may have reported errors.
type copyErrors struct{ unread, unwritten, unheard uint64 }

func (e *Engine) copyErrorsOf() copyErrors {
	return copyErrors{e.readErrorsLogged.Load(), e.writeErrorsLogged.Load(), e.kernelLogGaps.Load()}
}

// followCopyErrors counts the kernel's log lines about copy errors.
func (e *Engine) followCopyErrors(l host.LogLine) {
	if l.Overflow {
		e.kernelLogGaps.Add(1)
	}
	switch {
	case strings.Contains(l.Text, "raid1: Unable to read primary mirror during recovery"), strings.Contains(l.Text, "raid1: Mirror read failed"):
		e.readErrorsLogged.Add(1)
	case strings.Contains(l.Text, "raid1: Write error during recovery"):
		e.writeErrorsLogged.Add(1)
	}
}

// moveLogicalVolume moves one logical volume, even while it is in use.
func (e *Engine) moveLogicalVolume(ctx context.Context, h *volumeGroup, head direction, m lvm.Move) error {
	if e.kernelLogClosed.Load() {
		return fmt.Errorf("%w: the kernel's log cannot be read, which alone says what cannot be copied", drivebay.ErrRefused)
	}
	if err := e.awaitMoveSlot(ctx); err != nil {
		return err
	}
	defer func() { <-e.movesLV }()
	if _, err := e.lvm.CopyProgress(ctx, h.VG, theMove); !errors.Is(err, lvm.ErrNotFound) && err != nil {
		return err // the progress of the move could not be read
	}
	began := e.copyErrorsOf()
	e.throttle()
	name, err := e.startPvmove(ctx, h, m)
	if err != nil {
		return err
	}
	e.throttle() // the parameter may not have existed before
	e.log.Info("step", "op", "move "+m.Volume, "volume", h.VG)
	if err := e.opt.After(h.VG, "move "+m.Volume); err != nil {
		return fmt.Errorf("%w: %w", errStopped, err)
	}
	if whole, err := e.awaitCopy(ctx, h, head, m, name, began); err != nil || !whole {
		return err // the caller cancels it next
	}
	if err := e.lvmRun(ctx, h.Location, lvm.EndMove(h.VG, m.From)); err != nil {
		return err
	}
	if err := e.opt.After(h.VG, "moved "+m.Volume); err != nil {
		return fmt.Errorf("%w: %w", errStopped, err)
	}
	return nil
}

// awaitCopy waits until everything is copied, or until something prevents that.
func (e *Engine) awaitCopy(ctx context.Context, h *volumeGroup, head direction, m lvm.Move, name string, began copyErrors) (done bool, err error) {
	for whole := 0; whole < 2; { // by the second time, the engine has read the kernel's log
		if err := e.lvm.KeepFailedWrites(ctx, h.VG, name); err != nil && !errors.Is(err, lvm.ErrNotFound) {
			return false, err
		}
		if err := e.pause(ctx); err != nil {
			return false, err
		}
		c, err := e.lvm.CopyProgress(ctx, h.VG, name)
		if errors.Is(err, lvm.ErrNotFound) { // its user has deactivated it
			if err = e.lvmRun(ctx, h.Location, lvm.Activate(h.VG, m.Volume)); err == nil {
				continue
			}
		}
		if err != nil {
			return false, err
		}
		now, leg := e.copyErrorsOf(), c.Unwritten()
		if now.unwritten != began.unwritten {
			leg = 1
		}
		switch {
		case now.unheard != began.unheard:
			err := fmt.Errorf("logical volume %s/%s: lines of the kernel's log were lost while it was copied: whether all of it could be read is not known, and the copy begins anew", h.VG, m.Volume)
			return false, errors.Join(err, e.cancelMove(ctx, h, name, m.From))
		case now.unread != began.unread || c.Unread():
			return false, e.giveUpMove(ctx, h, head, m, name)
		case leg >= 0:
			err := fmt.Errorf("logical volume %s/%s: drive %s could not be written", h.VG, m.Volume, []string{head.from, head.to}[leg])
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
func (e *Engine) cancelMove(ctx context.Context, h *volumeGroup, name, from string) error {
	if err := e.cancelUnstartedMove(ctx, h.VG, name); err != nil {
		return err
	}
	if err := e.leavesCopy(ctx, h, from); err != nil {
		return err
	}
	if err := e.lvmRun(ctx, h.Location, lvm.AbortMove(h.VG, from)); err != nil {
		return err
	}
	if err := e.opt.After(h.VG, "move taken back"); err != nil {
		return fmt.Errorf("%w: %w", errStopped, err)
	}
	return nil
}

// cancelUnstartedMove is the part of cancelMove that needs neither LVM nor the other drive: no write
// waits any longer.
func (e *Engine) cancelUnstartedMove(ctx context.Context, vg, name string) error {
	if err := e.lvm.RevertToSource(ctx, vg, name); !errors.Is(err, lvm.ErrNotFound) {
		return err
	}
	return nil
}

// startPvmove starts pvmove, and stops the command once the report shows the move.
func (e *Engine) startPvmove(ctx context.Context, h *volumeGroup, m lvm.Move) (name string, err error) {
	devices, err := e.lvmDevices(h.Location)
	if err == nil {
		err = e.mayWrite(h.Drives...)
	}
	if err != nil {
		return "", err
	}
	child, cancel := context.WithCancel(ctx)
	came := make(chan error, 1)
	e.running.Go(func() {
		came <- safely(child, "volume group "+h.VG, func(ctx context.Context) error { return e.lvm.StartMove(ctx, devices, m) })
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
		case <-e.machine.After(copyTick / 2):
		}
		// The report waits for the lock of a command that changes the group: what it shows is done.
		e.reports.Delete(h.VG)
		r, err := e.reportOf(ctx, h.Location)
		if err != nil {
			return "", err
		}
		if g := r.Group(h.VG); g != nil && g.Move(m.From) != nil {
			e.lvmChanges.Add(1)
			return g.Move(m.From).Name, nil
		}
	}
}

func cmpErr(err error, otherwise string) error {
	if err != nil {
		return inOurWords(ourError(err))
	}
	return errors.New(otherwise)
}

// giveUpMove cancels the move of a volume that cannot be read. The volume stays where it is, and its
// record says why.
func (e *Engine) giveUpMove(ctx context.Context, h *volumeGroup, head direction, m lvm.Move, name string) error {
	if err := e.cancelMove(ctx, h, name, m.From); err != nil {
		return err
	}
	if err := e.pause(ctx); err != nil { // late log lines must not count for the next move
		return err
	}
	why := fmt.Sprintf("drive %s cannot be read where it lies", head.from)
	e.mu.Lock()
	if t := e.groupMoves[h.VG]; t != nil {
		if t.lost == nil {
			t.lost = map[string]string{}
		}
		t.lost[m.Volume] = why
	}
	e.mu.Unlock()
	var errs []error
	var left []string
	for _, r := range h.dependents([]string{m.Volume}) {
		rec, err := e.change(r.Volume.ID, func(r *drivebay.VolumeRecord) error {
			if v, err := r.Volume.UsageFailed(drivebay.Failure[drivebay.VolumeUsage]{Cause: why, Since: e.machine.Now(), Retry: drivebay.RetryOperator}); err == nil {
				r.Volume = v
			}
			return nil
		})
		if errs = append(errs, err); err == nil {
			e.note(drivebay.EventVolumeFailed, &rec.Volume, "it cannot be moved: "+why)
			left = append(left, r.Volume.ID)
		}
	}
	e.inBackground("survey", func() { e.survey(left, head.from, why) })
	return errors.Join(errs...)
}

// awaitMoveSlot waits until no other volume of the machine moves.
func (e *Engine) awaitMoveSlot(ctx context.Context) error {
	select {
	case e.movesLV <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Engine) pause(ctx context.Context) error {
	select {
	case <-e.machine.After(copyTick):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reportProgress records how far a group is while one of its volumes moves.
func (e *Engine) reportProgress(h *volumeGroup, m lvm.Move, c lvm.Copy) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g, t := e.index.lvm.group(h.VG), e.groupMoves[h.VG]
	if last, ok := e.reports.Load(h.VG); ok && last.(reported).report.Group(h.VG) != nil {
		g = last.(reported).report.Group(h.VG)
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
	t.pace.goes(done-min(done, under)+uint64(float64(under)*c.Part()), done+g.AllocatedOn(m.From)-min(done, under)*btou(g.Move(m.From) != nil), e.machine.Now())
}

func btou(b bool) uint64 { return uint64(btoi(b)) }
