package addons

import (
	"context"
	"fmt"
	"math"

	"github.com/csi-addons/spec/lib/go/replication"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/replication/parameters"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Replication is what the server needs to replicate volumes. It returns errors of the dictionary; each call is idempotent.
type Replication interface {
	// Replicates returns why this machine replicates nothing, nil if it can.
	Replicates(ctx context.Context) error
	EnableReplication(ctx context.Context, r drivebay.ReplicationRequest) error
	DisableReplication(ctx context.Context, c drivebay.ReplicationCall) error
	PromoteVolume(ctx context.Context, c drivebay.ReplicationCall) error
	DemoteVolume(ctx context.Context, c drivebay.ReplicationCall) error
	ResyncVolume(ctx context.Context, c drivebay.ReplicationCall) (ready bool, err error)
	// ReplicationInfo returns ErrRefused for a volume that is not replicated.
	ReplicationInfo(ctx context.Context, id string) (drivebay.ReplicationInfo, error)
}

type replicationServer struct {
	replication.UnimplementedControllerServer
	of Replication
}

// sourced is a request with both fields that name the volume: volume_id is that of old callers.
type sourced interface {
	GetVolumeId() string
	GetReplicationSource() *replication.ReplicationSource
}

// volumeOf returns the volume of a request.
func volumeOf(req sourced) (string, error) {
	return volumeIn(req.GetVolumeId(), req.GetReplicationSource())
}

func volumeIn(id string, source *replication.ReplicationSource) (string, error) {
	if source.GetVolumegroup() != nil {
		return "", fmt.Errorf("replication_source: %w: volume groups are not replicated", drivebay.ErrNoSupport)
	}
	of := source.GetVolume().GetVolumeId()
	switch {
	case of == "" && id == "":
		return "", fmt.Errorf("replication_source: %w: required, or volume_id", drivebay.ErrInvalid)
	case of != "" && id != "" && of != id:
		return "", fmt.Errorf("replication_source: %w: it names volume %s, and volume_id %s", drivebay.ErrInvalid, of, id)
	case of == "":
		of = id
	}
	return of, nil
}

// call returns what a request asks for. Parameters are those of the class of the volume: only Enable uses them.
func call(req interface {
	sourced
	GetSecrets() map[string]string
	GetParameters() map[string]string
}, force bool) (drivebay.ReplicationCall, error) {
	id, err := volumeOf(req)
	if err == nil {
		err = parameters.Check(req.GetParameters())
	}
	return drivebay.ReplicationCall{Volume: id, Force: force, Secrets: req.GetSecrets()}, err
}

func (s *replicationServer) EnableVolumeReplication(ctx context.Context, req *replication.EnableVolumeReplicationRequest) (*replication.EnableVolumeReplicationResponse, error) {
	id, err := volumeOf(req)
	if err != nil {
		return nil, err
	}
	r, err := parameters.Parse(req.Parameters)
	if err != nil {
		return nil, err
	}
	r.Volume, r.Secrets = id, req.Secrets
	return &replication.EnableVolumeReplicationResponse{}, s.of.EnableReplication(ctx, r)
}

func (s *replicationServer) DisableVolumeReplication(ctx context.Context, req *replication.DisableVolumeReplicationRequest) (*replication.DisableVolumeReplicationResponse, error) {
	c, err := call(req, false)
	if err != nil {
		return nil, err
	}
	return &replication.DisableVolumeReplicationResponse{}, s.of.DisableReplication(ctx, c)
}

func (s *replicationServer) PromoteVolume(ctx context.Context, req *replication.PromoteVolumeRequest) (*replication.PromoteVolumeResponse, error) {
	c, err := call(req, req.Force)
	if err != nil {
		return nil, err
	}
	return &replication.PromoteVolumeResponse{}, s.of.PromoteVolume(ctx, c)
}

// DemoteVolume has no use for force: a volume in use stays primary.
func (s *replicationServer) DemoteVolume(ctx context.Context, req *replication.DemoteVolumeRequest) (*replication.DemoteVolumeResponse, error) {
	c, err := call(req, req.Force)
	if err != nil {
		return nil, err
	}
	return &replication.DemoteVolumeResponse{}, s.of.DemoteVolume(ctx, c)
}

func (s *replicationServer) ResyncVolume(ctx context.Context, req *replication.ResyncVolumeRequest) (*replication.ResyncVolumeResponse, error) {
	c, err := call(req, req.Force)
	if err != nil {
		return nil, err
	}
	ready, err := s.of.ResyncVolume(ctx, c)
	return &replication.ResyncVolumeResponse{Ready: ready}, err
}

func (s *replicationServer) GetVolumeReplicationInfo(ctx context.Context, req *replication.GetVolumeReplicationInfoRequest) (*replication.GetVolumeReplicationInfoResponse, error) {
	id, err := volumeOf(req)
	if err != nil {
		return nil, err
	}
	info, err := s.of.ReplicationInfo(ctx, id)
	if err != nil {
		return nil, err
	}
	resp := &replication.GetVolumeReplicationInfoResponse{StatusMessage: info.Message, Status: map[drivebay.ReplicationStatus]replication.GetVolumeReplicationInfoResponse_Status{
		drivebay.ReplicationHealthy: replication.GetVolumeReplicationInfoResponse_HEALTHY, drivebay.ReplicationDegraded: replication.GetVolumeReplicationInfoResponse_DEGRADED,
		drivebay.ReplicationError: replication.GetVolumeReplicationInfoResponse_ERROR}[info.Status]}
	if !info.LastSync.IsZero() {
		resp.LastSyncTime = timestamppb.New(info.LastSync)
	}
	if info.Duration > 0 {
		resp.LastSyncDuration, resp.LastSyncBytes = durationpb.New(info.Duration), int64(min(info.Bytes, math.MaxInt64))
	}
	return resp, nil
}

// GetReplicationDestinationInfo: the volume of the peer has the same id, because it has the same name.
func (s *replicationServer) GetReplicationDestinationInfo(ctx context.Context, req *replication.GetReplicationDestinationInfoRequest) (*replication.GetReplicationDestinationInfoResponse, error) {
	id, err := volumeIn("", req.ReplicationSource)
	if err != nil {
		return nil, err
	}
	if _, err := s.of.ReplicationInfo(ctx, id); err != nil {
		return nil, err
	}
	return &replication.GetReplicationDestinationInfoResponse{ReplicationDestination: &replication.ReplicationDestination{
		Type: &replication.ReplicationDestination_Volume{Volume: &replication.ReplicationDestination_VolumeDestination{VolumeId: id}}}}, nil
}
