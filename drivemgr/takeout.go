package drivemgr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// takeOutTime is how long the kernel may take to let go of a drive: it has the
// drive write down its cache first (drivers/scsi/sd.c, sd_shutdown).
const takeOutTime = time.Minute

// takeOut has the kernel let go of a drive. That it has done so the listing shows,
// which ends the way of the drive (see miss).
func (m *Manager) takeOut(ctx context.Context, d *drivebay.Drive) error {
	if d.Slot.Locate != "" {
		if err := m.Locate(ctx, d.ID, true); err != nil {
			m.log.Warn("bay not lit", "op", "take out", "drive", d.ID, "err", err)
		}
	}
	files := letGo(d)
	if len(files) == 0 {
		return nil // it is pulled as it is
	}
	limited, cancel := context.WithTimeout(ctx, takeOutTime)
	defer cancel()
	_, err := lane.Through(limited, lane.New(), m.machine, func(context.Context) (struct{}, error) {
		return struct{}{}, m.write(files)
	})
	if err == nil {
		return m.Refresh(ctx)
	}
	err = fmt.Errorf("drive %s (%s): take out: %w", d.ID, d.Name, translate(err))
	return errors.Join(err, m.Failed(context.WithoutCancel(ctx), d.ID, err.Error()))
}

func (m *Manager) write(files []string) error {
	for _, f := range files {
		if err := m.machine.WriteFile(f, []byte("1")); err != nil && !errors.Is(err, host.ErrGone) {
			return err
		}
	}
	return nil
}

// letGo are the files that have the kernel let go of each way to a drive: of a SCSI
// device (Documentation/scsi/scsi_mid_low_api.rst, "hotplug"), and of the PCI device
// that an NVMe controller is (Documentation/ABI/testing/sysfs-bus-pci, remove).
func letGo(d *drivebay.Drive) []string {
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
