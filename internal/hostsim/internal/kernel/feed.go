package kernel

import (
	"context"
	"sync"
)

// backlog is how many messages may wait for a slow reader before messages are lost, as in a netlink
// socket's buffer.
const backlog = 2048

// feed sends messages to all listeners.
type feed[T any] struct {
	mu   sync.Mutex
	subs map[*queue[T]]struct{}
	Lost T // the message that reports lost messages
}

type queue[T any] struct {
	waiting []T
	over    bool // no more messages follow
	wake    chan struct{}
}

// Listen returns a channel of the messages from now on. It closes after ctx ends.
func (f *feed[T]) Listen(ctx context.Context) <-chan T {
	out := make(chan T)
	q := &queue[T]{wake: make(chan struct{}, 1)}
	f.mu.Lock()
	if f.subs == nil {
		f.subs = map[*queue[T]]struct{}{}
	}
	f.subs[q] = struct{}{}
	f.mu.Unlock()
	go func() {
		defer close(out)
		defer f.leave(q)
		f.pump(ctx, q, out)
	}()
	return out
}

func (f *feed[T]) leave(q *queue[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, q)
}

func (f *feed[T]) pump(ctx context.Context, q *queue[T], out chan<- T) {
	for {
		f.mu.Lock()
		batch, over := q.waiting, q.over
		q.waiting = nil
		f.mu.Unlock()
		for _, msg := range batch {
			select {
			case out <- msg:
			case <-ctx.Done():
				return
			}
		}
		if over {
			return
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return
		}
	}
}

// End closes the channels of all present listeners, as a failed read does.
func (f *feed[T]) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for q := range f.subs {
		q.over = true
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
}

// Send queues messages for every listener without waiting.
func (f *feed[T]) Send(msgs ...T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for q := range f.subs {
		if len(q.waiting)+len(msgs) > backlog {
			q.waiting = []T{f.Lost}
		} else {
			q.waiting = append(q.waiting, msgs...)
		}
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
}
