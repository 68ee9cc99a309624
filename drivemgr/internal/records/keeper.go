package records

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// Store is the record store as the manager uses it.
type Store interface {
	Records() (map[string]drivebay.Record, error)
	PutRecords(map[string]drivebay.Record) error
	DeleteRecords(ids []string) error
	AppendEvents([]drivebay.Event) error
	Events(after uint64, limit int) ([]drivebay.Event, error)
	LastEvent() (uint64, error)
	// Failing returns why the store cannot be written, nil while it can.
	Failing() error
	// Check tests the store again.
	Check()
}

// checkStore is how often the keeper calls Store.Check.
const checkStore = 5 * time.Second

// maxEvents is how many events stay in memory; the store keeps as many.
const maxEvents = 10_000

// Keeper holds events in memory for readers and writes records and events to the store.
// The disk of the store may be the one that hangs, so writing happens in its own
// goroutine; the newest state of a record replaces an unwritten one.
type Keeper struct {
	store Store // nil: nothing survives a restart
	log   *slog.Logger

	mu      sync.Mutex
	events  []drivebay.Event // oldest first
	last    uint64
	grew    chan struct{}               // closed and replaced when an event is added
	Records map[string]*drivebay.Record // not written yet; nil: to be deleted
	unsaved []drivebay.Event
	wake    chan struct{}
	changes uint64        // number of changes of records
	tried   uint64        // of them, those that the last flush has written, or failed to
	failed  error         // why it failed
	flushed chan struct{} // closed and replaced when a flush ends

	recordsUnread error // why loadRecords failed; no record is written
	lastUnread    error // why the number of the newest stored event is not known; no event is written
}

// New returns a keeper of a store; nil keeps nothing.
func New(st Store, log *slog.Logger) *Keeper {
	return &Keeper{
		store: st, log: log, grew: make(chan struct{}), wake: make(chan struct{}, 1), flushed: make(chan struct{}),
		Records: map[string]*drivebay.Record{},
	}
}

// LoadRecords reads the records that an earlier run stored. After a failure the keeper
// writes no record: the stored ones hold claims and usages that this run does not know.
func (k *Keeper) LoadRecords() (map[string]drivebay.Record, error) {
	if k.store == nil {
		return nil, nil
	}
	records, err := k.store.Records()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recordsUnread = err
	return records, err
}

// LoadEvents reads the events that an earlier run stored, and continues their numbers.
// While the newest number is not known, the keeper writes no event: it would replace the
// stored event with the same number.
func (k *Keeper) LoadEvents() error {
	if k.store == nil {
		return nil
	}
	last, err := k.store.LastEvent()
	var stored []drivebay.Event
	var unread error
	if err == nil {
		stored, unread = k.store.Events(max(last, maxEvents)-maxEvents, maxEvents)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lastUnread = err
	if err != nil {
		return err
	}
	for _, events := range [][]drivebay.Event{k.events, k.unsaved} { // of this run: they follow the stored ones
		for i := range events {
			events[i].Seq += last
		}
	}
	k.last += last
	k.events = slices.Concat(stored, k.events)
	k.events = k.events[max(len(k.events), maxEvents)-maxEvents:]
	return unread
}

// Unread returns why the stored records of the drives could not be read, nil if they were.
func (k *Keeper) Unread() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.recordsUnread
}

// Add numbers events and stores them.
func (k *Keeper) Add(events ...drivebay.Event) {
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
		k.events = k.events[over:] // copied when append has no room, not for each event
	}
	k.unsaved = append(k.unsaved, events...)
	if over := len(k.unsaved) - maxEvents; over > 0 {
		k.unsaved = k.unsaved[over:]
	}
	close(k.grew)
	k.grew = make(chan struct{})
	k.mu.Unlock()
	k.wakeWriter()
	for _, e := range events {
		k.log.Info("event", "kind", e.Kind, "drive", e.Drive, "volume", e.Volume, "from", e.From, "to", e.To, "cause", e.Cause)
	}
}

// Since returns the events after a sequence number, and a channel that closes when more
// arrive.
func (k *Keeper) Since(after uint64, limit int) ([]drivebay.Event, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := sort.Search(len(k.events), func(i int) bool { return k.events[i].Seq > after })
	more := k.events[first:]
	if limit > 0 {
		more = more[:min(limit, len(more))]
	}
	return append([]drivebay.Event(nil), more...), k.grew
}

// Keep stores a record in the background.
func (k *Keeper) Keep(id string, r drivebay.Record) {
	k.mu.Lock()
	k.Records[id] = &r
	k.changes++
	k.mu.Unlock()
	k.wakeWriter()
}

// Forget removes a record from the store in the background.
func (k *Keeper) Forget(id string) {
	k.mu.Lock()
	k.Records[id] = nil
	k.changes++
	k.mu.Unlock()
	k.wakeWriter()
}

// storeTime is how long the call of an operator waits for the store.
const storeTime = 10 * time.Second

// Stored waits until the store has all records, and returns why it has not. The state of the drives after a loss of
// power is then the one that the records have now.
func (k *Keeper) Stored(ctx context.Context, clock host.Clock) error {
	k.mu.Lock()
	if k.store == nil || k.recordsUnread != nil || len(k.Records) == 0 && k.tried == k.changes && k.failed == nil {
		defer k.mu.Unlock()
		return k.recordsUnread
	}
	k.changes++ // the next flush, and not one that has failed
	until := k.changes
	k.mu.Unlock()
	k.wakeWriter()
	late := clock.After(storeTime)
	for {
		k.mu.Lock()
		tried, err, flushed := k.tried, k.failed, k.flushed
		k.mu.Unlock()
		if tried >= until {
			return err
		}
		select {
		case <-flushed:
		case <-late:
			return fmt.Errorf("a write has not ended after %v: the disk may hang", storeTime)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (k *Keeper) wakeWriter() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Run writes until ctx ends, then once more.
func (k *Keeper) Run(ctx context.Context, clock host.Clock) {
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

// flush writes the pending records and events. Those that cannot be written stay pending.
func (k *Keeper) flush() {
	k.mu.Lock()
	records, events, changes := k.Records, k.unsaved, k.changes
	k.Records, k.unsaved = map[string]*drivebay.Record{}, nil
	if k.recordsUnread != nil {
		records = map[string]*drivebay.Record{}
	}
	if k.lastUnread != nil {
		k.unsaved, events = events, nil
	}
	k.mu.Unlock()
	if k.store == nil {
		return
	}
	err := k.write(records, events)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tried, k.failed = changes, err
	close(k.flushed)
	k.flushed = make(chan struct{})
	if err != nil {
		// Newer states that arrived meanwhile replace the ones that failed.
		maps.Copy(records, k.Records)
		k.Records = records
		k.unsaved = append(events, k.unsaved...)
	}
}

// check tests the store, and writes the pending records and events once the store can be written.
func (k *Keeper) check() {
	if k.store == nil {
		return
	}
	k.store.Check()
	k.mu.Lock()
	unnumbered := k.lastUnread != nil
	k.mu.Unlock()
	if unnumbered {
		if err := k.LoadEvents(); err != nil {
			k.log.Warn("the stored events cannot be read", "op", "load events", "err", err)
		}
	}
	k.mu.Lock()
	waits := len(k.Records)+len(k.unsaved) > 0
	k.mu.Unlock()
	if waits && k.store.Failing() == nil {
		k.flush()
	}
}

func (k *Keeper) write(records map[string]*drivebay.Record, events []drivebay.Event) error {
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

// Failing returns why the store cannot be written, nil while it can.
func (k *Keeper) Failing() error {
	if k.store == nil {
		return nil
	}
	return k.store.Failing()
}

// UnreadRecords describes the state of a manager that could not read the stored records.
func UnreadRecords(err error) string {
	return "stored records of the drives: read failed, so claims and usages are unknown: drivebay claims and changes no drive and writes no record; repair the store, then restart drivebay: " + err.Error()
}
