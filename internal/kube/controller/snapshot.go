package controller

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (c *Controller) snapshotRequests() requests[*v1alpha1.Snapshot] {
	return requests[*v1alpha1.Snapshot]{c: c, api: c.opt.Snapshots, store: c.objects.snapshots, kind: "snapshot", asked: translate.AskedOfSnapshot,
		released: func(o *v1alpha1.Snapshot) *v1alpha1.Snapshot {
			spec := o.Spec
			spec.Release, spec.Attempt = v1alpha1.ReleaseDelete, spec.Attempt+1
			return &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: client.Labels(spec.Node)}, Spec: spec}
		}}
}

// CreateSnapshot requests a snapshot from the node of the volume, or returns the existing one.
func (c *Controller) CreateSnapshot(ctx context.Context, name, volume string) (drivebay.VolumeSnapshot, error) {
	if err := c.mayWrite(); err != nil {
		return drivebay.VolumeSnapshot{}, err
	}
	id := drivebay.SnapshotID(name)
	end, err := c.begin(id)
	if err != nil {
		return drivebay.VolumeSnapshot{}, err
	}
	defer end()
	o, err := c.snapshots.drive(ctx, id, &capture{c, name, volume})
	if err != nil {
		return drivebay.VolumeSnapshot{}, err
	}
	return translate.SnapshotView(o), nil
}

// DeleteSnapshot requests that a node deletes a snapshot.
func (c *Controller) DeleteSnapshot(ctx context.Context, id string) error {
	return remove(ctx, &c.snapshots, id)
}

// capture is CreateSnapshot.
type capture struct {
	c            *Controller
	name, volume string
}

func (k *capture) next(o *v1alpha1.Snapshot, asked int64) (step, error) {
	return stateOf(translate.AskedOfSnapshot(o)).createSnapshot(o.Spec.Volume, k.volume, asked)
}

func (k *capture) without(ctx context.Context, id string, _ *v1alpha1.Snapshot) (*v1alpha1.Snapshot, error) {
	source, err := sourceOf(ctx, &k.c.volumes, k.volume)
	if err != nil {
		return nil, fmt.Errorf("snapshot %q: %w", k.name, err)
	}
	node := source.Spec.Node
	return k.c.snapshots.make(ctx, &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: id, Labels: client.Labels(node)},
		Spec: v1alpha1.SnapshotSpec{Node: node, Name: k.name, Volume: k.volume, Attempt: 1}})
}

func (*capture) change(*v1alpha1.Snapshot) map[string]any   { return map[string]any{} }
func (*capture) takeBack(*v1alpha1.Snapshot) map[string]any { return nil } // createSnapshot has no such step

// replacing returns the refusal, unless it is older than the call: no other node can make the snapshot.
func (*capture) replacing(o *v1alpha1.Snapshot, err error, asked int64) error {
	if asked != o.Generation {
		return nil
	}
	return err
}
