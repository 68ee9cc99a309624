package replicated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/replication"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/expand"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/luks"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/watch"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// Devices makes and removes the DRBD devices of volumes. With Replicator and Observer, which have it in them, it is the only writer of
// a volume's replication in the records.
type Devices struct {
	*env.Env
	Ledger     *ledger.Ledger
	Steps      *steps.Runner
	Device     *device.Opener
	LUKS       *luks.Crypt
	Partitions *partitions.Catalog
	Write      *write.Writer
	Instances  *instances.Finder

	seen replication.Memory
	down sync.Map // the volumes whose device was taken down here while it was primary
}

// Replicator replicates volumes: it carries out what a caller asks for.
type Replicator struct {
	*Devices
	Mounts *mounts.Mounter
	Watch  *watch.Watcher
	Expand *expand.Expander

	choosing sync.Mutex // held from the choice of a minor and ports to their record
}

// resourceOf is the name of a volume's resource.
func resourceOf(v *drivebay.Volume) string { return content.OursPrefix + v.ID }

// pairOf is what a volume and that of its peer are called together.
func pairOf(v *drivebay.Volume) string { return cmp.Or(v.Replication.Pair, v.ID) }

// loaded opens the kernel's DRBD.
func (e *Devices) loaded() (drbd.Kernel, error) {
	if e.Opt.DRBD == nil {
		return nil, fmt.Errorf("replication: %w: this machine has no DRBD", drivebay.ErrNoSupport)
	}
	return e.Opt.DRBD()
}

// statusOf asks the kernel for the device of a volume. If the record is older than the device, the minor may be that of another resource.
func statusOf(ctx context.Context, k drbd.Kernel, v *drivebay.Volume) (drbd.Status, error) {
	st, err := k.Status(ctx, v.Replication.Minor)
	if err == nil && st.Resource != resourceOf(v) {
		return drbd.Status{}, fmt.Errorf("%w: DRBD minor %d belongs to resource %s", drivebay.ErrRefused, st.Minor, st.Resource)
	}
	return st, err
}

// kernel opens the kernel's DRBD, and loads its module first if it is not loaded. drbdmeta must be there too.
func (e *Devices) kernel(ctx context.Context) (drbd.Kernel, error) {
	k, err := e.loaded()
	if errors.Is(err, drbd.ErrUnavailable) {
		// The helper that the kernel starts at each event is drbdadm, which knows nothing of our resources.
		if _, why := e.Machine.Run(ctx, "modprobe", "drbd", "usermode_helper=/bin/true"); why != nil {
			return nil, fmt.Errorf("replication: %w: %w: %w", drivebay.ErrNoSupport, err, why)
		}
		k, err = e.loaded()
	}
	if err != nil {
		return nil, fmt.Errorf("replication: %w", err)
	}
	return k, nil
}

// Can returns why this machine replicates nothing, nil if it can.
func (e *Devices) Can(ctx context.Context) error {
	k, err := e.kernel(ctx)
	if err != nil {
		return err
	}
	k.Close()
	if _, err := e.Machine.Run(ctx, "drbdmeta", "--version"); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replication: %w: this machine has no drbdmeta: install drbd-utils: %w", drivebay.ErrNoSupport, err)
	}
	return nil
}

// inOurWords replaces errors of package drbd by those of package drivebay.
func inOurWords(err error) error {
	for from, to := range map[error]error{
		drbd.ErrTwoPrimaries: drivebay.ErrRefused, drbd.ErrNotUpToDate: drivebay.ErrRefused, drbd.ErrInUse: drivebay.ErrBusy,
		drbd.ErrAddressInUse: drivebay.ErrExists, drbd.ErrNoMetadata: drivebay.ErrRefused, drbd.ErrResync: drivebay.ErrPending,
		drbd.ErrNoPrimary: drivebay.ErrPending,
	} {
		if errors.Is(err, from) {
			return fmt.Errorf("%w: %w", to, err)
		}
	}
	return err
}

// How long a device that was just closed may be held by udev, which looks at each device that was open for writing.
const (
	heldTime     = 3 * time.Second
	heldInterval = 50 * time.Millisecond
)

// onceClosed repeats a request that the kernel refuses while the device is open.
func (e *Devices) onceClosed(ctx context.Context, request func() error) error {
	for end := e.Machine.Now().Add(heldTime); ; {
		err := request()
		if !errors.Is(err, drbd.ErrInUse) || ctx.Err() != nil || e.Machine.Now().After(end) {
			return inOurWords(err)
		}
		<-e.Machine.After(heldInterval)
	}
}

// dataOf is how much a volume's DRBD device has to hold: its data, and the header of its encryption.
func dataOf(v *drivebay.Volume) uint64 {
	return v.Size + place.Overhead(v.LUKSUUID)
}

// drbdmeta runs a command of drbdmeta on the open disk. Whatever drbdmeta remembers of the disk is forgotten before,
// and replaced by moved, if there is any: it is the content of drbd.LastKnown.
func (e *Devices) drbdmeta(ctx context.Context, minor uint32, moved []byte, argv []string) error {
	_, err := e.Machine.Run(ctx, "rm", "-f", drbd.LastKnown(minor))
	if err == nil && moved != nil {
		_, err = e.Machine.RunInput(ctx, moved, "tee", drbd.LastKnown(minor))
	}
	if err == nil {
		_, err = e.Machine.Run(ctx, argv...)
	}
	return err
}

// metadataOf reads the metadata at the end of the piece of a volume.
func metadataOf(ctx context.Context, e *Devices, v *drivebay.Volume) (m drbd.Metadata, err error) {
	err = e.LUKS.On(ctx, v, e.belowOf(v), false, func(_ context.Context, disk host.Disk) (err error) {
		m, err = drbd.ReadMetadata(disk, disk.Size())
		return err
	})
	return m, err
}

// change changes the replication in the record of a volume.
func (e *Devices) change(v *drivebay.Volume, f func(*drivebay.Replication)) error {
	r, err := e.Ledger.Change(v.ID, func(r *drivebay.VolumeRecord) error {
		if r.Volume.Replication == nil {
			return fmt.Errorf("volume %s: %w: it is not replicated", v.ID, drivebay.ErrNotFound)
		}
		next := *r.Volume.Replication
		f(&next)
		r.Volume.Replication = &next
		return nil
	})
	if err == nil {
		v.Replication = r.Volume.Replication
	}
	return err
}

// deviceOn returns the DRBD device of a volume above the device of its piece. The kernel shows in sysfs that it is.
func (e *Devices) deviceOn(d mounttable.Device, v *drivebay.Volume) (mounttable.Device, error) {
	out, err := e.Device.HolderOf(d, func(name string) bool {
		return name == fmt.Sprintf("drbd%d", v.Replication.Minor) || v.Replication.Lost() && strings.HasPrefix(name, "drbd")
	})
	if err == nil && out.Size == 0 {
		err = fmt.Errorf("device %s: %w: it has no disk", out.Name, drivebay.ErrNotFound)
	}
	if err != nil {
		return mounttable.Device{}, fmt.Errorf("volume %s: %w", v.ID, err)
	}
	return out, nil
}
