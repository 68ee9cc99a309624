package volumes

import (
	"strconv"
	"sync"

	"github.com/drivebay/drivebay/api/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// objects are the newest Volume objects of the node. A reflector writes them, and the answers of the API
// server to the node's own writes, which the reflector may deliver late.
type objects struct {
	changed func(id string)

	mu     sync.Mutex
	byID   map[string]*v1alpha1.Volume
	synced bool
}

func (s *objects) get(id string) *v1alpha1.Volume {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

func (s *objects) isSynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// put keeps an object unless a newer version is there.
func (s *objects) put(o *v1alpha1.Volume) {
	o.ManagedFields = nil // as large as the rest of the object, and not used
	s.mu.Lock()
	was := s.byID[o.Name]
	if was != nil && was.UID == o.UID && version(was) > version(o) {
		s.mu.Unlock()
		return
	}
	s.byID[o.Name] = o
	s.mu.Unlock()
	s.changed(o.Name)
}

// drop removes an object if it still has a UID.
func (s *objects) drop(id string, uid types.UID) {
	s.mu.Lock()
	if was := s.byID[id]; was != nil && was.UID == uid {
		delete(s.byID, id)
	}
	s.mu.Unlock()
	s.changed(id)
}

// version returns the resource version of an object. Those of one kind are numbers that grow (Kubernetes API
// concepts, "Resource versions"; KEP-5504). 0 if it is none.
func version(o *v1alpha1.Volume) uint64 {
	n, _ := strconv.ParseUint(o.ResourceVersion, 10, 64)
	return n
}

// The methods of cache.ReflectorStore.

func (s *objects) Add(o any) error    { s.put(o.(*v1alpha1.Volume)); return nil }
func (s *objects) Update(o any) error { s.put(o.(*v1alpha1.Volume)); return nil }
func (s *objects) Resync() error      { return nil }

func (s *objects) Delete(o any) error {
	v := o.(*v1alpha1.Volume)
	s.drop(v.Name, v.UID)
	return nil
}

// Replace takes a complete list of the objects.
func (s *objects) Replace(list []any, _ string) error {
	there := map[string]bool{}
	for _, o := range list {
		v := o.(*v1alpha1.Volume)
		there[v.Name] = true
		s.put(v)
	}
	s.mu.Lock()
	var gone []string
	for id := range s.byID {
		if !there[id] {
			delete(s.byID, id)
			gone = append(gone, id)
		}
	}
	s.synced = true
	s.mu.Unlock()
	for _, id := range gone {
		s.changed(id)
	}
	return nil
}
