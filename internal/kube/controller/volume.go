package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (c *Controller) volumeRequests() requests[*v1alpha1.Volume] {
	return requests[*v1alpha1.Volume]{c: c, api: c.opt.Objects, store: c.objects.store, kind: "volume", asked: translate.AskedOfVolume,
		released: func(o *v1alpha1.Volume) *v1alpha1.Volume {
			spec := *o.Spec.DeepCopy()
			spec.Release, spec.Attempt, spec.Task = v1alpha1.ReleaseDelete, spec.Attempt+1, nil
			return &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: client.Labels(spec.Node)}, Spec: spec}
		}}
}

// CreateVolume requests a volume from a node, or returns the existing one. It drops the secrets of the request: an
// object would show them to everyone who may read it, and keep them in the store and the backups of the API server.
func (c *Controller) CreateVolume(ctx context.Context, r drivebay.VolumeRequest) (drivebay.Volume, error) {
	if err := c.mayWrite(); err != nil {
		return drivebay.Volume{}, err
	}
	r.Secrets = nil
	id := drivebay.VolumeID(r.Name)
	call := creation{c: c, request: r, refused: map[string]bool{}}
	if o, _ := c.objects.get(id); o == nil && r.Source != (drivebay.Source{}) { // as on a node, that it is missing comes first
		if _, err := call.node(ctx); err != nil {
			return drivebay.Volume{}, err
		}
	}
	if err := r.Check(); err != nil {
		return drivebay.Volume{}, err
	}
	end, err := c.begin(id)
	if err != nil {
		return drivebay.Volume{}, err
	}
	defer end()
	o, err := c.volumes.drive(ctx, id, &call)
	if err != nil {
		return drivebay.Volume{}, err
	}
	return translate.View(o).Volume, nil
}

// DeleteVolume requests that a node deletes a volume.
func (c *Controller) DeleteVolume(ctx context.Context, id string) error {
	return remove(ctx, &c.volumes, id)
}

// remove requests that a node deletes a volume or snapshot.
func remove[P wanted](ctx context.Context, m *requests[P], id string) error {
	if err := m.c.mayWrite(); err != nil {
		return err
	}
	end, err := m.c.begin(id)
	if err != nil {
		return err
	}
	defer end()
	_, err = m.drive(ctx, id, &deletion[P]{m: m})
	return err
}

// ExpandVolume requests that a node grows a volume.
func (c *Controller) ExpandVolume(ctx context.Context, id string, r drivebay.SizeRange) (v drivebay.Volume, node bool, err error) {
	if err := c.mayWrite(); err != nil {
		return v, false, err
	}
	end, err := c.begin(id)
	if err != nil {
		return v, false, err
	}
	defer end()
	o, err := c.volumes.drive(ctx, id, growth{c, r})
	if err != nil {
		return v, false, err
	}
	v = translate.View(o).Volume
	// The size of a filesystem and of an open LUKS device follows on the node (volume/internal/device, GrowsInUse).
	return v, v.HasFilesystem() || v.Encrypted(), nil
}

// creation is CreateVolume.
type creation struct {
	c       *Controller
	request drivebay.VolumeRequest
	refused map[string]bool // nodes that have refused it in this call
	last    error           // the last refusal
}

func (k *creation) next(o *v1alpha1.Volume, asked int64) (step, error) {
	return volumeStateOf(o).create(k.request, asked)
}

// node returns the node to ask: that of the source, which alone can copy it, and else one with room.
func (k *creation) node(ctx context.Context) (node string, err error) {
	r := &k.request
	var fs string // of the source
	switch {
	case r.Source.Snapshot != "":
		o, err := sourceOf(ctx, &k.c.snapshots, r.Source.Snapshot)
		if err != nil {
			return "", fmt.Errorf("create volume %q: source: %w", r.Name, err)
		}
		node, fs = o.Spec.Node, o.Status.FSType
	case r.Source.Volume != "":
		o, err := sourceOf(ctx, &k.c.volumes, r.Source.Volume)
		if err != nil {
			return "", fmt.Errorf("create volume %q: source: %w", r.Name, err)
		}
		node, fs = o.Spec.Node, translate.View(o).FSType
	default:
		class := r.Class
		class.FSType = r.Filesystem()
		return choose(k.c.nodes.sites(r.Nodes, class), *r, k.refused)
	}
	if fs != "" && !r.Block { // the spec of the object has one filesystem: that of the copy
		if r.FSType != "" && r.FSType != fs {
			return "", fmt.Errorf("create volume %q: %w: the copy of a volume with %s has no %s", r.Name, drivebay.ErrInvalid, fs, r.FSType)
		}
		r.Class.FSType = fs
	}
	switch {
	case r.Nodes != nil && !slices.Contains(r.Nodes, node):
		return "", fmt.Errorf("create volume %q: %w: its source is on node %s, where the volume may not be: a copy is made beside its source", r.Name, drivebay.ErrNoSpace, node)
	case k.refused[node]:
		return "", k.last
	}
	return node, nil
}

// sourceOf returns the object of a volume or snapshot that a new one is to be made of.
func sourceOf[P wanted](ctx context.Context, m *requests[P], id string) (none P, err error) {
	o, _ := m.store.get(id)
	if o == none && isID(id) { // the cache may be behind
		if o, err = m.newest(ctx, id); err != nil {
			return none, err
		}
	}
	if o == none {
		return none, m.c.Missing(id)
	}
	if why := m.c.nodes.down(m.asked(o).Node); why != "" {
		s := stateOf(m.asked(o))
		return none, s.errorf(drivebay.ErrUnavailable, "%s", why)
	}
	return o, nil
}

// without requests the volume from a node. If a person has deleted an object that its node had not refused, in this call or
// before it, that node may be making the volume: it is asked again, and no other.
func (k *creation) without(ctx context.Context, id string, seen *v1alpha1.Volume) (*v1alpha1.Volume, error) {
	node := k.c.objects.lostOn(id)
	if seen != nil && seen.Status.Phase != v1alpha1.VolumeReleased {
		node = seen.Spec.Node
	}
	if node == "" || k.c.nodes.gone(node) {
		var err error
		if node, err = k.node(ctx); err != nil {
			return nil, cmp.Or(k.last, err) // what a node says is more exact than what it has reported before
		}
	}
	o := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: id, Labels: client.Labels(node)}, Spec: translate.SpecOf(k.request, node)}
	o.Spec.Attempt = 1
	return k.c.volumes.make(ctx, o)
}

// change asks the node again, or to take back what the call does not want there: CreateVolume has never returned it.
func (k *creation) change(o *v1alpha1.Volume) map[string]any {
	if len(k.request.Nodes) > 0 && !slices.Contains(k.request.Nodes, o.Spec.Node) {
		return map[string]any{"release": v1alpha1.ReleaseDelete}
	}
	return map[string]any{}
}

// takeBack removes a deletion that the node has refused: it would be tried again with the next change of the spec.
func (k *creation) takeBack(*v1alpha1.Volume) map[string]any { return map[string]any{"release": nil} }

// replacing lets another node be asked if this one has no room. Any other refusal is the answer, unless it is
// older than the call.
func (k *creation) replacing(o *v1alpha1.Volume, err error, asked int64) error {
	if asked != o.Generation {
		return nil
	}
	k.refused[o.Spec.Node], k.last = true, err
	if errors.Is(err, drivebay.ErrNoSpace) || errors.Is(err, drivebay.ErrRange) {
		return nil
	}
	return err
}

// growth is ExpandVolume.
type growth struct {
	c    *Controller
	size drivebay.SizeRange
}

func (k growth) next(o *v1alpha1.Volume, asked int64) (step, error) {
	return volumeStateOf(o).expand(k.size, asked)
}

func (k growth) without(_ context.Context, id string, _ *v1alpha1.Volume) (*v1alpha1.Volume, error) {
	return nil, k.c.Missing(id)
}

func (k growth) change(*v1alpha1.Volume) map[string]any {
	size := map[string]any{"required": k.size.Required, "limit": nil}
	if k.size.Limit > 0 {
		size["limit"] = k.size.Limit
	}
	return map[string]any{"size": size}
}

func (growth) takeBack(o *v1alpha1.Volume) map[string]any {
	return map[string]any{"size": map[string]any{"required": o.Status.Capacity, "limit": nil}}
}

func (growth) replacing(*v1alpha1.Volume, error, int64) error { return nil }

// moveObjects gives the objects of volumes to the nodes that are to adopt them, once their own nodes have given up
// their records or are down. It moves no data: a node adopts only what is on its drives.
func (c *Controller) moveObjects(ctx context.Context) {
	if c.follower.Load() != nil {
		return
	}
	for _, o := range c.objects.leaving(c.nodes.down) {
		end, err := c.begin(o.Name)
		if err != nil {
			continue // the next look comes for it
		}
		if err := c.moveObject(ctx, o); err != nil {
			c.opt.Log.Warn("the object of a volume is not moved to the node that is to adopt it", "op", "kube", "volume", o.Name, "node", o.Spec.Adopt, "err", err)
		}
		end()
	}
}

func (c *Controller) moveObject(ctx context.Context, o *v1alpha1.Volume) error {
	spec := *o.Spec.DeepCopy()
	spec.Node, spec.Attempt, spec.Heal, spec.Forget, spec.ReleaseFrom, spec.Task = spec.Adopt, 0, "", "", "", nil // what was for the other node is not for this one
	if err := c.opt.Objects.DeleteExact(ctx, o); err != nil {
		return err
	}
	c.objects.drop(o)
	made, err := c.opt.Objects.Create(ctx, &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: client.Labels(spec.Node)}, Spec: spec}, client.ControllerOwner)
	if err != nil {
		return fmt.Errorf("set spec.adopt again: %w", err) // the node shows the volume as found
	}
	c.objects.put(made)
	return nil
}

// leaving returns the objects of volumes that another node is to adopt, and can. A node that has refused to give up a volume has its
// drives: that it is down for a while moves nothing.
func (s *objects) leaving(down func(node string) string) (out []*v1alpha1.Volume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.byID {
		if o.Spec.Adopt != "" && o.Spec.Adopt != o.Spec.Node && o.Spec.Release == "" && (o.Status.Phase == v1alpha1.VolumeMoved || o.Status.Adopt != o.Spec.Adopt && down(o.Spec.Node) != "") {
			out = append(out, o)
		}
	}
	return out
}
