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

// copyTick is how often the kernel is asked how far it has copied; no drive is touched.
const copyTick = 2 * time.Second

// errata count what the kernel could not copy: its log alone says so (Linux 6.1,
// drivers/md/dm-raid1.c, recovery_complete), and of which mirror it does not. So one
// volume of the machine moves at a time. Unheard counts when lines of the log were lost:
// nobody knows what was in them.
type errata struct{ unread, unwritten, unheard uint64 }

func (e *Engine) erring() errata {
	return errata{e.unread.Load(), e.unwritten.Load(), e.unheard.Load()}
}

// hearCopy takes in what the kernel says of a copy.
func (e *Engine) hearCopy(l host.LogLine) {
	if l.Overflow {
		e.unheard.Add(1)
	}
	switch {
	case strings.Contains(l.Text, "raid1: Unable to read primary mirror during recovery"), strings.Contains(l.Text, "raid1: Mirror read failed"):
		e.unread.Add(1)
	case strings.Contains(l.Text, "raid1: Write error during recovery"):
		e.unwritten.Add(1)
	}
}

// carry moves one logical volume, under whoever uses it.
func (e *Engine) carry(ctx context.Context, h *herd, head heading, m lvm.Move) error {
	if e.deaf.Load() {
		return fmt.Errorf("%w: the kernel's log cannot be read, which alone says what cannot be copied", drivebay.ErrRefused)
	}
	if err := e.oneByOne(ctx); err != nil {
		return err
	}
	defer func() { <-e.carrying }()
	if _, err := e.lvm.Copied(ctx, h.VG, theMove); !errors.Is(err, lvm.ErrNotFound) && err != nil {
		return err // nobody could see how it goes
	}
	began := e.erring()
	e.throttle()
	name, err := e.launch(ctx, h, m)
	if err != nil {
		return err
	}
	e.throttle() // the kernel may not have had it before
	e.log.Info("step", "op", "move "+m.Volume, "volume", h.VG)
	if err := e.opt.After(h.VG, "move "+m.Volume); err != nil {
		return fmt.Errorf("%w: %w", errStopped, err)
	}
	if whole, err := e.copies(ctx, h, head, m, name, began); err != nil || !whole {
		return err // it is taken back next
	}
	if err := e.lvmRun(ctx, h.Location, lvm.EndMove(h.VG, m.From)); err != nil {
		return err
	}
	if err := e.opt.After(h.VG, "moved "+m.Volume); err != nil {
		return fmt.Errorf("%w: %w", errStopped, err)
	}
	return nil
}

// copies waits until all is copied, or for what keeps it from that.
func (e *Engine) copies(ctx context.Context, h *herd, head heading, m lvm.Move, name string, began errata) (done bool, err error) {
	for whole := 0; whole < 2; { // what the kernel has said by the second time, we have heard
		if err := e.lvm.Hold(ctx, h.VG, name); err != nil && !errors.Is(err, lvm.ErrNotFound) {
			return false, err
		}
		if err := e.pause(ctx); err != nil {
			return false, err
		}
		c, err := e.lvm.Copied(ctx, h.VG, name)
		if errors.Is(err, lvm.ErrNotFound) { // who had it has let go of it
			if err = e.lvmRun(ctx, h.Location, lvm.Activate(h.VG, m.Volume)); err == nil {
				continue
			}
		}
		if err != nil {
			return false, err
		}
		now, leg := e.erring(), c.Unwritten()
		if now.unwritten != began.unwritten {
			leg = 1
		}
		switch {
		case now.unheard != began.unheard:
			err := fmt.Errorf("logical volume %s/%s: lines of the kernel's log were lost while it was copied: whether all of it could be read is not known, and the copy begins anew", h.VG, m.Volume)
			return false, errors.Join(err, e.takeMoveBack(ctx, h, name, m.From))
		case now.unread != began.unread || c.Unread():
			return false, e.lose(ctx, h, head, m, name)
		case leg >= 0:
			err := fmt.Errorf("logical volume %s/%s: drive %s could not be written", h.VG, m.Volume, []string{head.from, head.to}[leg])
			return false, errors.Join(err, e.takeMoveBack(ctx, h, name, m.From))
		case !e.headed(h.VG, head):
			return false, nil
		case c.Whole():
			whole++
		}
		e.paces(h, m, c)
	}
	return true, nil
}

// takeMoveBack has a volume be where it was, with all that was ever written to it.
func (e *Engine) takeMoveBack(ctx context.Context, h *herd, name, from string) error {
	if err := e.retreat(ctx, h.VG, name); err != nil {
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

// retreat is the part of that which needs neither LVM nor the other drive: nobody
// waits for a write any longer.
func (e *Engine) retreat(ctx context.Context, vg, name string) error {
	if err := e.lvm.Retreat(ctx, vg, name); !errors.Is(err, lvm.ErrNotFound) {
		return err
	}
	return nil
}

// launch begins a move, and lets go of the command that began it.
func (e *Engine) launch(ctx context.Context, h *herd, m lvm.Move) (name string, err error) {
	devices, err := e.lvmDevices(h.Location)
	if err == nil {
		err = e.mayWrite(h.Drives...)
	}
	if err != nil {
		return "", err
	}
	child, cancel := context.WithCancel(ctx)
	came := make(chan error, 1)
	e.running.Go(func() { came <- e.lvm.Launch(child, devices, m) })
	defer func() {
		cancel()
		if name != "" {
			<-came
		}
	}()
	for {
		select {
		case err := <-came:
			return "", cmpErr(err, "pvmove ended, and nothing moves")
		case <-ctx.Done():
			return "", ctx.Err()
		case <-e.machine.After(copyTick / 2):
		}
		// The report waits for the lock of whoever changes the group: what it shows is done.
		e.reports.Delete(h.VG)
		r, err := e.reportOf(ctx, h.Location)
		if err != nil {
			return "", err
		}
		if g := r.Group(h.VG); g != nil && g.Move(m.From) != nil {
			e.works.Add(1)
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

// lose takes back the move of a volume that cannot be read. It stays where it is, and
// says so.
func (e *Engine) lose(ctx context.Context, h *herd, head heading, m lvm.Move, name string) error {
	if err := e.takeMoveBack(ctx, h, name, m.From); err != nil {
		return err
	}
	if err := e.pause(ctx); err != nil { // what the kernel still says of it is not of the next one
		return err
	}
	why := fmt.Sprintf("drive %s cannot be read where it lies", head.from)
	e.mu.Lock()
	if t := e.trips[h.VG]; t != nil {
		if t.lost == nil {
			t.lost = map[string]string{}
		}
		t.lost[m.Volume] = why
	}
	e.mu.Unlock()
	var errs []error
	var left []string
	for _, r := range h.carries([]string{m.Volume}) {
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
	e.running.Go(func() { e.survey(left, head.from, why) })
	return errors.Join(errs...)
}

// oneByOne waits until no other volume of the machine moves.
func (e *Engine) oneByOne(ctx context.Context) error {
	select {
	case e.carrying <- struct{}{}:
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

// paces notes how far a group is while one of its volumes moves.
func (e *Engine) paces(h *herd, m lvm.Move, c lvm.Copy) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g, t := e.index.lvm.group(h.VG), e.trips[h.VG]
	if last, ok := e.reports.Load(h.VG); ok && last.(reported).report.Group(h.VG) != nil {
		g = last.(reported).report.Group(h.VG)
	}
	if g == nil || t == nil {
		return
	}
	done, under := g.Taken(m.To), uint64(0)
	if move := g.Move(m.From); move != nil {
		under = move.Size
	} else if lv := g.LV(m.Volume); lv != nil { // the new leg of a mirror
		under = lv.Size
	}
	t.pace.goes(done-min(done, under)+uint64(float64(under)*c.Part()), done+g.Taken(m.From)-min(done, under)*btou(g.Move(m.From) != nil), e.machine.Now())
}

func btou(b bool) uint64 { return uint64(btoi(b)) }
