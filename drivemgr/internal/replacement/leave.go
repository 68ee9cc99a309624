package replacement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/lights"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/units"
)

// Replacer releases and removes drives, and recognizes drives that return.
type Replacer struct {
	State  *state.State
	Lights *lights.Lights

	// refresh lists the machine and reads every drive; listNow only lists it.
	Refresh, ListNow func(context.Context) error
	inventoried      bool // every present drive was read once
}

// A drive leaves by the transitions of drivebay.Usage; State.ChangeUsage makes all of them. The
// manager writes nothing to the drive: the volume engine moves the volumes to other drives.

const byOperator = "requested by an operator"

// Operate executes the command of an operator about a drive; why is the reason of the operator, or
// "".
func (m *Replacer) Operate(ctx context.Context, drive string, do drivebay.LeaveVerb, why string) error {
	if err := m.operate(ctx, drive, do, cmp.Or(why, byOperator)); err != nil {
		return err
	}
	return m.State.Stored(ctx, drive)
}

func (m *Replacer) operate(ctx context.Context, drive string, do drivebay.LeaveVerb, why string) error {
	switch do {
	case drivebay.LeaveRelease:
		return m.release(ctx, drive, why)
	case drivebay.LeaveApprove:
		return m.startRemoval(ctx, drive, drivebay.UsageApprove, why)
	case drivebay.LeaveForce:
		return m.startRemoval(ctx, drive, drivebay.UsageForce, why)
	case drivebay.LeaveCancel:
		return m.State.Change(ctx, drive, func(t *state.Tracked) error { return m.State.ChangeUsage(t, drivebay.UsageKeep, why) })
	case drivebay.LeaveRetry:
		return m.State.Change(ctx, drive, func(t *state.Tracked) error { return m.State.ChangeUsage(t, drivebay.UsageRetry, why) })
	case drivebay.LeaveAccept:
		return m.reuse(ctx, drive, why)
	case drivebay.LeaveForget:
		return m.forget(ctx, drive, why)
	}
	return fmt.Errorf("drive %s: %w: unknown verb %q", drive, drivebay.ErrInvalid, do)
}

// forget deletes the record of a drive that is OFFLINE. The caller has checked that no volume needs
// the drive.
func (m *Replacer) forget(ctx context.Context, drive, why string) error {
	d, err := m.State.Find(drive)
	if err != nil {
		return err
	}
	return m.State.Do(ctx, func() error {
		t := m.State.Drives[d.ID]
		switch {
		case t == nil:
			return fmt.Errorf("drive %q: %w", drive, drivebay.ErrNotFound)
		case t.Drive.Status != drivebay.StatusOffline:
			return fmt.Errorf("drive %s (%s): %w: the drive is %v; only the record of a drive that is OFFLINE can be deleted", t.Drive.ID, t.Drive.Name, drivebay.ErrRefused, t.Drive.Status)
		}
		m.State.DeleteRecord(t, why)
		return nil
	})
}

// release starts the release of a drive: from now on no new volume is placed on it.
func (m *Replacer) release(ctx context.Context, drive, why string) error {
	return m.State.Change(ctx, drive, func(t *state.Tracked) error {
		if t.Drive.System {
			return fmt.Errorf("drive %s (%s): %w: the machine runs from this drive", t.Drive.ID, t.Drive.Name, drivebay.ErrRefused)
		}
		return m.State.ChangeUsage(t, drivebay.UsageRelease, why)
	})
}

// Emptied records that nothing depends any more on a drive that is being released.
func (m *Replacer) Emptied(ctx context.Context, drive string) error {
	return m.State.Change(ctx, drive, func(t *state.Tracked) error {
		return m.State.ChangeUsage(t, drivebay.UsageEmptied, "nothing depends on the drive")
	})
}

// Waiting records what a drive that is being released waits for, and its progress.
func (m *Replacer) Waiting(ctx context.Context, drive, by string, p *drivebay.Progress) error {
	return m.State.Change(ctx, drive, func(t *state.Tracked) error {
		if t.Rec.Usage == drivebay.UsageReleasing {
			m.waits(t, by, p)
		}
		return nil
	})
}

func (m *Replacer) waits(t *state.Tracked, by string, p *drivebay.Progress) {
	if l := t.Rec.Leaving; l != nil && (l.Cause != by || l.Progress != p) {
		l := *l
		l.Cause, l.Progress = by, p
		t.Rec.Leaving, t.Drive.Leaving = &l, &l
	}
}

// LeaveFailed records why a drive cannot be removed.
func (m *Replacer) LeaveFailed(ctx context.Context, drive, cause string) error {
	return m.State.Change(ctx, drive, func(t *state.Tracked) error { return m.State.ChangeUsage(t, drivebay.UsageFail, cause) })
}

// reuse returns a removed drive that is back to use.
func (m *Replacer) reuse(ctx context.Context, drive, why string) error {
	return m.State.Change(ctx, drive, func(t *state.Tracked) error {
		if !t.Present {
			return fmt.Errorf("drive %s: %w: the drive is absent from the machine", t.Drive.ID, drivebay.ErrInvalid)
		}
		if err := m.State.ChangeUsage(t, drivebay.UsageSeen, why); err != nil {
			return err
		}
		m.State.DropSuccessor(t.Drive.ID)
		return nil
	})
}

// startRemoval starts the removal of a drive on which nothing depends or, by force, of a drive with
// its volumes: the kernel removes the device, and the light of the bay is switched on. An operator
// may pull a drive that the kernel cannot remove. The removal does not end with its caller: the kernel would remove
// the drive all the same, and the record would say that it has failed.
func (m *Replacer) startRemoval(ctx context.Context, drive string, e drivebay.UsageEvent, why string) error {
	forced := e == drivebay.UsageForce
	if err := m.ListNow(ctx); err != nil { // no uevent announces a mount
		return err
	}
	if is, err := m.State.Find(drive); err == nil && !forced && is.Usage == drivebay.UsageReleased {
		if why := m.State.RemovalBlocked(is.ID); why != "" { // the record of the drive is older than what is on it
			return fmt.Errorf("drive %s (%s): %w: the drive is RELEASED, and %s; keep it with `drivebay cancel %s`, and release it again", is.ID, is.Name, drivebay.ErrBusy, why, is.ID)
		}
	}
	var d drivebay.Drive
	removed := make(chan error, 1)
	err := m.State.Change(ctx, drive, func(t *state.Tracked) error {
		if l := t.Rec.Leaving; !forced && t.Rec.Usage == drivebay.UsageReleasing && l != nil {
			return fmt.Errorf("drive %s (%s): %w: the drive is not released yet: %s", t.Drive.ID, t.Drive.Name, drivebay.ErrBusy, cmp.Or(l.Cause, "drivebay has not listed them yet; retry later"))
		}
		if !t.Present && t.Drive.Status != drivebay.StatusOffline { // only a complete listing shows that it is absent
			return fmt.Errorf("drive %s (%s): %w: the drive is %v and may be in the machine: pull it, or retry when all drives can be listed", t.Drive.ID, t.Drive.Name, drivebay.ErrBusy, t.Drive.Status)
		}
		if err := m.CheckRemovable(t, forced); err != nil {
			return fmt.Errorf("drive %s (%s): %w", t.Drive.ID, t.Drive.Name, err)
		}
		if err := m.State.ChangeUsage(t, e, why); err != nil {
			return err
		}
		if !t.Present {
			return m.State.ChangeUsage(t, drivebay.UsageTakenOut, "already absent: "+m.State.Snapshot().Where(&t.Drive))
		}
		d = t.Drive
		m.State.Jobs = append(m.State.Jobs, func(ctx context.Context) { removed <- m.removeFromKernel(ctx, &d) })
		return nil
	})
	if err != nil || d.ID == "" {
		return err
	}
	select {
	case err := <-removed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("drive %s (%s): %w: its removal continues", d.ID, d.Name, ctx.Err())
	}
}

// CheckRemovable refuses to remove a drive that is in use, or whose removal would remove others. A
// drivebay partition with nothing on it does not count as a use: its volume was released.
// With force, devices that drivebay makes for its volumes do not count either; filesystems,
// swap and devices that were made on a volume do.
func (m *Replacer) CheckRemovable(t *state.Tracked, forced bool) error {
	if err := removable(&t.Drive, forced); err != nil {
		return err
	}
	for _, o := range m.State.Drives { // what is pulled, or removed with its controller, goes with all of its units
		if o == t || !o.Present || !units.OfOneDevice(&t.Drive, &o.Drive) {
			continue
		}
		if !slices.Contains(released, o.Rec.Usage) {
			return fmt.Errorf("%w: drive %s (%s) is a unit of the same device, is %v, and would go with it: release that first", drivebay.ErrRefused, o.Drive.ID, o.Drive.Name, o.Rec.Usage)
		}
		if err := removable(&o.Drive, forced); err != nil {
			return fmt.Errorf("drive %s (%s) is a unit of the same device and would go with it: %w", o.Drive.ID, o.Drive.Name, err)
		}
	}
	return nil
}

func removable(d *drivebay.Drive, forced bool) error {
	if d.System {
		return fmt.Errorf("%w: the machine runs from this drive", drivebay.ErrRefused)
	}
	for _, u := range d.Uses {
		idle := u.Kind == "partition" || forced && ofVolume(u)
		if !u.Ours || !idle {
			return fmt.Errorf("%w: the drive is in use: %s", drivebay.ErrBusy, strings.TrimSpace(u.Kind+" "+u.Device+" "+u.What))
		}
	}
	return nil
}

// ofVolume reports whether a use is a device that drivebay makes for a volume. Another program can make devices
// of the same kinds on a block volume; their names differ (LVM: the group's name begins that of the device).
func ofVolume(u drivebay.Use) bool {
	return volumeDevices[u.Kind] && strings.HasPrefix(u.What, content.OursPrefix)
}

// volumeDevices holds the kinds of uses that the devices of a drivebay volume have: they
// exist also while nothing uses the volume.
var volumeDevices = map[string]bool{"lvm": true, "crypt": true, "dm": true}

// released holds the usages of drives on which nothing depends, or which are given up.
var released = []drivebay.Usage{drivebay.UsageReleased, drivebay.UsageRemoving, drivebay.UsageRemoved}
