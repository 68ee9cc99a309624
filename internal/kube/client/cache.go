package client

import (
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cache holds the newest known version of each object that a selector selects: from the API server's
// stream of changes, or from the answer to an own write.
type Cache[T any, P Object[T]] struct {
	changed func(name string)

	mu      sync.Mutex
	objects map[string]P
	gone    Gone
	listed  bool
}

// NewCache returns an empty cache; changed is called with the name of each object that changed at the API server, and must not block.
func NewCache[T any, P Object[T]](changed func(name string)) *Cache[T, P] {
	return &Cache[T, P]{changed: changed, objects: map[string]P{}}
}

// Get returns an object, which the caller must not change.
func (c *Cache[T, P]) Get(name string) (P, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.objects[name]
	return o, ok
}

// Names returns the names of all objects; listed is false until the first list was read.
func (c *Cache[T, P]) Names() (names []string, listed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.objects {
		names = append(names, name)
	}
	return names, c.listed
}

// Listed reports whether the first list was read.
func (c *Cache[T, P]) Listed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listed
}

// Put stores the answer to an own write.
func (c *Cache[T, P]) Put(o P) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(o)
}

// Drop removes an object that the API server does not have.
func (c *Cache[T, P]) Drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, ok := c.objects[name]; ok {
		c.gone.Deleted(name, version(was))
		delete(c.objects, name)
	}
}

// put keeps the newer version: the stream may be behind an own write. The fields' owners are most of the
// size of an object, and no reader of the cache needs them.
func (c *Cache[T, P]) put(o P) {
	was, ok := c.objects[o.GetName()]
	if ok && version(was) > version(o) || !ok && c.gone.Is(o.GetName(), version(o)) {
		return
	}
	o.SetManagedFields(nil)
	c.objects[o.GetName()] = o
}

// version is the number of a change of the cluster. It grows within one kind of objects
// (KEP-5504, comparable resource versions).
func version(o metav1.Object) uint64 {
	n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Add, Update, Delete, Replace and Resync are what a reflector calls.
func (c *Cache[T, P]) Add(o any) error { return c.Update(o) }

func (c *Cache[T, P]) Update(o any) error {
	defer c.changed(o.(P).GetName())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(o.(P))
	return nil
}

func (c *Cache[T, P]) Delete(o any) error {
	gone := o.(P)
	defer c.changed(gone.GetName())
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, ok := c.objects[gone.GetName()]; !ok || was.GetUID() == gone.GetUID() { // else it is there again
		c.gone.Deleted(gone.GetName(), version(gone))
		delete(c.objects, gone.GetName())
	}
	return nil
}

func (c *Cache[T, P]) Replace(list []any, at string) error {
	for name := range c.replace(list, at) {
		c.changed(name)
	}
	return nil
}

// replace returns the names of the objects that are or were in the cache.
func (c *Cache[T, P]) replace(list []any, at string) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, names := c.objects, map[string]bool{}
	for name := range was {
		names[name] = true
	}
	c.objects, c.listed, c.gone = make(map[string]P, len(list)), true, Gone{}
	for _, o := range list {
		o := o.(P)
		if old, ok := was[o.GetName()]; ok {
			c.objects[o.GetName()] = old
		}
		c.put(o)
		names[o.GetName()] = true
	}
	c.gone.Listed(at)
	return names
}

func (c *Cache[T, P]) Resync() error { return nil }
