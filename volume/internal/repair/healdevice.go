package repair

import (
	"context"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/condition"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/luks"
	"github.com/drivebay/drivebay/volume/internal/replicated"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Repairs of what is below a filesystem.

func needLetGo(g *symptoms) (why string, cannot error) {
	if !g.here {
		return "", nil
	}
	var dead []string
	for _, p := range g.paths {
		if p.dead {
			dead = append(dead, p.Path)
		}
	}
	if len(dead) == 0 {
		return "", nil
	}
	return strings.Join(dead, ", ") + ": the device that is mounted there no longer exists", nil
}

// letGo unmounts the paths whose device is gone, those of pods first.
func letGo(ctx context.Context, p *diagnosis) error {
	for _, one := range append(p.signs.targets(), p.signs.staging()) {
		if one != nil && one.dead {
			if err := p.clear(ctx, one.at); err != nil {
				return err
			}
		}
	}
	return nil
}

func needLegs(g *symptoms) (why string, cannot error) {
	for _, l := range g.legs {
		// A volume without a device gets one with all legs by its activation, the next repair.
		refresh := g.below && g.facts.LV != nil && g.facts.LV.RefreshNeeded
		if !l.here || !l.missing && !l.unused && !refresh {
			continue
		}
		switch {
		case !l.missing && !l.unused:
			why = "a leg has failed writes and is left out"
		case l.missing:
			why = fmt.Sprintf("LVM has put the physical volume on drive %s down as lost, and the drive is here", l.drive)
		default:
			why = fmt.Sprintf("the mirror does not use drive %s, which is online", l.drive)
		}
		if l.bad {
			cannot = fmt.Errorf("%w: drive %s is BAD, and is to be replaced", drivebay.ErrRefused, l.drive)
			continue
		}
		return why, nil
	}
	return why, cannot
}

// takeBack makes LVM use all legs again that are here and not BAD. What they missed is copied to them.
func takeBack(ctx context.Context, p *diagnosis) error {
	l := p.V.Location
	if p.signs.below {
		return p.e.Mirror.Rejoin(ctx, &p.V)
	}
	var plan []lvm.Step // the next repair activates it, with all legs
	for _, leg := range p.signs.legs {
		if leg.here && leg.missing && !leg.bad {
			plan = append(plan, lvm.RestoreMissing(l.VG, leg.pv)...)
		}
	}
	return p.e.Write.LVMRun(ctx, l, plan)
}

func needDisk(g *symptoms) (why string, cannot error) {
	if r := g.facts.Replication; r == nil || !r.NoDisk || !g.v.Replicates() || !g.here || !g.below || g.copied {
		return "", nil
	}
	why = "DRBD has no disk of it, and its drive is here"
	if replicated.OnBadDrive(&g.v, g.facts.Drives) {
		return why, fmt.Errorf("%w: its drive is BAD: make this side again on another one (docs/replication.md, When a drive fails)", drivebay.ErrRefused)
	}
	return why, nil
}

// attachDisk gives DRBD the disk again. What it missed comes from the peer.
func attachDisk(ctx context.Context, p *diagnosis) error {
	return p.e.Replicas.AttachAgain(ctx, p.V.ID)
}

func needActive(g *symptoms) (why string, cannot error) {
	lv := g.facts.LV
	suspended := lv != nil && lv.Suspended
	if !g.v.Location.OnLVM() || !g.here || !g.used() || g.below && !suspended {
		return "", nil
	}
	why = "its logical volume has no device that leads to its drives"
	if suspended {
		why = "its logical volume is suspended"
	}
	if lv != nil && lv.PoolFailed {
		return why, fmt.Errorf("%w: its thin pool %s has failed: unstage its volumes and run lvconvert --repair", drivebay.ErrRefused, g.v.Location.Pool)
	}
	return why, nil
}

// makeActive activates the logical volume. Layers above it that lead nowhere are closed first: they block
// a new device below them.
func makeActive(ctx context.Context, p *diagnosis) error {
	layers := p.e.Device.Stack(&p.V)
	if !p.signs.device {
		if err := layers.Above().Close(ctx); err != nil {
			return err
		}
	}
	_, err := layers.Piece().Open(ctx, device.Opening{})
	return steps.InOurWords(err)
}

// poolLow is the use of a pool, in percent, from which it is extended. The condition
// ThinPoolLowOnDataSpace starts there.
const poolLow = condition.PoolLow

func needMetadata(g *symptoms) (why string, cannot error) {
	lv := g.facts.LV
	if g.v.Location.Pool == "" || lv == nil || lv.PoolFailed || !lv.MetadataLocked && (lv.MetadataPercent == nil || *lv.MetadataPercent < poolLow) {
		return "", nil
	}
	why = fmt.Sprintf("the thin pool %s can write no metadata", g.v.Location.Pool)
	if lv.MetadataPercent != nil {
		why = fmt.Sprintf("%d %% of the metadata of the thin pool %s are used", int(*lv.MetadataPercent), g.v.Location.Pool)
	}
	return why, g.noRoom()
}

func extendMetadata(ctx context.Context, p *diagnosis) error {
	l := p.V.Location
	meta := p.e.Groups.LVMNow().Group(l.VG).Metadata(l.Pool)
	if meta == nil {
		return fmt.Errorf("metadata of thin pool %s/%s: %w", l.VG, l.Pool, drivebay.ErrNotFound)
	}
	return p.e.Write.LVMRun(ctx, l, lvm.ExtendMetadata(l.VG, l.Pool, meta.Size+min(meta.Size, p.signs.room*lvm.ExtentSize)))
}

// noRoom returns an error if a pool cannot be extended.
func (g *symptoms) noRoom() error {
	if g.room > 0 {
		return nil
	}
	return fmt.Errorf("%w: group %s has no free extents: delete volumes or snapshots of it", drivebay.ErrNoSpace, g.v.Location.VG)
}

func needRoom(g *symptoms) (why string, cannot error) {
	lv := g.facts.LV
	if g.v.Location.Pool == "" || lv == nil || !lv.OutOfData && (lv.DataPercent == nil || *lv.DataPercent < poolLow) {
		return "", nil
	}
	why = fmt.Sprintf("the thin pool %s is full", g.v.Location.Pool)
	if lv.DataPercent != nil {
		why = fmt.Sprintf("%d %% of the thin pool %s are used", int(*lv.DataPercent), g.v.Location.Pool)
	}
	return why, g.noRoom()
}

func extendPool(ctx context.Context, p *diagnosis) error {
	l := p.V.Location
	g := p.e.Groups.LVMNow().Group(l.VG)
	if g == nil || g.LV(l.Pool) == nil {
		return fmt.Errorf("thin pool %s/%s: %w", l.VG, l.Pool, drivebay.ErrNotFound)
	}
	return p.e.Write.LVMRun(ctx, l, lvm.Extend(l.VG, l.Pool, g.LV(l.Pool).Size+p.signs.room*lvm.ExtentSize))
}

func needKey(g *symptoms) (why string, cannot error) {
	if !g.encrypted() || g.device || !g.here || !g.used() {
		return "", nil
	}
	return "it is locked while it is in use", nil
}

func unlockAgain(ctx context.Context, p *diagnosis) error {
	if _, err := luks.TheKey(p.signs.r.Secrets); err != nil {
		return fmt.Errorf("the volume is locked: %w", err)
	}
	_, err := p.e.Device.Stack(&p.V).Open(ctx, device.Opening{Secrets: p.signs.r.Secrets})
	return err
}
