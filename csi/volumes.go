package csi

import (
	"context"

	"github.com/drivebay/drivebay"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// VolumeSets is what both services need of the volume engine. Volumes, ControllerVolumes and
// NodeVolumes return errors of the dictionary.
type VolumeSets interface {
	Volumes() *drivebay.VolumeSet
	// Unread returns why each drive that may have unknown volumes was not read, and
	// whether the engine is ready: the first listing of all drives is complete.
	Unread() (why []string, ready bool)
	// Missing returns the error for an id without a record: ErrNotFound, or
	// ErrUnavailable until every drive that may have the volume was read.
	Missing(id string) error
	// Listed returns ErrUnavailable while the set may lack volumes.
	Listed() error
	Capabilities() drivebay.VolumeCapabilities
}

// ControllerVolumes is what the controller service needs. The engine of a machine implements it
// for that machine, a client of the engines of all nodes for a cluster.
type ControllerVolumes interface {
	VolumeSets
	// CreateVolume returns the existing or new volume; ErrExists if a volume of this
	// name does not fit the request.
	CreateVolume(ctx context.Context, r drivebay.VolumeRequest) (drivebay.Volume, error)
	// DeleteVolume returns nil if there is no such volume; ErrBusy while it is staged or
	// published.
	DeleteVolume(ctx context.Context, id string) error
	// ExpandVolume also returns whether ExpandNode has to follow.
	ExpandVolume(ctx context.Context, id string, r drivebay.SizeRange) (v drivebay.Volume, node bool, err error)
	Capacity(ctx context.Context, c drivebay.Class) (drivebay.Capacity, error)
	CreateSnapshot(ctx context.Context, name, volume string) (drivebay.VolumeSnapshot, error)
	DeleteSnapshot(ctx context.Context, id string) error
}

// Cluster is what the controller service of a cluster needs.
type Cluster interface {
	ControllerVolumes
	// Nodes returns the nodes on which volumes can be made, sorted; ErrUnavailable before they are known.
	Nodes() ([]string, error)
	// CapacityOn returns the space on some of them; ErrUnavailable if the drives that are read have no space, and
	// others are not read yet.
	CapacityOn(ctx context.Context, c drivebay.Class, nodes []string) (drivebay.Capacity, error)
}

// NodeVolumes is what the node service needs.
type NodeVolumes interface {
	VolumeSets
	StageVolume(ctx context.Context, r drivebay.StageRequest) error
	UnstageVolume(ctx context.Context, id, path string) error
	PublishVolume(ctx context.Context, r drivebay.PublishRequest) error
	UnpublishVolume(ctx context.Context, id, path string) error
	ExpandNode(ctx context.Context, id, path string, r drivebay.SizeRange, secrets drivebay.Secrets) (uint64, error)
	Stats(ctx context.Context, r drivebay.StatsRequest) (drivebay.VolumeStats, error)
}

// Volumes is an engine that serves both.
type Volumes interface {
	ControllerVolumes
	NodeVolumes
}

// sets returns the volumes of the machine or of the cluster; nil: no volumes can be made.
func (s *Server) sets() VolumeSets {
	switch {
	case s.opt.Cluster != nil:
		return s.opt.Cluster
	case s.opt.Volumes != nil:
		return s.opt.Volumes
	}
	return nil
}

// set returns the newest set, an error before the first one.
func (s *Server) set() (*drivebay.VolumeSet, error) {
	set := s.sets().Volumes()
	if set.Seq == 0 {
		return nil, status.Error(codes.Unavailable, "the volumes are not listed yet")
	}
	return set, nil
}

// complete returns the newest set, an error while the set may lack volumes: an orchestrator
// treats a volume that is missing in a list as deleted, or as healthy.
func (s *Server) complete() (*drivebay.VolumeSet, error) {
	set, err := s.set()
	if err == nil {
		err = s.sets().Listed()
	}
	return set, err
}

// volume returns one volume of the newest set.
func (s *Server) volume(id string) (*drivebay.VolumeView, error) {
	set, err := s.set()
	if err != nil {
		return nil, err
	}
	v, ok := set.Get(id)
	if !ok {
		return nil, s.sets().Missing(id)
	}
	return v, nil
}
