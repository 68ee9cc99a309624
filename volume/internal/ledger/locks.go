package ledger

import (
	"sync"
	"time"
)

// idLocks holds a lock for each id. A lock is taken with a patience, because its holder may wait
// for a store that hangs.
type idLocks struct {
	mu    sync.Mutex
	taken map[string]chan struct{} // closed when the lock is free
	all   chan struct{}            // closed when no call holds all of them; nil: none does
}

// lock takes the lock of an id, and returns false if patience ends before that; nil never ends.
func (l *idLocks) lock(id string, patience <-chan time.Time) bool {
	for {
		l.mu.Lock()
		busy := l.all
		if busy == nil {
			busy = l.taken[id]
		}
		if busy == nil {
			if l.taken == nil {
				l.taken = map[string]chan struct{}{}
			}
			l.taken[id] = make(chan struct{})
			l.mu.Unlock()
			return true
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-patience:
			return false
		}
	}
}

func (l *idLocks) unlock(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.taken[id])
	delete(l.taken, id)
}

// lockAll takes all locks, when none is taken. It returns false if patience ends before that.
func (l *idLocks) lockAll(patience <-chan time.Time) bool {
	for {
		l.mu.Lock()
		busy := l.all
		for _, one := range l.taken {
			busy = one
		}
		if busy == nil {
			l.all = make(chan struct{})
			l.mu.Unlock()
			return true
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-patience:
			return false
		}
	}
}

func (l *idLocks) unlockAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.all)
	l.all = nil
}
