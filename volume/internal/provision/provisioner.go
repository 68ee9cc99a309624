package provision

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/capabilities"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/luks"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// Provisioner creates and deletes volumes.
type Provisioner struct {
	*env.Env
	Ledger       *ledger.Ledger
	Steps        *steps.Runner
	Capabilities *capabilities.Prober
	Partitions   *partitions.Catalog
	Groups       *groups.Groups
	Device       *device.Opener
	Instances    *instances.Finder
	Inventory    *inventory.Inventory
	Erase        *erase.Eraser
	Write        *write.Writer
	Mirror       *mirror.Mirrors
	LUKS         *luks.Crypt
	Mounts       *mounts.Mounter

	Placing sync.Mutex // one place is chosen at a time
}

// rereadTime is how long an answer that a place is lacking waits for drives whose tables have just
// changed. One of them may have become blank by a deletion that has been answered.
const rereadTime = 5 * time.Second

// AwaitReread waits for these drives for at most rereadTime, and reports whether there was one.
func (e *Provisioner) AwaitReread(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, rereadTime)
	defer cancel()
	waited, _ := e.Drives.AwaitReread(ctx)
	return waited
}

// Can returns why volumes of a class cannot be made on this machine.
func (e *Provisioner) Can(ctx context.Context, c drivebay.Class) error {
	switch {
	case c.Encryption != "" && c.Encryption != drivebay.EncryptionLUKS2:
		return fmt.Errorf("encryption %q: %w", c.Encryption, drivebay.ErrNoSupport)
	case c.Backing.Location() == drivebay.LocationUnknown || !slices.Contains(drivebay.FSTypes, c.FSType):
		return fmt.Errorf("class: %w: backing %q, filesystem %q", drivebay.ErrInvalid, c.Backing, c.FSType)
	case place.Unit(c.Backing) != partitions.MiB && e.Capabilities.LacksLVM() != nil:
		return fmt.Errorf("backing %s: %w", c.Backing, e.Capabilities.LacksLVM())
	case place.Unit(c.Backing) != partitions.MiB && e.Groups.LVMLate() != "":
		return fmt.Errorf("backing %s: %w: %s", c.Backing, drivebay.ErrUnavailable, e.Groups.LVMLate())
	case c.Encryption != "":
		return e.LUKS.CanEncrypt(ctx)
	}
	return nil
}

// ResumeWork continues the interrupted work of a volume or snapshot in a goroutine. After the first
// listing it waits for a caller that holds the volume: that caller may have completed the work. Later
// such a caller is the one that does the work.
func (e *Provisioner) ResumeWork(first bool, id string, again func(context.Context, string) error, due func() bool) {
	end, err := e.Ledger.Begin(id)
	if err != nil && !first {
		return
	}
	e.Running.Go(func() {
		if err != nil {
			if end, err = e.Ledger.BeginAfter(e.Ctx, id); err != nil {
				return
			}
		}
		defer end()
		if !due() {
			return
		}
		if err := ledger.Safely(e.Ctx, "volume "+id, func(ctx context.Context) error { return again(ctx, id) }); err != nil {
			e.Log.Warn("work that was cut short has failed again", "op", "resume", "volume", id, "err", err)
		}
	})
}
