package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// Volumes is what the edge needs of the volume engine.
type Volumes interface {
	Volumes() *drivebay.VolumeSet
	// Unread says of each drive that may carry unknown volumes why it was not read, and
	// whether the engine is ready: the first look over all drives has ended.
	Unread() (why []string, ready bool)
	// Unwritten are the volumes whose newest record is in memory only, by id.
	Unwritten() []string
	// Newer are the volumes that were taken in since the start because the record store was
	// older than their drives, by id.
	Newer() []string
	Powers() drivebay.VolumePowers
	CreateVolume(ctx context.Context, r drivebay.VolumeRequest) (drivebay.Volume, error)
	DeleteVolume(ctx context.Context, id string) error
	// ExpandVolume grows a volume; node says that ExpandNode has to follow.
	ExpandVolume(ctx context.Context, id string, r drivebay.SizeRange) (v drivebay.Volume, node bool, err error)
	ExpandNode(ctx context.Context, id, path string, r drivebay.SizeRange, secrets drivebay.Secrets) (uint64, error)
	CreateSnapshot(ctx context.Context, name, volume string) (drivebay.VolumeSnapshot, error)
	DeleteSnapshot(ctx context.Context, id string) error
	Capacity(ctx context.Context, c drivebay.Class) (drivebay.Capacity, error)
	// ScrubVolume begins a check of a filesystem; its facts tell the verdict.
	ScrubVolume(ctx context.Context, id string) error
	// Heal puts right what keeps a volume from being used.
	Heal(ctx context.Context, r drivebay.HealRequest) (drivebay.HealReport, error)
	// What an operator decides about what failed: another try, to let it be, to go on
	// without what cannot be read, or to forget what was on drives that are gone.
	RetryVolume(ctx context.Context, id string) error
	ClearVolume(ctx context.Context, id string) error
	AcceptLoss(ctx context.Context, id string) error
	ForgetVolume(ctx context.Context, id string) error
	// AdoptVolume takes in a volume that was found on a drive that is not claimed.
	AdoptVolume(ctx context.Context, id string) error
	// ReleaseVolume lets go of what is on a drive that has to leave.
	ReleaseVolume(ctx context.Context, id string) error
	ForgetSnapshot(ctx context.Context, id string) error
	// ForgetDrive has a drive forgotten that no record of a volume names.
	ForgetDrive(ctx context.Context, id, why string) error
}

// VolumeDetail is one volume with what its condition stands on.
type VolumeDetail struct {
	drivebay.VolumeView
	Facts     *drivebay.Facts           `json:"facts,omitempty"`     // its drives with their evidence among them
	Snapshots []drivebay.VolumeSnapshot `json:"snapshots,omitempty"` // of this volume
}

// SnapshotList is every snapshot of a volume at one moment.
type SnapshotList struct {
	Seq       uint64                    `json:"seq"`
	Snapshots []drivebay.VolumeSnapshot `json:"snapshots"`
}

// Capacity is what can be made of a class of volumes.
type Capacity struct {
	drivebay.Capacity
	Snapshots bool `json:"snapshots"` // volumes of the class can have snapshots and clones
}

var errNoVolumes = failf(http.StatusNotImplemented, "not_supported", "this daemon watches drives and makes no volumes on them")

// engineOfVolumes is the engine, where there is one.
func (s *Server) engineOfVolumes() (Volumes, error) {
	if s.opt.Volumes == nil {
		return nil, errNoVolumes
	}
	return s.opt.Volumes, nil
}

// volumeSet is the newest set that somebody has looked at.
func (s *Server) volumeSet() (*drivebay.VolumeSet, error) {
	engine, err := s.engineOfVolumes()
	if err != nil {
		return nil, err
	}
	set := engine.Volumes()
	if set.Seq == 0 {
		return nil, errStarting
	}
	return set, nil
}

func (s *Server) volumes(w http.ResponseWriter, r *http.Request) error {
	set, err := s.wantedVolumes(r)
	if err != nil {
		return err
	}
	body, err := s.encode(set, "volumes", func() any {
		shown := *set
		shown.Volumes = append([]*drivebay.VolumeView{}, set.Volumes...)
		return shown
	})
	if err != nil {
		return fmt.Errorf("encode volumes: %w", err)
	}
	writeBody(w, http.StatusOK, body)
	return nil
}

// wantedVolumes is the newest set, or with ?after=SEQ&wait=TIME the first one that
// is not SEQ. A set is looked for whenever there is a new snapshot of the drives:
// the two come in the same rounds.
func (s *Server) wantedVolumes(r *http.Request) (*drivebay.VolumeSet, error) {
	engine, err := s.engineOfVolumes()
	if err != nil {
		return nil, err
	}
	after, wait, err := waitOf(r)
	if err != nil || wait == 0 {
		return engine.Volumes(), err
	}
	ctx, cancel := s.patience(r, wait)
	defer cancel()
	for {
		seen := s.engine.Snapshot().Seq // before the set: what comes between is not missed
		set := engine.Volumes()
		if set.Seq != after {
			return set, nil
		}
		if _, err := s.engine.Wait(ctx, seen); ctx.Err() != nil {
			return engine.Volumes(), nil // nothing happened: that is an answer
		} else if err != nil {
			return nil, err
		}
	}
}

func (s *Server) volume(w http.ResponseWriter, r *http.Request) error {
	v, err := s.findVolume(r.PathValue("id"))
	if err != nil {
		return err
	}
	set, err := s.volumeSet()
	if err != nil {
		return err
	}
	detail := VolumeDetail{VolumeView: *v, Facts: v.Facts}
	for _, snap := range set.Snapshots {
		if snap.Source == v.ID {
			detail.Snapshots = append(detail.Snapshots, snap)
		}
	}
	writeJSON(w, http.StatusOK, detail)
	return nil
}

// findVolume resolves what the caller calls a volume.
func (s *Server) findVolume(what string) (*drivebay.VolumeView, error) {
	set, err := s.volumeSet()
	if err != nil {
		return nil, err
	}
	if v, ok := set.Find(what); ok {
		return v, nil
	}
	for _, v := range set.Volumes {
		one := drivebay.VolumeSet{Volumes: []*drivebay.VolumeView{v}}
		if _, ok := one.Find(what); ok {
			return nil, fmt.Errorf("volume %q: %w: more than one is called so, give the id", what, drivebay.ErrAmbiguous)
		}
	}
	return nil, fmt.Errorf("volume %q: %w", what, drivebay.ErrNotFound)
}

func (s *Server) snapshots(w http.ResponseWriter, _ *http.Request) error {
	set, err := s.volumeSet()
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, SnapshotList{set.Seq, append([]drivebay.VolumeSnapshot{}, set.Snapshots...)})
	return nil
}

// findSnapshot finds a snapshot by its whole id, or by a name that only one has.
func (s *Server) findSnapshot(what string) (*drivebay.VolumeSnapshot, error) {
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

func (s *Server) capacity(w http.ResponseWriter, r *http.Request) error {
	engine, err := s.engineOfVolumes()
	if err != nil {
		return err
	}
	parameters, err := single(r.URL.Query())
	if err != nil {
		return err
	}
	class, err := drivebay.ParseClass(parameters)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), opTimeout)
	defer cancel()
	c, err := engine.Capacity(ctx, class)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, Capacity{c, class.Backing == drivebay.BackingThin && engine.Powers().Snapshots})
	return nil
}

// single reads a query in which nothing is said twice.
func single(q url.Values) (map[string]string, error) {
	out := map[string]string{}
	for key, values := range q {
		if len(values) != 1 {
			return nil, fmt.Errorf("%s: %w: given as %s", key, drivebay.ErrInvalid, strings.Join(values, " and as "))
		}
		out[key] = values[0]
	}
	return out, nil
}
