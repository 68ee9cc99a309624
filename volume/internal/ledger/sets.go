package ledger

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/drivebay/drivebay"
)

// Sets holds the newest set of volumes, and wakes callers that wait for the next one.
type Sets struct {
	newest atomic.Pointer[drivebay.VolumeSet] // calls read it without waiting for each other
	mu     sync.Mutex                         // held while newest and grew change together
	grew   chan struct{}                      // closed and replaced when the number of the set changes
}

// NewSets returns the sets of an engine that has listed no volume yet.
func NewSets() *Sets {
	s := &Sets{grew: make(chan struct{})}
	s.newest.Store(&drivebay.VolumeSet{})
	return s
}

// Load returns the newest set; never nil.
func (s *Sets) Load() *drivebay.VolumeSet { return s.newest.Load() }

// Store makes a set the newest.
func (s *Sets) Store(next *drivebay.VolumeSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.newest.Swap(next); next.Seq != was.Seq {
		close(s.grew)
		s.grew = make(chan struct{})
	}
}

// Wait returns the newest set once its number differs from after. A smaller number means that the
// daemon was restarted.
func (s *Sets) Wait(ctx context.Context, after uint64) (*drivebay.VolumeSet, error) {
	for {
		s.mu.Lock()
		newest, grew := s.newest.Load(), s.grew
		s.mu.Unlock()
		if newest.Seq != after {
			return newest, nil
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return newest, ctx.Err()
		}
	}
}
