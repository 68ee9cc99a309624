package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/drivebay/drivebay/internal/backoff"
	"github.com/drivebay/drivebay/internal/cursor"
)

const (
	maxQueue = 100            // notices that one sink keeps
	giveUp   = 24 * time.Hour // age of a notice after which it is not sent any more
)

// sendAgain is the wait after an attempt that failed.
var sendAgain = backoff.Backoff{First: time.Second, Most: 5 * time.Minute}

// errRefused: the receiver has the notice and will never accept it.
var errRefused = errors.New("refused")

// channel delivers one notice. An error that wraps errRefused is final.
type channel interface {
	deliver(ctx context.Context, n *Notice) error
}

// sink is a channel with its queue.
type sink struct {
	name    string
	channel channel
	n       *Notifier
	last    cursor.Mark // the event that was handled last before this run

	mu    sync.Mutex
	queue []*Notice // oldest first; the first one is being sent
	total Count
	more  chan struct{} // signals that the queue is not empty
}

func newSink(name string, c channel, n *Notifier) *sink {
	return &sink{name: name, channel: c, n: n, more: make(chan struct{}, 1)}
}

// push queues a notice. A full queue drops the oldest one.
func (s *sink) push(n *Notice) {
	s.mu.Lock()
	var dropped *Notice
	if len(s.queue) == maxQueue {
		dropped, s.queue = s.queue[0], s.queue[1:]
		s.total.Dropped++
	}
	s.queue = append(s.queue, n)
	s.mu.Unlock()
	if dropped != nil {
		s.n.opt.Log.Warn("a notice was dropped: too many wait", "op", "notify", "sink", s.name, "notice", dropped.ID, "summary", dropped.Summary)
	}
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// head returns the oldest notice, or nil.
func (s *sink) head() *Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil
	}
	return s.queue[0]
}

// finish removes a notice from the queue, unless push has dropped it meanwhile, and counts it.
func (s *sink) finish(n *Notice, counter *uint64) {
	s.mu.Lock()
	if len(s.queue) > 0 && s.queue[0] == n {
		s.queue = s.queue[1:]
		*counter++
	}
	s.mu.Unlock()
	s.n.cursor.Set(s.name, cursor.Mark{Seq: n.seq, At: n.At})
}

func (s *sink) count() Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.total
	c.Sink, c.Queued = s.name, len(s.queue)
	return c
}

// run sends the queued notices, oldest first, until ctx ends.
func (s *sink) run(ctx context.Context) {
	for failed := 0; ; {
		n := s.head()
		if n == nil {
			select {
			case <-s.more:
				continue
			case <-ctx.Done():
				return
			}
		}
		delay := sendAgain.Wait(failed + 1)
		if s.attempt(ctx, n, delay) {
			failed = 0
			continue
		}
		failed++
		select {
		case <-s.n.opt.Clock.After(delay):
		case <-ctx.Done():
			return
		}
	}
}

// attempt sends a notice once and reports whether the sink is done with it.
func (s *sink) attempt(ctx context.Context, n *Notice, delay time.Duration) bool {
	err := s.send(ctx, n)
	log := s.n.opt.Log.With("op", "notify", "sink", s.name, "notice", n.ID, "kind", string(n.Kind))
	switch {
	case err == nil:
		log.Info("notice delivered")
		s.finish(n, &s.total.Delivered)
		return true
	case ctx.Err() != nil:
		return false
	}
	s.mu.Lock()
	s.total.Failed++
	s.mu.Unlock()
	if old := s.n.opt.Clock.Now().Sub(n.since) > giveUp; old || errors.Is(err, errRefused) {
		log.Error("notice not delivered and dropped", "summary", n.Summary, "err", err)
		s.finish(n, &s.total.Dropped)
		return true
	}
	log.Warn("notice not delivered", "retry", delay.String(), "err", err)
	return false
}

// send delivers a notice within the timeout. A panic of the channel is its error.
func (s *sink) send(ctx context.Context, n *Notice) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.n.opt.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: internal error: %T", s.name, p)
		}
	}()
	return s.channel.deliver(ctx, n)
}
