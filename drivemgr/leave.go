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

// A drive leaves by the transitions of drivebay.Usage; move makes all of them. The manager
// writes nothing to the drive: the volume engine moves the volumes away.

const byOperator = "an operator asked for it"

// Operate carries out an operator's verb for a drive; why is the reason given, "" if none.
func (m *replacementT) Operate(ctx context.Context, drive string, do drivebay.LeaveVerb, why string) error {
	if why == "" {
		why = byOperator
	}
	switch do {
	case drivebay.LeaveRelease:
		return m.release(ctx, drive, why)
	case drivebay.LeaveApprove:
		return m.startRemoval(ctx, drive, drivebay.UsageApprove, why)
	case drivebay.LeaveForce:
		return m.startRemoval(ctx, drive, drivebay.UsageForce, why)
	case drivebay.LeaveCancel:
		return m.change(ctx, drive, func(t *tracked) error { return m.changeUsage(t, drivebay.UsageKeep, why) })
	case drivebay.LeaveRetry:
		return m.change(ctx, drive, func(t *tracked) error { return m.changeUsage(t, drivebay.UsageRetry, why) })
	case drivebay.LeaveAccept:
		return m.reuse(ctx, drive, why)
	case drivebay.LeaveForget:
		return m.forget(ctx, drive, why)
	}
	return fmt.Errorf("drive %s: %w: unknown verb %q", drive, drivebay.ErrInvalid, do)
}

// forget removes the record of a drive that is OFFLINE. The caller makes sure that no
// volume needs the drive.
func (m *replacementT) forget(ctx context.Context, drive, why string) error {
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
		m.deleteRecord(t, why)
		return nil
	})
}

// deleteRecord removes the record of a drive that is OFFLINE.
func (m *fleetT) deleteRecord(t *tracked, why string) {
	t.life++ // the result of a look under way is ignored
	delete(m.drives, t.drive.ID)
	m.keeper.forget(t.drive.ID)
	m.queueEvents(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventForgotten, Drive: t.drive.ID, From: t.rec.Usage.String(), Cause: why + ": " + describe(&t.drive)})
}

// release starts the release of a drive: from now on no new volume is placed on it.
func (m *replacementT) release(ctx context.Context, drive, why string) error {
	return m.change(ctx, drive, func(t *tracked) error {
		if t.drive.System {
			return fmt.Errorf("drive %s (%s): %w: the machine runs from it", t.drive.ID, t.drive.Name, drivebay.ErrRefused)
		}
		return m.changeUsage(t, drivebay.UsageRelease, why)
	})
}

// Emptied records that nothing depends any more on a drive that is being released.
func (m *replacementT) Emptied(ctx context.Context, drive string) error {
	return m.change(ctx, drive, func(t *tracked) error {
		return m.changeUsage(t, drivebay.UsageEmptied, "nothing depends on it any more")
	})
}

// Waiting records what a drive that is being released waits for, and its progress.
func (m *replacementT) Waiting(ctx context.Context, drive, by string, p *drivebay.Progress) error {
	return m.change(ctx, drive, func(t *tracked) error {
		if t.rec.Leaving != nil && t.rec.Usage == drivebay.UsageReleasing {
			l := *t.rec.Leaving
			l.Cause, l.Progress = by, p
			t.rec.Leaving, t.drive.Leaving = &l, &l
		}
		return nil
	})
}

// LeaveFailed records why a drive cannot be taken out.
func (m *replacementT) LeaveFailed(ctx context.Context, drive, cause string) error {
	return m.change(ctx, drive, func(t *tracked) error { return m.changeUsage(t, drivebay.UsageFail, cause) })
}

// reuse returns a drive to use that was taken out and is back.
func (m *replacementT) reuse(ctx context.Context, drive, why string) error {
	return m.change(ctx, drive, func(t *tracked) error {
		if !t.present {
			return fmt.Errorf("drive %s: %w: it is not in the machine", t.drive.ID, drivebay.ErrInvalid)
		}
		return m.changeUsage(t, drivebay.UsageSeen, why)
	})
}

// startRemoval starts the removal of a drive on which nothing depends, or of one with its volumes by
// force: the kernel removes the device, and the light of the bay is lit. A drive that the
// kernel cannot remove may be pulled as it is.
func (m *replacementT) startRemoval(ctx context.Context, drive string, e drivebay.UsageEvent, why string) error {
	forced := e == drivebay.UsageForce
	if err := m.listNow(ctx); err != nil { // no uevent announces a mount
		return err
	}
	var d drivebay.Drive
	err := m.change(ctx, drive, func(t *tracked) error {
		if l := t.rec.Leaving; !forced && t.rec.Usage == drivebay.UsageReleasing && l != nil {
			return fmt.Errorf("drive %s (%s): %w: something still depends on it: %s", t.drive.ID, t.drive.Name, drivebay.ErrBusy, cmp.Or(l.Cause, "what, is being looked for"))
		}
		if err := m.checkRemovable(t, forced); err != nil {
			return fmt.Errorf("drive %s (%s): %w", t.drive.ID, t.drive.Name, err)
		}
		if err := m.changeUsage(t, e, why); err != nil {
			return err
		}
		if !t.present {
			return m.changeUsage(t, drivebay.UsageTakenOut, "it is out already: "+m.Snapshot().Where(&t.drive))
		}
		d = t.drive
		return nil
	})
	if err != nil || d.ID == "" {
		return err
	}
	return m.removeFromKernel(ctx, &d)
}

// relist lists the drives and their uses now, without reading enclosures.
func (m *trackingT) relist(ctx context.Context) error {
	opt := InventoryOptions{Dark: true}
	if err := m.do(ctx, func() error { opt.Loop, opt.Ours = m.opt.Loop, m.ours(); return nil }); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, takeOutTime)
	defer cancel()
	l, err := lane.Through(limited, lane.New(), m.machine, func(ctx context.Context) (Listing, error) { return m.listMachine(ctx, opt), nil })
	if err != nil {
		return fmt.Errorf("list the drives: %w", translate(err))
	}
	return m.do(ctx, func() error { m.applyListing(l); return nil })
}

// checkRemovable refuses to remove a drive that is in use, or whose removal would remove others. A
// drivebay partition with nothing on it does not count as a use: its volume was released.
// With force, devices that drivebay makes for its volumes do not count either; filesystems,
// swap and devices that were made on a volume do.
func (m *replacementT) checkRemovable(t *tracked, forced bool) error {
	if t.drive.System {
		return fmt.Errorf("%w: the machine runs from it", drivebay.ErrRefused)
	}
	for _, u := range t.drive.Uses {
		idle := u.Kind == "partition" || forced && volumeDevices[u.Kind]
		if !u.Ours || !idle {
			return fmt.Errorf("%w: it is in use: %s", drivebay.ErrBusy, strings.TrimSpace(u.Kind+" "+u.Device+" "+u.What))
		}
	}
	for _, o := range m.drives {
		if o != t && o.present && sharesController(&t.drive, &o.drive) {
			return fmt.Errorf("%w: drive %s (%s) is a namespace of the same controller and would go with it", drivebay.ErrRefused, o.drive.ID, o.drive.Name)
		}
	}
	return nil
}

// volumeDevices holds the kinds of uses that the devices of a drivebay volume have: they
// exist also while nothing uses the volume.
var volumeDevices = map[string]bool{"lvm": true, "crypt": true, "dm": true}

func sharesController(a, b *drivebay.Drive) bool {
	return a.Transport == drivebay.TransportNVMe && b.Transport == drivebay.TransportNVMe &&
		slices.ContainsFunc(a.Paths, func(p drivebay.Path) bool {
			return slices.ContainsFunc(b.Paths, func(o drivebay.Path) bool { return o.Address == p.Address })
		})
}

// changeUsage makes one usage transition, with its event.
func (m *fleetT) changeUsage(t *tracked, e drivebay.UsageEvent, cause string) error {
	from := t.rec.Usage
	to, err := from.Next(e)
	if err != nil {
		return fmt.Errorf("drive %s (%s): %w", t.drive.ID, t.drive.Name, err)
	}
	now := m.machine.Now()
	t.rec.Usage, t.rec.Forced = to, e == drivebay.UsageForce
	if to == drivebay.UsageInUse {
		t.rec.Kept = findingKeys(t.drive.Findings) // kept despite these
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
	m.queueEvents(drivebay.Event{At: now, Kind: drivebay.EventUsage, Drive: t.drive.ID, From: from.String(), To: to.String(), Cause: cause + ": " + describe(&t.drive)})
	return nil
}
