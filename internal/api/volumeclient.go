package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/drivebay/drivebay"
)

// Volumes returns all volumes and snapshots.
func (c *Client) Volumes(ctx context.Context) (*drivebay.VolumeSet, error) {
	return get[*drivebay.VolumeSet](ctx, c, volumesPath, nil)
}

// WaitVolumes returns Volumes once the number of the set differs from after.
func (c *Client) WaitVolumes(ctx context.Context, after uint64) (*drivebay.VolumeSet, error) {
	for {
		s, err := get[*drivebay.VolumeSet](ctx, c, volumesPath, polling(after))
		if err != nil || s.Seq != after {
			return s, err
		}
	}
}

// Volume returns one volume with its facts, by id, name, or the start of its id.
func (c *Client) Volume(ctx context.Context, what string) (*VolumeDetail, error) {
	return get[*VolumeDetail](ctx, c, volumePath(what, ""), nil)
}

// CreateVolume creates a volume, or returns the existing one with this name.
func (c *Client) CreateVolume(ctx context.Context, b VolumeBody) (drivebay.Volume, error) {
	if err := c.maySend(b.Passphrase); err != nil {
		return drivebay.Volume{}, err
	}
	return send[drivebay.Volume](ctx, c, http.MethodPost, volumesPath, b)
}

// DeleteVolume wipes and removes a volume, by its whole id or name.
func (c *Client) DeleteVolume(ctx context.Context, what string) error {
	_, err := c.do(ctx, http.MethodDelete, volumePath(what, ""), nil)
	return err
}

// ExpandVolume grows a volume to a size in bytes. An encrypted volume in use needs its passphrase
// to complete the growth.
func (c *Client) ExpandVolume(ctx context.Context, what string, size uint64, p Passphrase) (drivebay.Volume, error) {
	if err := c.maySend(p); err != nil {
		return drivebay.Volume{}, err
	}
	return send[drivebay.Volume](ctx, c, http.MethodPost, volumePath(what, "/expand"), expandBody{size, p})
}

// ScrubVolume starts a check of the filesystem.
func (c *Client) ScrubVolume(ctx context.Context, what string) error {
	return c.post(ctx, volumePath(what, "/scrub"), struct{}{})
}

// HealVolume repairs the faults that prevent the use of a volume.
func (c *Client) HealVolume(ctx context.Context, what string, b HealBody) (drivebay.HealReport, error) {
	if err := c.maySend(b.Passphrase); err != nil {
		return drivebay.HealReport{}, err
	}
	return send[drivebay.HealReport](ctx, c, http.MethodPost, volumePath(what, "/heal"), b)
}

// RetryVolume retries failed work now.
func (c *Client) RetryVolume(ctx context.Context, what string) error {
	return c.post(ctx, volumePath(what, "/retry"), struct{}{})
}

// ClearVolume clears a failure and gives up the failed work.
func (c *Client) ClearVolume(ctx context.Context, what string) error {
	return c.post(ctx, volumePath(what, "/clear"), struct{}{})
}

// MoveBeforeUse sets whether a volume on a drive that has to leave is moved before it is staged again.
func (c *Client) MoveBeforeUse(ctx context.Context, what string, on bool) error {
	return c.post(ctx, volumePath(what, "/move-before-use"), switchBody{&on})
}

// ReleaseVolume releases a volume on a drive that has to leave, so that the drive does not wait
// for it.
func (c *Client) ReleaseVolume(ctx context.Context, what string) error {
	return c.post(ctx, volumePath(what, "/release"), struct{}{})
}

// AcceptLoss lets a volume move to another drive without the data that cannot be read, by its
// whole id or name.
func (c *Client) AcceptLoss(ctx context.Context, what string) error {
	return c.post(ctx, volumePath(what, "/accept-loss"), struct{}{})
}

// ForgetVolume drops the record of a volume whose drives are gone, by its whole id
// or name.
func (c *Client) ForgetVolume(ctx context.Context, what string) error {
	return c.post(ctx, volumePath(what, "/forget"), struct{}{})
}

// AdoptVolume adopts a volume that was found on a drive that is not claimed, by its whole id.
func (c *Client) AdoptVolume(ctx context.Context, id string) error {
	return c.post(ctx, volumePath(id, "/adopt"), struct{}{})
}

// Snapshots returns the snapshots of all volumes.
func (c *Client) Snapshots(ctx context.Context) ([]drivebay.VolumeSnapshot, error) {
	list, err := get[SnapshotList](ctx, c, "/api/v1/snapshots", nil)
	return list.Snapshots, err
}

// CreateSnapshot creates a snapshot of the present content of a volume.
func (c *Client) CreateSnapshot(ctx context.Context, volume, name string) (drivebay.VolumeSnapshot, error) {
	return send[drivebay.VolumeSnapshot](ctx, c, http.MethodPost, volumePath(volume, "/snapshots"), snapshotBody{name})
}

// DeleteSnapshot removes a snapshot, by its whole id or name.
func (c *Client) DeleteSnapshot(ctx context.Context, what string) error {
	_, err := c.do(ctx, http.MethodDelete, "/api/v1/snapshots/"+url.PathEscape(what), nil)
	return err
}

// ForgetSnapshot drops the record of a snapshot whose drive is gone, by its whole id
// or name.
func (c *Client) ForgetSnapshot(ctx context.Context, what string) error {
	return c.post(ctx, "/api/v1/snapshots/"+url.PathEscape(what)+"/forget", struct{}{})
}

// Room returns whether a volume has room to grow, or to leave a drive.
func (c *Client) Room(ctx context.Context, id string, q drivebay.RoomQuery) (drivebay.VolumeRoom, error) {
	query := url.Values{}
	if q.Leave != "" {
		query.Set("leave", q.Leave)
	} else {
		query.Set("size", fmt.Sprint(q.Size))
	}
	return get[drivebay.VolumeRoom](ctx, c, volumePath(id, "/room"), query)
}

// Capacity returns the capacity for a class of volumes.
func (c *Client) Capacity(ctx context.Context, parameters map[string]string) (Capacity, error) {
	q := url.Values{}
	for k, v := range parameters {
		q.Set(k, v)
	}
	return get[Capacity](ctx, c, "/api/v1/capacity", q)
}

const volumesPath = "/api/v1/volumes"

func volumePath(what, rest string) string { return volumesPath + "/" + url.PathEscape(what) + rest }

// send sends a body and decodes the answer.
func send[T any](ctx context.Context, c *Client, method, path string, body any) (out T, err error) {
	b, err := json.Marshal(body)
	if err != nil {
		return out, fmt.Errorf("%s: %w", c.url, err)
	}
	answer, err := c.do(ctx, method, path, b)
	if err != nil {
		return out, err
	}
	return decode[T](c, answer)
}
