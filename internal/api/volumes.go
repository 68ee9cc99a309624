package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
)

// Volumes is the part of the volume engine that the API needs.
type Volumes interface {
	Volumes() *drivebay.VolumeSet
	// WaitVolumes returns the newest set once its number differs from after.
	WaitVolumes(ctx context.Context, after uint64) (*drivebay.VolumeSet, error)
	// Unread returns why each drive that may have unknown volumes was not read, and whether the
	// engine is ready: the first listing of all drives is complete.
	Unread() (why []string, ready bool)
	// Unwritten returns the ids of the volumes whose newest record is in memory only.
	Unwritten() []string
	// Newer returns the ids of the volumes that were adopted since the start because the record
	// store was older than their drives.
	Newer() []string
	Capabilities() drivebay.VolumeCapabilities
	CreateVolume(ctx context.Context, r drivebay.VolumeRequest) (drivebay.Volume, error)
	DeleteVolume(ctx context.Context, id string) error
	// ExpandVolume grows a volume; node reports that ExpandNode has to follow.
	ExpandVolume(ctx context.Context, id string, r drivebay.SizeRange) (v drivebay.Volume, node bool, err error)
	ExpandNode(ctx context.Context, id, path string, r drivebay.SizeRange, secrets drivebay.Secrets) (uint64, error)
	CreateSnapshot(ctx context.Context, name, volume string) (drivebay.VolumeSnapshot, error)
	DeleteSnapshot(ctx context.Context, id string) error
	Capacity(ctx context.Context, c drivebay.Class) (drivebay.Capacity, error)
	// Room returns whether a volume has room to grow, or to leave a drive.
	Room(ctx context.Context, id string, q drivebay.RoomQuery) (drivebay.VolumeRoom, error)
	// ScrubVolume starts a check of a filesystem; the facts of the volume have the result.
	ScrubVolume(ctx context.Context, id string) error
	// Heal repairs the faults that prevent the use of a volume.
	Heal(ctx context.Context, r drivebay.HealRequest) (drivebay.HealReport, error)
	// These are an operator's decisions after a failure: retry it, clear it, continue without the
	// data that cannot be read, or forget a volume whose drives are gone.
	RetryVolume(ctx context.Context, id string) error
	ClearVolume(ctx context.Context, id string) error
	AcceptLoss(ctx context.Context, id string) error
	ForgetVolume(ctx context.Context, id string) error
	// AdoptVolume adopts a volume that was found on a drive that is not claimed.
	AdoptVolume(ctx context.Context, id string) error
	// MoveBeforeUse sets whether a volume on a drive that has to leave is moved before it is staged again.
	MoveBeforeUse(ctx context.Context, id string, on bool) error
	// ReleaseVolume releases a volume on a drive that has to leave.
	ReleaseVolume(ctx context.Context, id string) error
	ForgetSnapshot(ctx context.Context, id string) error
	// ForgetDrive forgets a drive that no record of a volume names.
	ForgetDrive(ctx context.Context, id, why string) error
}

// VolumeDetail is one volume with the facts behind its condition.
type VolumeDetail struct {
	drivebay.VolumeView
	Facts     *drivebay.Facts           `json:"facts,omitempty"`     // includes its drives with their evidence
	Snapshots []drivebay.VolumeSnapshot `json:"snapshots,omitempty"` // snapshots of this volume
}

// Capacity is the capacity for a class of volumes.
type Capacity struct {
	drivebay.Capacity
	Snapshots bool `json:"snapshots"` // whether volumes of the class can have snapshots and clones
}

var errNoVolumes = failf(http.StatusNotImplemented, "not_supported", "this daemon watches drives and makes no volumes on them")

// volumeHandlers answer the calls about volumes and snapshots.
type volumeHandlers struct{ *Server }

// engineOfVolumes returns the volume engine, or an error if the daemon has none.
func (s volumeHandlers) engineOfVolumes() (Volumes, error) {
	if s.opt.Volumes == nil {
		return nil, errNoVolumes
	}
	return s.opt.Volumes, nil
}

// volumeSet returns the newest set of volumes, or an error before the first listing.
func (s volumeHandlers) volumeSet() (*drivebay.VolumeSet, error) {
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

func (s volumeHandlers) volumes(w http.ResponseWriter, r *http.Request) error {
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

// wantedVolumes returns the newest set, or with ?after=SEQ&wait=TIME the first one with another
// number.
func (s volumeHandlers) wantedVolumes(r *http.Request) (*drivebay.VolumeSet, error) {
	engine, err := s.engineOfVolumes()
	if err != nil {
		return nil, err
	}
	after, wait, err := waitOf(r)
	if err != nil {
		return nil, err
	}
	if wait > 0 {
		ctx, cancel := s.patience(r, wait)
		defer cancel()
		if _, err := engine.WaitVolumes(ctx, after); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	return s.volumeSet() // the present one if nothing has changed within the time
}

func (s volumeHandlers) volume(w http.ResponseWriter, r *http.Request) error {
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

// room answers with ?leave=DRIVE or ?size=BYTES whether a volume has room.
func (s volumeHandlers) room(w http.ResponseWriter, r *http.Request) error {
	v, err := s.findVolume(r.PathValue("id"))
	if err != nil {
		return err
	}
	q := drivebay.RoomQuery{Leave: r.FormValue("leave")}
	if text := r.FormValue("size"); text != "" {
		q.Size, err = strconv.ParseUint(text, 10, 64)
	}
	if err != nil || (q.Leave == "") == (q.Size == 0) {
		return fmt.Errorf("%w: want leave=DRIVE or size=BYTES", drivebay.ErrInvalid)
	}
	room, err := s.opt.Volumes.Room(r.Context(), v.ID, q)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, room)
	return nil
}

// findVolume returns the volume with this id or name, or the only one with this beginning of either.
func (s volumeHandlers) findVolume(what string) (*drivebay.VolumeView, error) {
	set, err := s.volumeSet()
	if err != nil {
		return nil, err
	}
	return set.Resolve(what)
}

func (s volumeHandlers) capacity(w http.ResponseWriter, r *http.Request) error {
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
	writeJSON(w, http.StatusOK, Capacity{c, class.Backing == drivebay.BackingThin && engine.Capabilities().Snapshots})
	return nil
}

// single returns the values of a query in which every key occurs once.
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
