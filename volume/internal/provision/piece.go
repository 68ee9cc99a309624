package provision

import (
	"context"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// piece is what a volume has of the drives. Each kind plans how it is made and removed: the provisioner does
// not know which it has.
type piece interface {
	// create plans to make the piece, and to complete it. wrote becomes true before anything is written.
	create(secrets drivebay.Secrets, wrote *atomic.Bool) ([]steps.Step, error)
	// complete plans to fill a new piece, and then to mark it as finished: only an unfinished one is filled.
	complete(secrets drivebay.Secrets, wrote *atomic.Bool) ([]steps.Step, error)
	// remove plans to wipe the piece as the class of the volume requires, and to remove it.
	remove() ([]steps.Step, error)
}

func (e *Provisioner) piece(rec drivebay.VolumeRecord) piece {
	if rec.Volume.Location.OnLVM() {
		return logicalVolume{e, rec}
	}
	return partition{e, rec}
}

// partition is the piece of a volume in a partition table.
type partition struct {
	*Provisioner
	rec drivebay.VolumeRecord
}

func (e partition) create(secrets drivebay.Secrets, wrote *atomic.Bool) ([]steps.Step, error) {
	plan, err := e.complete(secrets, wrote)
	add := e.Write.AddEntry(write.OfVolume(&e.rec), wrote)
	add[0] = e.unfilled(e.rec.Volume.ID, add[0])
	return append(add, plan...), err
}

func (e partition) complete(secrets drivebay.Secrets, _ *atomic.Bool) (plan []steps.Step, err error) {
	n := write.OfVolume(&e.rec)
	half := func(ctx context.Context) (bool, error) { return e.Write.OfType(ctx, n, ledger.TypeMaking) }
	for _, s := range e.filled(&e.rec.Volume, secrets) {
		plan = append(plan, write.When(half, s))
	}
	return append(plan, e.Write.Retype("finish", n, write.FinalType(&e.rec.Volume))), nil
}

// remove plans to mark the partition as unfinished first: if the record is lost, a half-wiped partition is
// not adopted as sound.
func (e partition) remove() ([]steps.Step, error) {
	v := &e.rec.Volume
	n := write.OfVolume(&e.rec)
	there := e.Write.InTable(n, func(*gpt.Table) (bool, error) { return true, nil })
	shown := e.Write.AddKernelPartition(n) // it may never have been added
	plan := []steps.Step{e.Write.Retype("mark", n.Removing(), ledger.TypeMaking), write.When(e.Steps.UnlessMade(v.ID, partitions.WipeStep, there), shown)}
	plan = append(append(plan, e.Device.Stack(v).Erase(there)...), e.Wiped(v, there))
	return append(plan, e.Write.DropEntry(n)...), nil
}
