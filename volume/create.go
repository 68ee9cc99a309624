package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/provision"
)

// CreateVolume makes a volume, or returns the existing one of that name.
func (e controllerCalls) CreateVolume(ctx context.Context, r drivebay.VolumeRequest) (drivebay.Volume, error) {
	if err := e.provision.SourceThere(r); err != nil {
		return drivebay.Volume{}, err
	}
	id := drivebay.VolumeID(r.Name)
	err := errors.Join(place.Check(r), e.provision.Can(ctx, r.Class))
	if err != nil {
		return drivebay.Volume{}, err
	}
	r.Class.FSType = cmp.Or(r.Filesystem(), r.Class.FSType)
	if err := e.takeInUnknown(ctx, id); err != nil {
		return drivebay.Volume{}, fmt.Errorf("create volume %q: %w", r.Name, err)
	}
	err = e.ledger.Work(ctx, id, func(ctx context.Context) error {
		have, err := e.ledger.Record(id)
		switch {
		case errors.Is(err, drivebay.ErrNotFound):
			return e.provision.Create(ctx, id, r)
		case err != nil:
			return err
		}
		return e.provision.Recreate(ctx, have, r)
	})
	if err != nil {
		return drivebay.Volume{}, fmt.Errorf("create volume %q: %w", r.Name, provision.HalfMade(e.ledger, id, err))
	}
	have, err := e.ledger.Record(id)
	return have.Volume, err
}
