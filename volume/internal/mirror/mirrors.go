package mirror

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// Mirrors activates mirrored volumes.
type Mirrors struct {
	*env.Env
	Ledger     *ledger.Ledger
	Partitions *partitions.Catalog
	Groups     *groups.Groups
	Device     *device.Opener
	Inventory  *inventory.Inventory
	Erase      *erase.Eraser
	Write      *write.Writer

	mirrorDecisions atomic.Uint64 // grows with each mirror that is about to be activated or was deactivated
}

// ReportAgain reads a new LVM report of a volume's group. If no drive answers, LVM is not
// asked, and the symptoms are as old as the last report.
func (e *Mirrors) ReportAgain(ctx context.Context, v *drivebay.Volume) {
	s := e.Drives.Snapshot()
	here := slices.ContainsFunc(v.Location.Drives, func(id string) bool { return DriveHere(s, id) })
	if !v.Location.OnLVM() || !here {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, partitions.ReportTime)
	defer cancel()
	if err := e.Groups.LVMActivate(ctx, v.Location, nil); err != nil {
		e.Log.Warn("no report of LVM", "op", "heal", "volume", v.ID, "err", err)
	}
}

// DriveHere reports whether a drive is known and answers.
func DriveHere(s *drivebay.Snapshot, id string) bool {
	d, ok := steps.DriveOf(s, id)
	return ok && d.Status == drivebay.StatusOnline && (d.Kernel == nil || d.Kernel.LaneStuck == 0)
}

// StagedAt returns the publication at which a volume is staged; nil if it is not.
func StagedAt(v *drivebay.Volume) *drivebay.Publication {
	i := slices.IndexFunc(v.Publications, func(p drivebay.Publication) bool { return p.Staging })
	if i < 0 {
		return nil
	}
	return &v.Publications[i]
}
