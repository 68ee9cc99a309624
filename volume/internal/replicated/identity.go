package replicated

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// identify records the UUIDs of what the peer has sent: its filesystem or encryption has replaced the one that was made for
// the volume here. Another kind of content than that of the volume is refused, and stays.
func (e *Devices) identify(ctx context.Context, v *drivebay.Volume) error {
	return e.identifyOn(ctx, v, func() (mounttable.Device, error) {
		below, err := e.belowOf(v).State()
		if err != nil {
			return below, err
		}
		return e.deviceOn(below, v)
	})
}

// identifyOn is identify for what is shown: the DRBD device, or the piece of a volume that has none any more.
func (e *Devices) identifyOn(ctx context.Context, v *drivebay.Volume, shown func() (mounttable.Device, error)) error {
	want := []string{v.FSType}
	switch {
	case v.Encrypted():
		want[0] = "crypto_LUKS"
	case !v.HasFilesystem():
		return nil
	case v.FSType == "": // its record was lost, and nothing could be found on it
		want = drivebay.FSTypes
	}
	var format, found string
	err := steps.Touch(ctx, e.Steps, v, steps.ProbeTime, func(ctx context.Context) error {
		disk, err := e.Device.OpenShown(ctx, shown)
		if err != nil {
			return err
		}
		defer disk.Close()
		format, found, err = uuidOf(disk, want)
		return err
	})
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.ID, err)
	}
	if found == v.FSUUID && !v.Encrypted() && format == v.FSType || found == v.LUKSUUID && v.Encrypted() {
		return nil
	}
	// The copy of the header that was replaced opens nothing any more: put back, it would replace that of the peer.
	if v.Encrypted() {
		if err := e.Device.Stack(v).Forget(); err != nil {
			return err
		}
	}
	rec, err := e.Ledger.Change(v.ID, func(r *drivebay.VolumeRecord) error {
		if r.Volume.Encrypted() { // the filesystem in it is known when it is unlocked
			r.Volume.LUKSUUID, r.Volume.FSUUID = found, ""
		} else {
			r.Volume.FSType, r.Volume.FSUUID = format, found
		}
		return nil
	})
	if err == nil {
		*v = rec.Volume
	}
	return err
}

// uuidOf returns the format and the UUID of the content, which has to be of one of some formats.
func uuidOf(disk host.Disk, formats []string) (format, uuid string, err error) {
	c := content.Detect(disk, disk.Size(), disk.BlockSize())
	for _, s := range c.Signatures {
		if s.Partition == "" && slices.Contains(formats, s.Format) && s.UUID != "" {
			return s.Format, s.UUID, nil
		}
	}
	return "", "", fmt.Errorf("%w: there is no %s on it", drivebay.ErrRefused, strings.Join(formats, ", "))
}
