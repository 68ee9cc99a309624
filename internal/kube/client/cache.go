package client

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Cache holds the newest known version of each object that a selector selects: from the API server's
// stream of changes, or from the answer to an own write.
type Cache[T any, P Object[T]] struct {
	changed func()
	log     *slog.Logger

	mu      sync.Mutex
	objects map[string]P
	listed  bool
	failing bool
}

// NewCache returns an empty cache; changed is called after each change from the API server and must not block.
func NewCache[T any, P Object[T]](log *slog.Logger, changed func()) *Cache[T, P] {
	return &Cache[T, P]{changed: changed, log: log, objects: map[string]P{}}
}

// Follow keeps the cache up to date until ctx ends. While the API server does not answer, it tries again with
// growing waits, and the cache stays as it was.
func Follow[T any, P Object[T], L any, PL List[L]](ctx context.Context, c *Cache[T, P], r Resource[T, P, L, PL], selector string) {
	lists := r.listWatch(selector)
	list, follow := lists.ListWithContextFunc, lists.WatchFuncWithContext
	lists.ListWithContextFunc = func(ctx context.Context, opt metav1.ListOptions) (runtime.Object, error) {
		out, err := list(ctx, opt)
		return out, c.heard(r.name, err)
	}
	lists.WatchFuncWithContext = func(ctx context.Context, opt metav1.ListOptions) (watch.Interface, error) {
		out, err := follow(ctx, opt)
		return out, c.heard(r.name, err)
	}
	reflector := cache.NewReflectorWithOptions(lists, P(new(T)), c, cache.ReflectorOptions{Name: r.name})
	reflector.RunWithContext(klog.NewContext(ctx, logr.Discard())) // it logs each try
}

// heard logs the first of several failures, and the first success after them.
func (c *Cache[T, P]) heard(what string, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && !c.failing && !errors.Is(err, context.Canceled):
		c.failing = true
		c.log.Warn("objects cannot be read from the API server: retrying", "op", "kube", "objects", what, "err", err)
	case err == nil && c.failing:
		c.failing = false
		c.log.Info("objects are read from the API server again", "op", "kube", "objects", what)
	}
	return err
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
	delete(c.objects, name)
}

// put keeps the newer version: the stream may be behind an own write. The fields' owners are most of the
// size of an object, and no reader of the cache needs them.
func (c *Cache[T, P]) put(o P) {
	if was, ok := c.objects[o.GetName()]; ok && was.GetUID() == o.GetUID() && version(was) > version(o) {
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
	defer c.changed()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(o.(P))
	return nil
}

func (c *Cache[T, P]) Delete(o any) error {
	gone := o.(P)
	defer c.changed()
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, ok := c.objects[gone.GetName()]; ok && was.GetUID() == gone.GetUID() { // else it is there again
		delete(c.objects, gone.GetName())
	}
	return nil
}

func (c *Cache[T, P]) Replace(list []any, _ string) error {
	defer c.changed()
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.objects
	c.objects, c.listed = make(map[string]P, len(list)), true
	for _, o := range list {
		o := o.(P)
		if old, ok := was[o.GetName()]; ok {
			c.objects[o.GetName()] = old
		}
		c.put(o)
	}
	return nil
}

func (c *Cache[T, P]) Resync() error { return nil }
