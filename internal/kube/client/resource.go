package client

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/drivebay/drivebay/api/v1alpha1"
)

// Object is a pointer to a T that is an object of Kubernetes.
type Object[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// List is a pointer to an L that is a list of objects.
type List[L any] interface {
	*L
	runtime.Object
}

// Resource is one kind of object of the cluster.
type Resource[T any, P Object[T], L any, PL List[L]] struct {
	rest       rest.Interface
	name, kind string
}

// Drives are the objects of kind Drive.
type Drives = Resource[v1alpha1.Drive, *v1alpha1.Drive, v1alpha1.DriveList, *v1alpha1.DriveList]

// NewDrives returns the resource of the drives.
func NewDrives(c rest.Interface) Drives { return Drives{c, "drives", "Drive"} }

// Volumes are the objects of kind Volume.
type Volumes = Resource[v1alpha1.Volume, *v1alpha1.Volume, v1alpha1.VolumeList, *v1alpha1.VolumeList]

// NewVolumes returns the resource of the volumes.
func NewVolumes(c rest.Interface) Volumes { return Volumes{c, "volumes", "Volume"} }

// Snapshots are the objects of kind Snapshot.
type Snapshots = Resource[v1alpha1.Snapshot, *v1alpha1.Snapshot, v1alpha1.SnapshotList, *v1alpha1.SnapshotList]

// NewSnapshots returns the resource of the snapshots.
func NewSnapshots(c rest.Interface) Snapshots { return Snapshots{c, "snapshots", "Snapshot"} }

// status is the subresource that the writers of a status write to.
const status = "status"

// Get returns an object by its name.
func (r Resource[T, P, L, PL]) Get(ctx context.Context, name string) (P, error) {
	out := P(new(T))
	return out, r.rest.Get().Resource(r.name).Name(name).Do(ctx).Into(out)
}

// List returns the objects that the options select.
func (r Resource[T, P, L, PL]) List(ctx context.Context, opt metav1.ListOptions) (PL, error) {
	out := PL(new(L))
	return out, r.rest.Get().Resource(r.name).VersionedParams(&opt, metav1.ParameterCodec).Do(ctx).Into(out)
}

// Watch returns the changes of the objects that the options select.
func (r Resource[T, P, L, PL]) Watch(ctx context.Context, opt metav1.ListOptions) (watch.Interface, error) {
	opt.Watch = true
	return r.rest.Get().Resource(r.name).VersionedParams(&opt, metav1.ParameterCodec).Watch(ctx)
}

// Create makes an object, and fails if there is one with its name.
func (r Resource[T, P, L, PL]) Create(ctx context.Context, object P, owner string) (P, error) {
	r.setKind(object)
	out := P(new(T))
	return out, r.rest.Post().Resource(r.name).Param("fieldManager", owner).Body(object).Do(ctx).Into(out)
}

// Delete deletes an object by its name, if it still has this UID.
func (r Resource[T, P, L, PL]) Delete(ctx context.Context, name string, uid types.UID) error {
	return r.delete(ctx, name, metav1.Preconditions{UID: &uid})
}

func (r Resource[T, P, L, PL]) delete(ctx context.Context, name string, only metav1.Preconditions) error {
	opt := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: &only}
	body, err := json.Marshal(opt)
	if err != nil {
		return err
	}
	return r.rest.Delete().Resource(r.name).Name(name).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Error()
}

// The owners of the fields of objects.
const (
	NodeOwner       = "drivebay-node"
	ControllerOwner = "drivebay-controller"
)

// DeleteExact deletes an object if it is still this version.
func (r Resource[T, P, L, PL]) DeleteExact(ctx context.Context, object P) error {
	uid, version := object.GetUID(), object.GetResourceVersion()
	return r.delete(ctx, object.GetName(), metav1.Preconditions{UID: &uid, ResourceVersion: &version})
}

// PatchExact changes the spec of an object if it is still this version: a JSON merge patch.
func (r Resource[T, P, L, PL]) PatchExact(ctx context.Context, object P, spec any, owner string) (P, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion()}, "spec": spec})
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", r.kind, object.GetName(), err)
	}
	out := P(new(T))
	return out, r.rest.Patch(types.MergePatchType).Resource(r.name).Name(object.GetName()).Param("fieldManager", owner).Body(body).Do(ctx).Into(out)
}

// PatchSpec changes fields of the spec of an object if it is still the same one: a JSON merge patch.
func (r Resource[T, P, L, PL]) PatchSpec(ctx context.Context, name string, uid types.UID, spec any, owner string) (P, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "spec": spec})
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", r.kind, name, err)
	}
	out := P(new(T))
	return out, r.rest.Patch(types.MergePatchType).Resource(r.name).Name(name).Param("fieldManager", owner).Body(body).Do(ctx).Into(out)
}

// Apply makes the metadata and the spec of an object those that the owner wants, and makes the object if there is
// none (server-side apply). What the owner had set and no longer sets is removed; the fields of other
// owners stay, unless they contradict.
func (r Resource[T, P, L, PL]) Apply(ctx context.Context, object P, owner string) (P, error) {
	return r.apply(ctx, object, owner)
}

// ApplyStatus does the same with the status of an object that is there.
func (r Resource[T, P, L, PL]) ApplyStatus(ctx context.Context, object P, owner string) (P, error) {
	return r.apply(ctx, object, owner, status)
}

func (r Resource[T, P, L, PL]) apply(ctx context.Context, object P, owner string, sub ...string) (P, error) {
	r.setKind(object)
	body, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", r.kind, object.GetName(), err)
	}
	out := P(new(T))
	return out, r.rest.Patch(types.ApplyPatchType).Resource(r.name).Name(object.GetName()).SubResource(sub...).
		Param("fieldManager", owner).Param("force", "true").Body(body).Do(ctx).Into(out)
}

func (r Resource[T, P, L, PL]) setKind(object P) {
	object.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(r.kind))
}

// ListWatch returns what a reflector needs to follow the objects that a label selector selects.
func (r Resource[T, P, L, PL]) ListWatch(selector string) *cache.ListWatch {
	with := func(opt metav1.ListOptions) metav1.ListOptions {
		opt.LabelSelector = selector
		return opt
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opt metav1.ListOptions) (runtime.Object, error) {
			return r.List(ctx, with(opt))
		},
		WatchFuncWithContext: func(ctx context.Context, opt metav1.ListOptions) (watch.Interface, error) {
			return r.Watch(ctx, with(opt))
		},
	}
}
