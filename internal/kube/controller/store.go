package controller

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// wanted is a pointer to an object of Kubernetes.
type wanted interface {
	comparable
	metav1.Object
}

// store holds the newest objects of a kind. A reflector writes them, and the answers of the API server to the
// controller's own writes.
type store[P wanted] struct {
	mu *sync.Mutex // shared by the kinds: the set is made of both
	// changed notes that an object has changed. The lock is held.
	changed func(id string)

	byID    map[string]P
	gone    client.Gone
	synced  bool
	waiting map[string]*waiting[P] // for objects, also those that are not there
	// lost are deleted objects that may come back: their nodes have not said that nothing is left.
	lost  map[string]lost
	asked func(P) translate.Asked
	// silent reports whether a node is down and may come back.
	silent func(node string) bool
}

// waiting are the calls that follow an object. It ends with the last of them.
type waiting[P wanted] struct {
	calls   int
	changed chan struct{} // closed when the object changes
	last    P             // the last version of the object if it was deleted
}

// lost is an object that was deleted.
type lost struct {
	node string
	at   time.Time
}

func newStore[P wanted](mu *sync.Mutex, changed func(string), asked func(P) translate.Asked, silent func(string) bool) *store[P] {
	return &store[P]{mu: mu, changed: changed, byID: map[string]P{}, waiting: map[string]*waiting[P]{}, lost: map[string]lost{}, asked: asked, silent: silent}
}

// follow has get return a channel, and final the last version of an object that is deleted, until end is called.
func (s *store[P]) follow(id string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting[id]
	if w == nil {
		w = &waiting[P]{changed: make(chan struct{})}
		s.waiting[id] = w
	}
	w.calls++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if w.calls--; w.calls == 0 {
			delete(s.waiting, id)
		}
	}
}

// get returns an object, nil if it is not known, and a channel that is closed when it changes; nil if no call follows it.
func (s *store[P]) get(id string) (o P, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.waiting[id]; w != nil {
		changed = w.changed
	}
	return s.byID[id], changed
}

// final returns the last version of an object that was deleted, and the object itself if that version is not known.
func (s *store[P]) final(o P) P {
	s.mu.Lock()
	defer s.mu.Unlock()
	var none P
	if w := s.waiting[o.GetName()]; w != nil && w.last != none && w.last.GetUID() == o.GetUID() {
		return w.last
	}
	return o
}

// lostAt returns when an object was deleted that may come back; zero: it is not known to have been.
func (s *store[P]) lostAt(id string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost[id].at
}

// lostOn returns the node of an object that was deleted and may come back; "": it is not known to have been.
func (s *store[P]) lostOn(id string) (node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost[id].node
}

// lostSilent returns why a volume or snapshot may exist whose object was deleted, "" if none may.
func (s *store[P]) lostSilent(silentOn func(node string, since time.Time) string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, l := range s.lost {
		if why := silentOn(l.node, l.at); why != "" {
			return fmt.Sprintf("%s has no object, and may exist: %s", id, why)
		}
	}
	return ""
}

// keepLost is how long it is remembered at least that an object was deleted: a node that is not down shows it again long before, and
// one that is gone for good never does.
const keepLost = 10 * time.Minute

// lose notes that an object is gone. The lock is held.
func (s *store[P]) lose(o P) {
	now := time.Now()
	maps.DeleteFunc(s.lost, func(_ string, l lost) bool { return now.Sub(l.at) > keepLost && !s.silent(l.node) })
	if is := stateOf(s.asked(o)); is.Phase != v1alpha1.VolumeReleased && !is.refused() {
		s.lost[o.GetName()] = lost{is.Node, now}
	}
}

// touch notes that an object has changed. The lock is held.
func (s *store[P]) touch(id string) {
	s.changed(id)
	if w := s.waiting[id]; w != nil {
		close(w.changed)
		w.changed = make(chan struct{})
	}
}

// put keeps an object unless a newer version is there.
func (s *store[P]) put(o P) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(o)
}

func (s *store[P]) putLocked(o P) {
	id := o.GetName()
	was, is := s.byID[id]
	if is && version(was) >= version(o) || !is && s.gone.Is(id, version(o)) {
		return
	}
	o.SetManagedFields(nil)
	s.byID[id] = o
	if w := s.waiting[id]; w != nil {
		var none P
		w.last = none
	}
	delete(s.lost, id)
	s.touch(id)
}

// drop removes an object that the API server does not have.
func (s *store[P]) drop(o P) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := o.GetName()
	was, is := s.byID[id]
	if is && was.GetUID() != o.GetUID() { // it is there again
		return
	}
	s.gone.Deleted(id, version(o))
	if is {
		if w := s.waiting[id]; w != nil {
			w.last = o
		}
		s.lose(o)
		s.gone.Deleted(id, version(was))
		delete(s.byID, id)
		s.touch(id)
	}
}

// version is the number of a change of the cluster (KEP-5504, comparable resource versions).
func version[P wanted](o P) uint64 {
	n, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64) // 0 if it is not a number
	return n
}

// The methods of cache.ReflectorStore.

func (s *store[P]) Add(o any) error    { s.put(o.(P)); return nil }
func (s *store[P]) Update(o any) error { s.put(o.(P)); return nil }
func (s *store[P]) Delete(o any) error { s.drop(o.(P)); return nil }
func (s *store[P]) Resync() error      { return nil }

// Replace takes a complete list of the objects.
func (s *store[P]) Replace(list []any, at string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = client.Gone{}
	there := make(map[string]bool, len(list))
	for _, o := range list {
		o := o.(P)
		there[o.GetName()] = true
		s.putLocked(o)
	}
	for id, o := range s.byID {
		if !there[id] {
			s.lose(o)
			delete(s.byID, id)
			s.touch(id)
		}
	}
	s.gone.Listed(at)
	s.synced = true
	return nil
}

// Transformer drops what the controller does not read before a list is complete: the owners of the fields are
// half of an object.
func (s *store[P]) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		if m, ok := o.(metav1.Object); ok {
			m.SetManagedFields(nil)
		}
		return o, nil
	}
}
