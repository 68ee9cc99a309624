package drivemgr

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/lane"
)

// A drive leaves by the moves of drivebay.Usage, all of which are made here. Nothing
// that is written to it is: its volumes are led away by whoever has made them.

const byOperator = "an operator asked for it"

// Lead does what an operator says; why is his reason, if he gives one.
func (m *Manager) Lead(ctx context.Context, drive string, do drivebay.LeaveVerb, why string) error {
	if why == "" {
		why = byOperator
	}
	switch do {
	case drivebay.LeaveRelease:
		return m.release(ctx, drive, why)
	case drivebay.LeaveApprove:
		return m.out(ctx, drive, drivebay.UsageApprove, why)
	case drivebay.LeaveForce:
		return m.out(ctx, drive, drivebay.UsageForce, why)
	case drivebay.LeaveCancel:
		return m.change(ctx, drive, func(t *tracked) error { return m.move(t, drivebay.UsageKeep, why) })
	case drivebay.LeaveRetry:
		return m.change(ctx, drive, func(t *tracked) error { return m.move(t, drivebay.UsageRetry, why) })
	case drivebay.LeaveAccept:
		return m.accept(ctx, drive, why)
	case drivebay.LeaveForget:
		return m.forget(ctx, drive, why)
	}
	return fmt.Errorf("drive %s: %w: %q is nothing that can be done with it", drive, drivebay.ErrInvalid, do)
}

// forget removes the record of a drive that is OFFLINE. The caller makes sure that no
// volume needs it.
func (m *Manager) forget(ctx context.Context, drive, why string) error {
	d, err := m.find(drive)
	if err != nil {
		return err
	}
	return m.do(ctx, func() error {
		t := m.drives[d.ID]
		switch {
		case t == nil:
			return fmt.Errorf("drive %q: %w", drive, drivebay.ErrNotFound)
		case t.drive.Status != drivebay.StatusOffline:
			return fmt.Errorf("drive %s (%s): %w: only a drive that is OFFLINE can be forgotten, and it is %v", t.drive.ID, t.drive.Name, drivebay.ErrRefused, t.drive.Status)
		}
		t.life++ // a look at it that is under way keeps nothing
		delete(m.drives, t.drive.ID)
		m.keeper.forget(t.drive.ID)
		m.tell(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventForgotten, Drive: t.drive.ID, From: t.rec.Usage.String(), Cause: why + ": " + describe(&t.drive)})
		return nil
	})
}

// release asks a drive to leave: from now on nothing new comes to it.
func (m *Manager) release(ctx context.Context, drive, why string) error {
	return m.change(ctx, drive, func(t *tracked) error {
		if t.drive.System {
			return fmt.Errorf("drive %s (%s): %w: the machine runs from it", t.drive.ID, t.drive.Name, drivebay.ErrRefused)
		}
		return m.move(t, drivebay.UsageRelease, why)
	})
}

// Emptied says that nothing depends on a drive any more that has to leave.
func (m *Manager) Emptied(ctx context.Context, drive string) error {
	return m.change(ctx, drive, func(t *tracked) error {
		return m.move(t, drivebay.UsageEmptied, "nothing depends on it any more")
	})
}

// Held says what a drive waits for that has to leave, and how far it is.
func (m *Manager) Held(ctx context.Context, drive, by string, p *drivebay.Progress) error {
	return m.change(ctx, drive, func(t *tracked) error {
		if t.rec.Leaving != nil && t.rec.Usage == drivebay.UsageReleasing {
			l := *t.rec.Leaving
			l.Cause, l.Progress = by, p
			t.rec.Leaving, t.drive.Leaving = &l, &l
		}
		return nil
	})
}

// Failed says why a drive cannot be led on.
func (m *Manager) Failed(ctx context.Context, drive, cause string) error {
	return m.change(ctx, drive, func(t *tracked) error { return m.move(t, drivebay.UsageFail, cause) })
}

// accept takes a drive into use again that was taken out and is back.
func (m *Manager) accept(ctx context.Context, drive, why string) error {
	return m.change(ctx, drive, func(t *tracked) error {
		if !t.present {
			return fmt.Errorf("drive %s: %w: it is not in the machine", t.drive.ID, drivebay.ErrInvalid)
		}
		return m.move(t, drivebay.UsageSeen, why)
	})
}

// out lets a drive be taken out that nothing depends on, or with what does: the kernel
// lets go of it, and its bay is lit. One that the kernel cannot let go of may be pulled
// as it is.
func (m *Manager) out(ctx context.Context, drive string, e drivebay.UsageEvent, why string) error {
	forced := e == drivebay.UsageForce
	if err := m.relist(ctx); err != nil { // nobody tells us of a mount
		return err
	}
	var d drivebay.Drive
	err := m.change(ctx, drive, func(t *tracked) error {
		if l := t.rec.Leaving; !forced && t.rec.Usage == drivebay.UsageReleasing && l != nil {
			return fmt.Errorf("drive %s (%s): %w: something still depends on it: %s", t.drive.ID, t.drive.Name, drivebay.ErrBusy, cmp.Or(l.Cause, "what, is being looked for"))
		}
		if err := m.mayGo(t, forced); err != nil {
			return fmt.Errorf("drive %s (%s): %w", t.drive.ID, t.drive.Name, err)
		}
		if err := m.move(t, e, why); err != nil {
			return err
		}
		if !t.present {
			return m.move(t, drivebay.UsageTakenOut, "it is out already: "+m.Snapshot().Where(&t.drive))
		}
		d = t.drive
		return nil
	})
	if err != nil || d.ID == "" {
		return err
	}
	return m.takeOut(ctx, &d)
}

// relist lists what there is now and who uses it, without asking enclosures.
func (m *Manager) relist(ctx context.Context) error {
	opt := InventoryOptions{Dark: true}
	if err := m.do(ctx, func() error { opt.Loop, opt.Ours = m.opt.Loop, m.ours(); return nil }); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, takeOutTime)
	defer cancel()
	l, err := lane.Through(limited, lane.New(), m.machine, func(ctx context.Context) (Listing, error) { return m.observe(ctx, opt), nil })
	if err != nil {
		return fmt.Errorf("list the drives: %w", translate(err))
	}
	return m.do(ctx, func() error { m.take(l); return nil })
}

// mayGo refuses to let go of what somebody uses, and of what would take others along.
// A partition of ours that nothing stands on holds nobody: its volume was let go of. By
// force a drive goes with whatever is ours on it, unless that is mounted.
func (m *Manager) mayGo(t *tracked, forced bool) error {
	if t.drive.System {
		return fmt.Errorf("%w: the machine runs from it", drivebay.ErrRefused)
	}
	for _, u := range t.drive.Uses {
		idle := u.Kind == "partition" || forced && u.Kind != "mount" && u.Kind != "swap"
		if !u.Ours || !idle {
			return fmt.Errorf("%w: somebody uses it: %s", drivebay.ErrBusy, strings.TrimSpace(u.Kind+" "+u.Device+" "+u.What))
		}
	}
	for _, o := range m.drives {
		if o != t && o.present && sharesController(&t.drive, &o.drive) {
			return fmt.Errorf("%w: drive %s (%s) is a namespace of the same controller and would go with it", drivebay.ErrRefused, o.drive.ID, o.drive.Name)
		}
	}
	return nil
}

func sharesController(a, b *drivebay.Drive) bool {
	return a.Transport == drivebay.TransportNVMe && b.Transport == drivebay.TransportNVMe &&
		slices.ContainsFunc(a.Paths, func(p drivebay.Path) bool {
			return slices.ContainsFunc(b.Paths, func(o drivebay.Path) bool { return o.Address == p.Address })
		})
}

// move makes one move and tells of it.
func (m *Manager) move(t *tracked, e drivebay.UsageEvent, cause string) error {
	from := t.rec.Usage
	to, err := from.Next(e)
	if err != nil {
		return fmt.Errorf("drive %s (%s): %w", t.drive.ID, t.drive.Name, err)
	}
	now := m.machine.Now()
	t.rec.Usage = to
	if to == drivebay.UsageInUse {
		t.rec.Kept = standing(t.drive.Findings) // in spite of these
	}
	switch was := t.rec.Leaving; {
	case to == drivebay.UsageInUse:
		t.rec.Leaving = nil
	case was == nil:
		t.rec.Leaving = &drivebay.Leaving{Since: now, Why: cause}
	case e == drivebay.UsageFail:
		t.rec.Leaving = &drivebay.Leaving{Since: now, Why: was.Why, Cause: cause}
	default:
		t.rec.Leaving = &drivebay.Leaving{Since: now, Why: was.Why}
	}
	t.drive.Usage, t.drive.Leaving = to, t.rec.Leaving
	m.tell(drivebay.Event{At: now, Kind: drivebay.EventUsage, Drive: t.drive.ID, From: from.String(), To: to.String(), Cause: cause + ": " + describe(&t.drive)})
	return nil
}
