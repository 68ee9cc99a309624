package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// requests are the calls that change the objects of a kind.
type requests[P wanted] struct {
	c   *Controller
	api interface {
		Get(ctx context.Context, name string) (P, error)
		Create(ctx context.Context, object P, owner string) (P, error)
		PatchExact(ctx context.Context, object P, spec any, owner string) (P, error)
		DeleteExact(ctx context.Context, object P) error
	}
	store *store[P]
	kind  string
	asked func(P) translate.Asked
	// released returns a new object that requests the deletion of what an object has, from the same node.
	released func(P) P
}

// call is one of the calls that change a volume or snapshot.
type call[P wanted] interface {
	// next decides about the object; asked is the generation whose answer is the answer to this call.
	next(o P, asked int64) (step, error)
	// without decides about an id without an object: it makes one, or returns what the call returns. seen is the last
	// version of an object that was deleted during the call, by its node or by a person; nil: there was none.
	without(ctx context.Context, id string, seen P) (made P, err error)
	// change is the change of the spec by which the node is asked.
	change(o P) map[string]any
	// takeBack is the change that takes the request back.
	takeBack(o P) map[string]any
	// replacing notes that an object that its node has refused is being deleted.
	replacing(o P, err error, asked int64) error
}

// drive does the steps of a call until it is done, or ctx ends. What happened before, also in another controller,
// is in the object.
func (m *requests[P]) drive(ctx context.Context, id string, k call[P]) (P, error) {
	defer m.store.follow(id)()
	var none, seen P
	var asked request
	if o, _ := m.store.get(id); o == none && isID(id) { // the cache may be behind
		if _, err := m.newest(ctx, id); err != nil {
			return none, err
		}
	}
	for {
		if err := m.c.mayWrite(); err != nil {
			return none, err // another controller leads, and goes on
		}
		o, changed := m.store.get(id)
		if o == none {
			if seen != none {
				seen = m.store.final(seen)
			}
			made, err := k.without(ctx, id, seen)
			if made == none {
				return none, err
			}
			m.store.put(made)
			continue
		}
		seen = o
		if s := m.asked(o); asked.uid != o.GetUID() {
			if asked = (request{uid: o.GetUID()}); !s.Answered() {
				asked.generation = o.GetGeneration() // the answer will come after this call began
			}
		}
		next, err := k.next(o, asked.generation)
		switch next {
		case stepDone:
			if err := m.shown(o); err != nil {
				return none, err
			}
			return o, nil
		case stepFail:
			return none, err
		case stepTakeBack:
			if back, failed := m.api.PatchExact(ctx, o, k.takeBack(o), client.ControllerOwner); failed == nil {
				m.store.put(back)
			}
			return none, err // a request that is answered and stays is not tried again
		case stepReplace:
			if seen, err = none, m.replace(ctx, o, k, err, asked.generation); err != nil {
				return none, err
			}
		case stepRequest:
			if err := m.request(ctx, o, k, &asked); err != nil {
				return none, err
			}
		case stepWait:
			if err := m.await(ctx, o, changed); err != nil {
				return none, err
			}
		}
	}
}

// shown returns an error unless an object shows what its node has now: no call is acknowledged from an object that may be old, as
// none is from a record alone on the node.
func (m *requests[P]) shown(o P) error {
	s := stateOf(m.asked(o))
	if why := cmp.Or(m.c.nodes.down(s.Node), m.c.nodes.old(s.Node, s.ID)); why != "" {
		return s.errorf(drivebay.ErrUnavailable, "%s", why)
	}
	if s.Phase != v1alpha1.VolumeMade {
		return s.errorf(drivebay.ErrUnavailable, "it is %s on node %s", s.Phase, s.Node)
	}
	return nil
}

// request is a version of a spec to which the answer of the node is the answer to a call.
type request struct {
	uid        types.UID
	generation int64
}

// replace deletes an object that its node has refused, if it is still that version.
func (m *requests[P]) replace(ctx context.Context, o P, k call[P], refusal error, asked int64) error {
	answer := k.replacing(o, refusal, asked)
	err := m.api.DeleteExact(ctx, o)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		m.store.drop(o)
	case apierrors.IsConflict(err):
		return m.reread(ctx, o)
	default:
		return m.apiError("delete its refused object", o.GetName(), err)
	}
	return answer
}

// request changes the spec of an object, if it is still that version.
func (m *requests[P]) request(ctx context.Context, o P, k call[P], asked *request) error {
	change := k.change(o)
	change["attempt"] = m.asked(o).Attempt + 1
	changed, err := m.api.PatchExact(ctx, o, change, client.ControllerOwner)
	switch {
	case err == nil:
		m.store.put(changed)
		asked.generation = changed.GetGeneration()
		return nil
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return m.reread(ctx, o)
	}
	return m.apiError("request", o.GetName(), err)
}

// make makes an object, or returns the one that is there by now: made by another controller, by its node, or by a
// request whose answer was lost.
func (m *requests[P]) make(ctx context.Context, o P) (P, error) {
	var none P
	made, err := m.api.Create(ctx, o, client.ControllerOwner)
	switch {
	case err == nil:
		return made, nil
	case !apierrors.IsAlreadyExists(err):
		return none, m.apiError("request it from node "+m.asked(o).Node, o.GetName(), err)
	}
	if made, err = m.newest(ctx, o.GetName()); err == nil && made == none {
		err = fmt.Errorf("%s %s: %w: its object was deleted", m.kind, o.GetName(), drivebay.ErrUnavailable)
	}
	return made, err
}

// newest returns an object as the API server has it, nil if it has none.
func (m *requests[P]) newest(ctx context.Context, id string) (none P, err error) {
	o, err := m.api.Get(ctx, id)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, m.apiError("read its object", id, err)
	}
	m.store.put(o)
	return o, nil
}

// reread brings the cache up to date with an object that has changed.
func (m *requests[P]) reread(ctx context.Context, o P) error {
	var none P
	newer, err := m.newest(ctx, o.GetName())
	if newer == none && err == nil {
		m.store.drop(o)
	}
	return err
}

// await waits until an object changes.
func (m *requests[P]) await(ctx context.Context, o P, changed <-chan struct{}) error {
	s := stateOf(m.asked(o))
	if why := m.c.nodes.down(s.Node); why != "" {
		return s.errorf(drivebay.ErrUnavailable, "%s", why)
	}
	select {
	case <-changed:
	case <-time.After(lookTime): // whether the node is down, and this controller leads
	case <-ctx.Done():
		if s.err != nil {
			return fmt.Errorf("%w: the node tries again: %w", ctx.Err(), s.err)
		}
		return s.errorf(ctx.Err(), "node %s has not answered yet", s.Node)
	}
	return nil
}

// apiError translates an error of the API server: a call may try again after any of them.
func (m *requests[P]) apiError(what, id string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s %s: %s: %w", m.kind, id, what, err)
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%s %s: %s: %w: %w", m.kind, id, what, drivebay.ErrRefused, err)
	}
	return fmt.Errorf("%s %s: %s: %w: %w", m.kind, id, what, drivebay.ErrUnavailable, err)
}

func (s *state) errorf(kind error, format string, args ...any) error {
	return fmt.Errorf("%s %s: %w: %s", s.Kind, s.ID, kind, fmt.Sprintf(format, args...))
}

// isID reports whether a text can be the id of a volume or snapshot.
func isID(id string) bool {
	return len(id) == len(drivebay.ShortHash("")) && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// deletion is DeleteVolume and DeleteSnapshot.
type deletion[P wanted] struct {
	m     *requests[P]
	again bool // the node was asked again because its object was gone
}

func (k *deletion[P]) next(o P, asked int64) (step, error) {
	return stateOf(k.m.asked(o)).delete(asked)
}

// without returns nil only if the node has said that nothing is left, or if every node could show what it has: an
// object that a person deletes takes its request with it, so the node is asked again. Once: a daemon of an earlier
// version deletes the object and says nothing.
func (k *deletion[P]) without(ctx context.Context, id string, seen P) (none P, err error) {
	if seen != none && k.m.asked(seen).Phase == v1alpha1.VolumeReleased {
		return none, nil
	}
	if seen != none && !k.again {
		k.again = true
		return k.m.make(ctx, k.m.released(seen))
	}
	if !isID(id) { // no volume or snapshot ever has it
		return none, nil
	}
	if err := k.m.c.Missing(id); !errors.Is(err, drivebay.ErrNotFound) {
		return none, err
	}
	return none, nil
}

func (*deletion[P]) change(P) map[string]any {
	return map[string]any{"release": v1alpha1.ReleaseDelete}
}

func (*deletion[P]) takeBack(P) map[string]any       { return map[string]any{"release": nil} }
func (*deletion[P]) replacing(P, error, int64) error { return nil }
