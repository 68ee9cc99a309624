package replacement

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// RemoveTime is how long the kernel may take to remove a drive: it makes the drive
// write its cache to the medium first (drivers/scsi/sd.c, sd_shutdown).
const RemoveTime = time.Minute

// removeFromKernel makes the kernel remove a drive. The next listing shows that the device is
// gone, which ends the removal (see Tracker.SetOffline). If ctx, that of the manager, ends before, the next run continues.
func (m *Replacer) removeFromKernel(ctx context.Context, d *drivebay.Drive) error {
	if d.Slot.Locate != "" {
		if err := m.Lights.Locate(ctx, d.ID, true); err != nil {
			m.State.Log.Warn("cannot switch on the light of a bay", "op", "remove", "drive", d.ID, "err", err)
		}
	}
	files, err := m.filesNow(ctx, d.ID)
	switch {
	case errors.Is(err, errCanceled):
		return fmt.Errorf("drive %s (%s): %w", d.ID, d.Name, err)
	case err == nil && len(files) == 0:
		return nil // the kernel has no file to remove the drive: an operator pulls it
	case err == nil:
		limited, cancel := context.WithTimeout(ctx, RemoveTime)
		defer cancel()
		_, err = lane.Through(limited, lane.New(), m.State.Machine, func(context.Context) (struct{}, error) {
			return struct{}{}, m.writeFiles(files)
		})
	}
	if err == nil {
		return m.Refresh(ctx)
	}
	err = fmt.Errorf("drive %s (%s): remove from the kernel: %w", d.ID, d.Name, state.Translate(err))
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(err, m.LeaveFailed(ctx, d.ID, err.Error()))
}

var errCanceled = fmt.Errorf("%w: its removal was canceled meanwhile", drivebay.ErrRefused)

// filesNow returns the files of a drive that may still be removed. While an enclosure switches a light, an operator can
// cancel the removal, a volume can be mounted, and another drive can get the address of the drive.
func (m *Replacer) filesNow(ctx context.Context, drive string) (files []string, err error) {
	if err := m.ListNow(ctx); err != nil { // no uevent announces a mount
		return nil, err
	}
	err = m.State.Change(ctx, drive, func(t *state.Tracked) error {
		switch {
		case t.Rec.Usage == drivebay.UsageRemoved: // it was pulled
			return nil
		case t.Rec.Usage != drivebay.UsageRemoving:
			return errCanceled
		case !t.Present: // what has its address is another drive
			return fmt.Errorf("%w: it cannot be listed", drivebay.ErrBusy)
		}
		files = removeFiles(&t.Drive)
		return m.CheckRemovable(t, t.Rec.Forced)
	})
	return files, err
}

func (m *Replacer) writeFiles(files []string) error {
	for _, f := range files {
		if err := m.State.Machine.WriteFile(f, []byte("1")); err != nil && !errors.Is(err, host.ErrGone) {
			return err
		}
	}
	return nil
}

// removeFiles returns the files that make the kernel remove each path to a drive: of a SCSI
// device (Documentation/scsi/scsi_mid_low_api.rst, "hotplug"), and of the PCI device of
// an NVMe controller (Documentation/ABI/testing/sysfs-bus-pci, remove).
func removeFiles(d *drivebay.Drive) []string {
	var out []string
	for _, p := range d.Paths {
		device, _, isBlock := strings.Cut(p.SysPath, "/block/")
		switch {
		case d.Transport == drivebay.TransportNVMe && strings.Count(p.Address, ":") == 2:
			out = append(out, "sys/bus/pci/devices/"+p.Address+"/remove")
		case isBlock && strings.Count(p.Address, ":") == 3:
			out = append(out, device+"/delete")
		}
	}
	return out
}
