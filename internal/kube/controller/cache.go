package controller

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// objects are the newest Volume objects of the cluster, and the set of volumes that follows from them. A reflector
// writes them, and the answers of the API server to the controller's own writes.
type objects struct {
	// down returns why a node is down, "" if it is not.
	down func(node string) string

	mu      sync.Mutex
	byID    map[string]*v1alpha1.Volume
	gone    client.Gone
	synced  bool
	waiting map[string]chan struct{} // closed when an object changes
	// set is the set without the changes of the objects in changed.
	set     *drivebay.VolumeSet
	changed map[string]bool

	classes map[v1alpha1.VolumeClass]map[string]string // parameters that volumes share
}

func newObjects(down func(string) string) *objects {
	return &objects{down: down, byID: map[string]*v1alpha1.Volume{}, waiting: map[string]chan struct{}{}, set: &drivebay.VolumeSet{},
		changed: map[string]bool{}, classes: map[v1alpha1.VolumeClass]map[string]string{}}
}

// get returns an object, nil if it is not known, and a channel that is closed when it changes.
func (s *objects) get(id string) (*v1alpha1.Volume, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[id] == nil {
		s.waiting[id] = make(chan struct{})
	}
	return s.byID[id], s.waiting[id]
}

func (s *objects) isSynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// touch notes that an object has changed. The lock is held.
func (s *objects) touch(id string) {
	s.changed[id] = true
	if c := s.waiting[id]; c != nil {
		close(c)
		delete(s.waiting, id)
	}
}

// put keeps an object unless a newer version is there.
func (s *objects) put(o *v1alpha1.Volume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(o)
}

func (s *objects) putLocked(o *v1alpha1.Volume) {
	was := s.byID[o.Name]
	if was != nil && version(was) >= version(o) || was == nil && s.gone.Is(o.Name, version(o)) {
		return
	}
	o.ManagedFields = nil
	s.byID[o.Name] = o
	s.touch(o.Name)
}

// drop removes an object that the API server does not have.
func (s *objects) drop(o *v1alpha1.Volume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.byID[o.Name]
	if was != nil && was.UID != o.UID { // it is there again
		return
	}
	s.gone.Deleted(o.Name, version(o))
	if was != nil {
		s.gone.Deleted(o.Name, version(was))
		delete(s.byID, o.Name)
		s.touch(o.Name)
	}
}

// version is the number of a change of the cluster (KEP-5504, comparable resource versions).
func version(o *v1alpha1.Volume) uint64 {
	n, _ := strconv.ParseUint(o.ResourceVersion, 10, 64) // 0 if it is not a number
	return n
}

// nodesChanged shows the volumes of nodes that went down or came back.
func (s *objects) nodesChanged(nodes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, o := range s.byID {
		if slices.Contains(nodes, o.Spec.Node) {
			s.touch(id)
		}
	}
}

// volumes returns the newest set: sorted by id, and never changed afterwards.
func (s *objects) volumes() *drivebay.VolumeSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced || len(s.changed) == 0 && s.set.Seq > 0 {
		return s.set
	}
	next := &drivebay.VolumeSet{Seq: s.set.Seq + 1}
	if len(s.changed) > len(s.set.Volumes)/16 { // a search for each costs more than a walk over all
		next.Volumes = make([]*drivebay.VolumeView, 0, len(s.byID))
		for id, o := range s.byID {
			if v, known := s.set.Get(id); known && !s.changed[id] {
				next.Volumes = append(next.Volumes, v)
			} else if v := s.view(o); v != nil {
				next.Volumes = append(next.Volumes, v)
			}
		}
		slices.SortFunc(next.Volumes, func(a, b *drivebay.VolumeView) int { return strings.Compare(a.ID, b.ID) })
	} else {
		next.Volumes = slices.Clone(s.set.Volumes)
		for id := range s.changed {
			i, known := slices.BinarySearchFunc(next.Volumes, id, func(v *drivebay.VolumeView, id string) int { return strings.Compare(v.ID, id) })
			var v *drivebay.VolumeView
			if o := s.byID[id]; o != nil {
				v = s.view(o)
			}
			switch {
			case known && v != nil:
				next.Volumes[i] = v
			case known:
				next.Volumes = slices.Delete(next.Volumes, i, i+1)
			case v != nil:
				next.Volumes = slices.Insert(next.Volumes, i, v)
			}
		}
	}
	clear(s.changed)
	s.set = next
	return next
}

// view returns the volume of an object, nil if it was not made.
func (s *objects) view(o *v1alpha1.Volume) *drivebay.VolumeView {
	if !exists(o.Status.Phase) && o.Status.Phase != v1alpha1.VolumeFailed {
		return nil
	}
	v := translate.View(o)
	if c := o.Spec.Class; c != nil {
		if s.classes[*c] == nil {
			s.classes[*c] = v.Parameters
		}
		v.Parameters = s.classes[*c]
	}
	if why := s.down(o.Spec.Node); why != "" {
		v.OperationalStatus = drivebay.OperationalUnknown
		v.Condition = append(drivebay.Condition{{Severity: drivebay.SeverityInaccessible, Reason: reasonNodeDown, Message: why}}, v.Condition...)
	}
	return v
}

// reasonNodeDown is the reason of a volume whose node does not report (KEP-1432, node down).
const reasonNodeDown = "NodeDown"

// The methods of cache.ReflectorStore.

func (s *objects) Add(o any) error    { s.put(o.(*v1alpha1.Volume)); return nil }
func (s *objects) Update(o any) error { s.put(o.(*v1alpha1.Volume)); return nil }
func (s *objects) Delete(o any) error { s.drop(o.(*v1alpha1.Volume)); return nil }
func (s *objects) Resync() error      { return nil }

// Replace takes a complete list of the objects.
func (s *objects) Replace(list []any, at string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = client.Gone{}
	there := make(map[string]bool, len(list))
	for _, o := range list {
		o := o.(*v1alpha1.Volume)
		there[o.Name] = true
		s.putLocked(o)
	}
	for id := range s.byID {
		if !there[id] {
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
func (s *objects) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		if m, ok := o.(metav1.Object); ok {
			m.SetManagedFields(nil)
		}
		return o, nil
	}
}
