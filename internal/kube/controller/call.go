package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// call is one of the calls that change a volume.
type call interface {
	// next decides about the object; asked is the generation whose answer is the answer to this call.
	next(s state, asked int64) (step, error)
	// without decides about a volume without an object: it makes one, or returns what the call returns.
	without(ctx context.Context, c *Controller, id string) (made *v1alpha1.Volume, err error)
	// change is the change of the spec by which the node is asked.
	change(o *v1alpha1.Volume) map[string]any
	// takeBack is the change that takes the request back.
	takeBack(o *v1alpha1.Volume) map[string]any
	// replacing notes that an object that its node has refused is being deleted.
	replacing(o *v1alpha1.Volume, err error, asked int64) error
}

// drive does the steps of a call until it is done, or ctx ends. What happened before, also in another controller,
// is in the object.
func (c *Controller) drive(ctx context.Context, id string, k call) (*v1alpha1.Volume, error) {
	var asked request
	if o, _ := c.objects.get(id); o == nil && isID(id) { // the cache may be behind
		if _, err := c.newest(ctx, id); err != nil {
			return nil, err
		}
	}
	for {
		if err := c.mayWrite(); err != nil {
			return nil, err // another controller leads, and goes on
		}
		o, changed := c.objects.get(id)
		if o == nil {
			made, err := k.without(ctx, c, id)
			if made == nil {
				return nil, err
			}
			c.objects.put(made)
			continue
		}
		s := stateOf(o)
		if asked.uid != o.UID {
			if asked = (request{uid: o.UID}); !s.answered() {
				asked.generation = o.Generation // the answer will come after this call began
			}
		}
		next, err := k.next(s, asked.generation)
		switch next {
		case stepDone:
			return o, nil
		case stepFail:
			return nil, err
		case stepTakeBack:
			if back, failed := c.opt.Objects.PatchExact(ctx, o, k.takeBack(o), client.ControllerOwner); failed == nil {
				c.objects.put(back)
			}
			return nil, err // a request that is answered and stays is not tried again
		case stepReplace:
			if err := c.replace(ctx, o, k, err, asked.generation); err != nil {
				return nil, err
			}
		case stepRequest:
			if err := c.request(ctx, o, k, &asked); err != nil {
				return nil, err
			}
		case stepWait:
			if err := c.await(ctx, o, changed); err != nil {
				return nil, err
			}
		}
	}
}

// request is a version of a spec to which the answer of the node is the answer to a call.
type request struct {
	uid        types.UID
	generation int64
}

// replace deletes an object that its node has refused, if it is still that version.
func (c *Controller) replace(ctx context.Context, o *v1alpha1.Volume, k call, refusal error, asked int64) error {
	answer := k.replacing(o, refusal, asked)
	err := c.opt.Objects.DeleteExact(ctx, o)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		c.objects.drop(o)
	case apierrors.IsConflict(err):
		return c.reread(ctx, o)
	default:
		return apiError("delete its refused object", o.Name, err)
	}
	return answer
}

// request changes the spec of an object, if it is still that version.
func (c *Controller) request(ctx context.Context, o *v1alpha1.Volume, k call, asked *request) error {
	change := k.change(o)
	change["attempt"] = o.Spec.Attempt + 1
	changed, err := c.opt.Objects.PatchExact(ctx, o, change, client.ControllerOwner)
	switch {
	case err == nil:
		c.objects.put(changed)
		asked.generation = changed.Generation
		return nil
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return c.reread(ctx, o)
	}
	return apiError("request", o.Name, err)
}

// reread brings the cache up to date with an object that has changed.
func (c *Controller) reread(ctx context.Context, o *v1alpha1.Volume) error {
	newer, err := c.newest(ctx, o.Name)
	if newer == nil && err == nil {
		c.objects.drop(o)
	}
	return err
}

// await waits until an object changes.
func (c *Controller) await(ctx context.Context, o *v1alpha1.Volume, changed <-chan struct{}) error {
	if why := c.nodes.down(o.Spec.Node); why != "" {
		return errorf(o, drivebay.ErrUnavailable, "%s", why)
	}
	select {
	case <-changed:
	case <-time.After(lookTime): // whether the node is down, and this controller leads
	case <-ctx.Done():
		if s := stateOf(o); s.err != nil {
			return fmt.Errorf("%w: the node tries again: %w", ctx.Err(), s.err)
		}
		return errorf(o, ctx.Err(), "node %s has not answered yet", o.Spec.Node)
	}
	return nil
}

// isID reports whether a text can be the id of a volume.
func isID(id string) bool {
	return len(id) == len(drivebay.ShortHash("")) && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// creation is CreateVolume.
type creation struct {
	request drivebay.VolumeRequest
	refused map[string]bool // nodes that have refused it in this call
	last    error           // the last refusal
}

func (k *creation) next(s state, asked int64) (step, error) { return s.create(k.request, asked) }

func (k *creation) without(ctx context.Context, c *Controller, id string) (*v1alpha1.Volume, error) {
	node, err := choose(c.nodes.sites(k.request.Nodes, k.request.Class), k.request, k.refused)
	if err != nil {
		if k.last != nil {
			return nil, k.last // what a node says is more exact than what it has reported before
		}
		return nil, err
	}
	o := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: id, Labels: client.Labels(node)}, Spec: translate.SpecOf(k.request, node)}
	o.Spec.Attempt = 1
	made, err := c.opt.Objects.Create(ctx, o, client.ControllerOwner)
	if apierrors.IsAlreadyExists(err) { // by another controller, or by a request whose answer was lost
		if made, err = c.newest(ctx, id); err == nil && made == nil {
			err = fmt.Errorf("volume %s: %w: its object was deleted", id, drivebay.ErrUnavailable)
		}
		return made, err
	}
	if err != nil {
		return nil, apiError("request it from node "+node, id, err)
	}
	return made, nil
}

// change asks the node again, or to take back what the call does not want there: CreateVolume has never returned it.
func (k *creation) change(o *v1alpha1.Volume) map[string]any {
	if len(k.request.Nodes) > 0 && !slices.Contains(k.request.Nodes, o.Spec.Node) {
		return map[string]any{"release": v1alpha1.ReleaseDelete}
	}
	return map[string]any{}
}

func (k *creation) takeBack(*v1alpha1.Volume) map[string]any { return nil } // create has no such step

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

// deletion is DeleteVolume.
type deletion struct{}

func (deletion) next(s state, asked int64) (step, error) { return s.delete(asked) }

func (deletion) without(_ context.Context, c *Controller, id string) (*v1alpha1.Volume, error) {
	if err := c.Missing(id); !errors.Is(err, drivebay.ErrNotFound) || errors.Is(err, drivebay.ErrUnavailable) {
		return nil, err
	}
	return nil, nil
}

func (deletion) change(*v1alpha1.Volume) map[string]any {
	return map[string]any{"release": v1alpha1.ReleaseDelete}
}

func (deletion) takeBack(*v1alpha1.Volume) map[string]any       { return map[string]any{"release": nil} }
func (deletion) replacing(*v1alpha1.Volume, error, int64) error { return nil }

// growth is ExpandVolume.
type growth struct{ size drivebay.SizeRange }

func (k growth) next(s state, asked int64) (step, error) { return s.expand(k.size, asked) }

func (growth) without(_ context.Context, c *Controller, id string) (*v1alpha1.Volume, error) {
	return nil, c.Missing(id)
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
