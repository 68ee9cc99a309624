package csi

import (
	"context"

	"github.com/drivebay/drivebay"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Volumes is what the server needs of the volume engine. Errors are those of the
// dictionary.
type Volumes interface {
	Volumes() *drivebay.VolumeSet
	// Unread says of each drive that may carry unknown volumes why it was not read, and
	// whether the engine is ready: the first look over all drives has ended.
	Unread() (why []string, ready bool)
	// Missing is the error for an id that is in no record: ErrNotFound, or
	// ErrUnavailable until every drive that may carry it was read.
	Missing(id string) error
	// Listed is ErrUnavailable while volumes may be missing in the set.
	Listed() error
	Powers() drivebay.VolumePowers
	// CreateVolume returns the volume that there is or was made. One of the same
	// name that does not fit the request: ErrExists.
	CreateVolume(ctx context.Context, r drivebay.VolumeRequest) (drivebay.Volume, error)
	// DeleteVolume is content when there is none; ErrBusy while it is staged or
	// published.
	DeleteVolume(ctx context.Context, id string) error
	// ExpandVolume also says whether ExpandNode has to follow.
	ExpandVolume(ctx context.Context, id string, r drivebay.SizeRange) (v drivebay.Volume, node bool, err error)
	Capacity(ctx context.Context, c drivebay.Class) (drivebay.Capacity, error)
	CreateSnapshot(ctx context.Context, name, volume string) (drivebay.VolumeSnapshot, error)
	DeleteSnapshot(ctx context.Context, id string) error

	StageVolume(ctx context.Context, r drivebay.StageRequest) error
	UnstageVolume(ctx context.Context, id, path string) error
	PublishVolume(ctx context.Context, r drivebay.PublishRequest) error
	UnpublishVolume(ctx context.Context, id, path string) error
	ExpandNode(ctx context.Context, id, path string, r drivebay.SizeRange, secrets drivebay.Secrets) (uint64, error)
	Stats(ctx context.Context, r drivebay.StatsRequest) (drivebay.VolumeStats, error)
}

// volumes is the newest set, once there is one.
func (s *Server) volumes() (*drivebay.VolumeSet, error) {
	set := s.opt.Volumes.Volumes()
	if set.Seq == 0 {
		return nil, status.Error(codes.Unavailable, "the volumes of this machine are not listed yet")
	}
	return set, nil
}

// complete is the newest set, once it names all volumes: a volume that is left out of a
// list is taken for one that is gone, or healthy.
func (s *Server) complete() (*drivebay.VolumeSet, error) {
	set, err := s.volumes()
	if err == nil {
		err = s.opt.Volumes.Listed()
	}
	return set, err
}

// volume is one of the newest set.
func (s *Server) volume(id string) (*drivebay.VolumeView, error) {
	set, err := s.volumes()
	if err != nil {
		return nil, err
	}
	v, ok := set.Get(id)
	if !ok {
		return nil, s.opt.Volumes.Missing(id)
	}
	return v, nil
}
