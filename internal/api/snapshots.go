package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/drivebay/drivebay"
)

// SnapshotList holds the snapshots of all volumes at one moment.
type SnapshotList struct {
	Seq       uint64                    `json:"seq"`
	Snapshots []drivebay.VolumeSnapshot `json:"snapshots"`
}

func (s volumeHandlers) snapshots(w http.ResponseWriter, _ *http.Request) error {
	set, err := s.volumeSet()
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, SnapshotList{set.Seq, append([]drivebay.VolumeSnapshot{}, set.Snapshots...)})
	return nil
}

// findSnapshot returns the snapshot with this id, or with this name if only one has it.
func (s volumeHandlers) findSnapshot(what string) (*drivebay.VolumeSnapshot, error) {
	set, err := s.volumeSet()
	if err != nil {
		return nil, err
	}
	if snap, ok := set.GetSnapshot(what); ok {
		return snap, nil
	}
	named := slices.DeleteFunc(slices.Clone(set.Snapshots), func(snap drivebay.VolumeSnapshot) bool { return snap.Name != what })
	switch len(named) {
	case 0:
		return nil, fmt.Errorf("snapshot %q: %w", what, drivebay.ErrNotFound)
	case 1:
		return &named[0], nil
	}
	return nil, fmt.Errorf("snapshot %q: %w: more than one is called so, give the id", what, drivebay.ErrAmbiguous)
}

func (s volumeHandlers) createSnapshot(w http.ResponseWriter, r *http.Request) error {
	return work(s, w, r, func(ctx context.Context, engine Volumes, b snapshotBody) (any, error) {
		if err := checkName(b.Name); err != nil {
			return nil, err
		}
		v, err := s.findVolume(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return engine.CreateSnapshot(ctx, b.Name, v.ID)
	})
}

func (s volumeHandlers) deleteSnapshot(w http.ResponseWriter, r *http.Request) error {
	return onSnapshot(s, w, r, Volumes.DeleteSnapshot)
}

func (s volumeHandlers) forgetSnapshot(w http.ResponseWriter, r *http.Request) error {
	return onSnapshot(s, w, r, Volumes.ForgetSnapshot)
}

func onSnapshot(s volumeHandlers, w http.ResponseWriter, r *http.Request, do func(Volumes, context.Context, string) error) error {
	return work(s, w, r, func(ctx context.Context, engine Volumes, _ struct{}) (any, error) {
		snap, err := s.findSnapshot(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return nil, do(engine, ctx, snap.ID)
	})
}
