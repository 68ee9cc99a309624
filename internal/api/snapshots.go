package api

import (
	"context"
	"net/http"

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

// findSnapshot returns the snapshot with this id, or with this name if only one has it. With prefix
// the beginning of either is enough.
func (s volumeHandlers) findSnapshot(what string, prefix bool) (*drivebay.VolumeSnapshot, error) {
	set, err := s.volumeSet()
	if err != nil {
		return nil, err
	}
	return set.ResolveSnapshot(what, prefix)
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
		snap, err := s.findSnapshot(r.PathValue("id"), false)
		if err != nil {
			return nil, err
		}
		return nil, do(engine, ctx, snap.ID)
	})
}
