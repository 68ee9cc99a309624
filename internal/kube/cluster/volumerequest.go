package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/drives"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumeRequests are the requests of a person in the spec of a Volume.
type volumeRequests struct{ cluster *Cluster }

// patch writes a field of the spec of a Volume; nil removes it.
func (r volumeRequests) patch(ctx context.Context, o *v1alpha1.Volume, field string, value any) (*v1alpha1.Volume, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	out, err := r.cluster.volumes.PatchSpec(ctx, o.Name, o.UID, map[string]any{field: value}, owner)
	return out, r.cluster.explain(fmt.Sprintf("write spec.%s of Volume %s", field, o.Name), err)
}

func (r volumeRequests) read(ctx context.Context, id string) (*v1alpha1.Volume, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	o, err := r.cluster.volumes.Get(ctx, id)
	return o, r.cluster.explain("read Volume "+id, err)
}

// MoveBeforeUse requests of the node of a volume that it moves before it is staged again whenever its drive has to leave.
func (r volumeRequests) MoveBeforeUse(ctx context.Context, id string, on bool) error {
	o, err := r.read(ctx, id)
	if err == nil {
		_, err = r.patch(ctx, o, "moveBeforeUse", on)
	}
	return err
}

// AdoptVolume requests of the node that shows a volume as found that it adopts the volume.
func (r volumeRequests) AdoptVolume(ctx context.Context, id string) error {
	o, err := r.read(ctx, id)
	if err != nil {
		return err
	}
	if o.Status.Phase != v1alpha1.VolumeFound {
		return fmt.Errorf("volume %s: %w: its phase is %s; only a volume that is found on drives and in no record of its node can be adopted", id, drivebay.ErrInvalid, o.Status.Phase)
	}
	return r.request(ctx, o, "adopt", o.Spec.Node, func(o *v1alpha1.Volume) (error, bool) {
		if o.Status.Phase == v1alpha1.VolumeMade {
			return nil, true
		}
		return translate.Error(o.Status.Error), o.Status.Error != nil && o.Status.ObservedGeneration == o.Generation
	})
}

// ForgetVolume requests of the node of a volume that it gives up its record, because the drive is gone for good.
func (r volumeRequests) ForgetVolume(ctx context.Context, id string) error {
	o, err := r.read(ctx, id)
	if err != nil {
		return err
	}
	if len(o.Status.Location.Drives) == 0 {
		return fmt.Errorf("volume %s: %w: it is on no drive", id, drivebay.ErrInvalid)
	}
	return r.request(ctx, o, "forget", o.Status.Location.Drives[0], answerOf(v1alpha1.VolumeForgotten, func(o *v1alpha1.Volume) string { return o.Status.Forget }))
}

// ReleaseVolume requests of the node of a volume that its leaving drive does not wait for it.
func (r volumeRequests) ReleaseVolume(ctx context.Context, id string) error {
	o, err := r.read(ctx, id)
	if err != nil {
		return err
	}
	if len(o.Status.Location.Drives) == 0 {
		return fmt.Errorf("volume %s: %w: it is on no drive", id, drivebay.ErrInvalid)
	}
	s := r.cluster.Snapshot()
	i := slices.IndexFunc(o.Status.Location.Drives, func(id string) bool {
		d, ok := s.Get(drives.ObjectName(id, o.Spec.Node))
		return ok && d.Usage != drivebay.UsageInUse
	})
	return r.request(ctx, o, "releaseFrom", o.Status.Location.Drives[max(i, 0)], // the node says that none leaves
		answerOf(v1alpha1.VolumeReleasedFrom, func(o *v1alpha1.Volume) string { return o.Status.ReleaseFrom }))
}

// answerOf returns how the answer to a request that names a drive is read: in a condition, once the node has answered.
func answerOf(condition string, answered func(*v1alpha1.Volume) string) func(*v1alpha1.Volume) (error, bool) {
	return func(o *v1alpha1.Volume) (error, bool) {
		c := meta.FindStatusCondition(o.Status.Conditions, condition)
		if c == nil || c.ObservedGeneration < o.Generation || answered(o) == "" {
			return nil, false
		}
		if c.Status == metav1.ConditionTrue {
			return nil, true
		}
		return translate.Error(&v1alpha1.VolumeError{Code: c.Reason, Message: c.Message}), true
	}
}

// request writes a field and waits for the answer of the node. A field that has the value already is removed first: a node
// acts on a field when it changes.
func (r volumeRequests) request(ctx context.Context, o *v1alpha1.Volume, field, value string, answer func(*v1alpha1.Volume) (error, bool)) error {
	if why := r.cluster.downOf(o.Spec.Node); why != "" {
		return fmt.Errorf("volume %s: %w: %s", o.Name, drivebay.ErrUnavailable, why)
	}
	if map[string]string{"adopt": o.Spec.Adopt, "forget": o.Spec.Forget, "releaseFrom": o.Spec.ReleaseFrom}[field] == value {
		generation := o.Generation
		var err error
		if o, err = r.patch(ctx, o, field, nil); err != nil {
			return err
		}
		if err = r.await(ctx, o, field, func(o *v1alpha1.Volume) (error, bool) { return nil, o.Status.ObservedGeneration > generation }); err != nil {
			return err
		}
	}
	o, err := r.patch(ctx, o, field, value)
	if err != nil {
		return err
	}
	return r.await(ctx, o, field, answer)
}

// await reads the object of a volume until the node has answered. With the record of a volume that
// is to be deleted, the node deletes the object as well.
func (r volumeRequests) await(ctx context.Context, o *v1alpha1.Volume, field string, answer func(*v1alpha1.Volume) (error, bool)) error {
	answered, err := poll(ctx, answerTime, func() (ended bool, err error) {
		now, err := r.read(ctx, o.Name)
		if err != nil {
			return true, err
		}
		o = now
		err, ended = answer(o)
		return ended, err
	})
	switch {
	case errors.Is(err, drivebay.ErrNotFound) && field == "forget":
		return nil
	case answered || err != nil:
		return err
	}
	return fmt.Errorf("volume %s: %s: %w: node %s has not answered within %v%s; the request stays in the spec of the Volume", o.Name, field, drivebay.ErrTimeout, o.Spec.Node, answerTime, waitsOf(o))
}

// waitsOf says what the node waits for.
func waitsOf(o *v1alpha1.Volume) string {
	for _, c := range o.Status.Conditions {
		if (c.Type == v1alpha1.VolumeForgotten || c.Type == v1alpha1.VolumeReleasedFrom) && c.Status == metav1.ConditionFalse {
			return ": " + c.Message
		}
	}
	return ""
}
