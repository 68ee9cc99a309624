package mounts

import (
	"context"
	"errors"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/device"
)

// layers returns the layers of the volume.
func (s *MountState) layers() device.Stack { return s.Device.Stack(&s.V) }

// OpenLayers opens the layers above the piece of a volume for a stage, and grows them to the size of the
// piece. It first removes mounts of a device that is gone.
func (s *MountState) OpenLayers(ctx context.Context, at MountPath, secrets drivebay.Secrets) error {
	o := device.Opening{Secrets: secrets}
	if s.D.Num == "" && len(s.Ours(at)) > 0 {
		o.Vacate = func(ctx context.Context) error { return s.Clear(ctx, at) }
	}
	above := s.layers().Above()
	if len(above) == 0 {
		return nil
	}
	d, err := above.Open(ctx, o)
	if err != nil {
		return err
	}
	s.D = d
	if err := s.growLayers(ctx, o); !errors.Is(err, drivebay.ErrPending) {
		return err
	}
	return nil // a layer that cannot grow yet can be used as it is
}

// growLayers grows the layers above the piece of a volume to the size of the piece, and then the layers
// in more.
func (s *MountState) growLayers(ctx context.Context, o device.Opening, more ...device.Layer) error {
	layers := s.layers()
	if err := append(layers.Above(), more...).Grow(ctx, o); err != nil {
		return err
	}
	if d, err := layers.State(); err == nil {
		s.D = d
	}
	return nil
}

// closeUnused closes the layers above the piece if the volume is neither published nor mounted.
func (s *MountState) closeUnused(ctx context.Context) error {
	above := s.layers().Above()
	if len(above) == 0 || len(s.Now) > 0 {
		return nil
	}
	t, err := s.MountTable.FreshTable(ctx)
	if err != nil || len(t.Of(s.D)) > 0 {
		return err
	}
	return above.Close(ctx)
}

// CloseAgain is closeUnused after a failed stage. It only logs its own error.
func (s *MountState) CloseAgain(ctx context.Context) {
	if err := s.closeUnused(context.WithoutCancel(ctx)); err != nil {
		s.Log.Warn("its layers stay open", "op", "stage", "volume", s.V.ID, "err", err)
	}
}
