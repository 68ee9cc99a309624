package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Follow keeps a store up to date with the objects that a selector selects, until ctx ends. While the API server does
// not answer, it tries again with growing waits, and the store stays as it was.
func Follow[T any, P Object[T], L any, PL List[L]](ctx context.Context, log *slog.Logger, store cache.ReflectorStore, r Resource[T, P, L, PL], selector string) {
	FollowLists(ctx, log, r.name, P(new(T)), store, r.ListWatch(selector))
}

// FollowLists does the same with objects of any kind.
func FollowLists(ctx context.Context, log *slog.Logger, name string, kind runtime.Object, store cache.ReflectorStore, lists *cache.ListWatch) {
	h := hearing{name: name, log: log}
	backoff := again
	reflector := cache.NewReflectorWithOptions(Hear(lists, h.heard), kind, store, cache.ReflectorOptions{Name: name, Backoff: &backoff})
	reflector.RunWithContext(klog.NewContext(ctx, logr.Discard())) // it logs each try
}

// Hear returns lists and watches whose outcomes heard is called with. It must not block.
func Hear(lists *cache.ListWatch, heard func(error)) *cache.ListWatch {
	list, follow := lists.ListWithContextFunc, lists.WatchFuncWithContext
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opt metav1.ListOptions) (runtime.Object, error) {
			out, err := list(ctx, opt)
			heard(err)
			return out, err
		},
		WatchFuncWithContext: func(ctx context.Context, opt metav1.ListOptions) (watch.Interface, error) {
			out, err := follow(ctx, opt)
			heard(err)
			return out, err
		},
	}
}

// again is the wait before a list or watch is tried again, with its jitter up to 10 s: what a person requests right after
// the API server is back is seen by then. The usual wait of a reflector is up to a minute (client-go, tools/cache/reflector.go).
var again = wait.Backoff{Duration: 500 * time.Millisecond, Cap: 5 * time.Second, Steps: 10, Factor: 2, Jitter: 1}

// hearing logs whether the API server answers.
type hearing struct {
	name string
	log  *slog.Logger

	mu      sync.Mutex
	failing bool
}

// heard logs the first of several failures, and the first success after them.
func (h *hearing) heard(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil && !h.failing && !errors.Is(err, context.Canceled):
		h.failing = true
		h.log.Warn("objects cannot be read from the API server: retrying", "op", "kube", "objects", h.name, "err", err)
	case err == nil && h.failing:
		h.failing = false
		h.log.Info("objects are read from the API server again", "op", "kube", "objects", h.name)
	}
}
