package drivemgr

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// Store is what the manager needs of a record store.
type Store interface {
	Records() (map[string]drivebay.Record, error)
	PutRecords(map[string]drivebay.Record) error
	DeleteRecords(ids []string) error
	AppendEvents([]drivebay.Event) error
	Events(after uint64, limit int) ([]drivebay.Event, error)
	LastEvent() (uint64, error)
	// Failing is why the store cannot be written, nil while it can.
	Failing() error
	// Check tries that again.
	Check()
}

// checkStore is how often it is tried.
const checkStore = 5 * time.Second

// maxEvents is how many events are kept at hand; the store keeps as many.
const maxEvents = 10_000

// keeper remembers: events at hand for readers, and records and events on disk.
// The disk may be the very one that hangs, so writing happens in a goroutine of
// its own and the newest state of a record wins while it waits.
type keeper struct {
	store Store // nil: nothing outlives us
	log   *slog.Logger

	mu      sync.Mutex
	events  []drivebay.Event // oldest first
	last    uint64
	grew    chan struct{}               // closed and replaced when an event is added
	records map[string]*drivebay.Record // not written yet; nil: to be removed
	unsaved []drivebay.Event
	wake    chan struct{}
}

func newKeeper(st Store, log *slog.Logger) *keeper {
	return &keeper{
		store: st, log: log, grew: make(chan struct{}), wake: make(chan struct{}, 1),
		records: map[string]*drivebay.Record{},
	}
}

// load brings back what an earlier run kept.
func (k *keeper) load() (map[string]drivebay.Record, error) {
	if k.store == nil {
		return nil, nil
	}
	last, err := k.store.LastEvent()
	if err != nil {
		return nil, err
	}
	after := uint64(0)
	if last > maxEvents {
		after = last - maxEvents
	}
	if k.events, err = k.store.Events(after, maxEvents); err != nil {
		return nil, err
	}
	k.last = last
	return k.store.Records()
}

// add numbers events and keeps them.
func (k *keeper) add(events ...drivebay.Event) {
	if len(events) == 0 {
		return
	}
	k.mu.Lock()
	for i := range events {
		k.last++
		events[i].Seq = k.last
	}
	k.events = append(k.events, events...)
	if over := len(k.events) - maxEvents; over > 0 {
		k.events = append([]drivebay.Event(nil), k.events[over:]...)
	}
	k.unsaved = append(k.unsaved, events...)
	if over := len(k.unsaved) - maxEvents; over > 0 {
		k.unsaved = k.unsaved[over:]
	}
	close(k.grew)
	k.grew = make(chan struct{})
	k.mu.Unlock()
	k.poke()
	for _, e := range events {
		k.log.Info("event", "kind", e.Kind, "drive", e.Drive, "volume", e.Volume, "from", e.From, "to", e.To, "cause", e.Cause)
	}
}

// since returns the events after a sequence number, and a channel that closes
// when there are more.
func (k *keeper) since(after uint64, limit int) ([]drivebay.Event, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []drivebay.Event
	for _, e := range k.events {
		if e.Seq > after && (limit <= 0 || len(out) < limit) {
			out = append(out, e)
		}
	}
	return out, k.grew
}

func (k *keeper) keep(id string, r drivebay.Record) {
	k.mu.Lock()
	k.records[id] = &r
	k.mu.Unlock()
	k.poke()
}

func (k *keeper) forget(id string) {
	k.mu.Lock()
	k.records[id] = nil
	k.mu.Unlock()
	k.poke()
}

func (k *keeper) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run writes until ctx ends, then once more.
func (k *keeper) run(ctx context.Context, clock host.Clock) {
	check := clock.After(checkStore)
	for {
		select {
		case <-k.wake:
			k.flush()
		case <-check:
			check = clock.After(checkStore)
			k.check()
		case <-ctx.Done():
			k.flush()
			return
		}
	}
}

// flush writes what is waiting. What cannot be written waits for the next time.
func (k *keeper) flush() {
	k.mu.Lock()
	records, events := k.records, k.unsaved
	k.records, k.unsaved = map[string]*drivebay.Record{}, nil
	k.mu.Unlock()
	if k.store == nil {
		return
	}
	err := k.write(records, events)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		// Newer states that came meanwhile win over the ones taken back.
		maps.Copy(records, k.records)
		k.records = records
		k.unsaved = append(events, k.unsaved...)
	}
}

// check looks after the store, and writes what waits as soon as that can be done again.
func (k *keeper) check() {
	if k.store == nil {
		return
	}
	k.store.Check()
	k.mu.Lock()
	waits := len(k.records)+len(k.unsaved) > 0
	k.mu.Unlock()
	if waits && k.store.Failing() == nil {
		k.flush()
	}
}

func (k *keeper) write(records map[string]*drivebay.Record, events []drivebay.Event) error {
	put, removed := map[string]drivebay.Record{}, []string(nil)
	for id, r := range records {
		if r == nil {
			removed = append(removed, id)
		} else {
			put[id] = *r
		}
	}
	if len(put) > 0 {
		if err := k.store.PutRecords(put); err != nil {
			return err
		}
	}
	if len(removed) > 0 {
		if err := k.store.DeleteRecords(removed); err != nil {
			return err
		}
	}
	if len(events) > 0 {
		return k.store.AppendEvents(events)
	}
	return nil
}

// failing is why the store cannot be written, by whatever part of the daemon.
func (k *keeper) failing() error {
	if k.store == nil {
		return nil
	}
	return k.store.Failing()
}
