package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/drivebay/drivebay"
)

// Mem keeps records and events for as long as the process runs. It holds them encoded, as
// a file would, so that a caller cannot change a stored record through its own copy.
type Mem struct {
	mu                                              sync.Mutex
	records, volumes, snapshots, forgotten, remains shelf
	events                                          map[uint64][]byte
	history                                         map[string][]byte // by key of the bolt store
	last                                            uint64
}

// Memory returns a store that lasts until the process ends.
func Memory() *Mem {
	return &Mem{records: shelf{}, volumes: shelf{}, snapshots: shelf{}, forgotten: shelf{}, remains: shelf{}, events: map[uint64][]byte{}, history: map[string][]byte{}}
}

// Records returns the records of all drives.
func (m *Mem) Records() (map[string]drivebay.Record, error) {
	return shelved[drivebay.Record](m, m.records, "drive")
}

// PutRecords stores records, all or none.
func (m *Mem) PutRecords(records map[string]drivebay.Record) error {
	encoded, err := encodeRecords(records)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.Copy(m.records, encoded)
	return nil
}

// DeleteRecords deletes records of drives; a record that does not exist is no error.
func (m *Mem) DeleteRecords(ids []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		delete(m.records, id)
	}
	return nil
}

// AppendEvents stores events under their numbers and deletes those that are too old.
func (m *Mem) AppendEvents(events []drivebay.Event) error {
	encoded, err := encodeEvents(events)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, b := range encoded {
		m.events[events[i].Seq] = b
		m.last = max(m.last, events[i].Seq)
	}
	oldest := oldestKept(m.last)
	maps.DeleteFunc(m.events, func(seq uint64, _ []byte) bool { return seq < oldest })
	return nil
}

// Events returns at most limit events newer than after, oldest first; a limit of
// 0 means all.
func (m *Mem) Events(after uint64, limit int) ([]drivebay.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []drivebay.Event
	for _, seq := range slices.Sorted(maps.Keys(m.events)) {
		if seq <= after {
			continue
		}
		if limit > 0 && len(out) == limit {
			break
		}
		var e drivebay.Event
		if err := json.Unmarshal(m.events[seq], &e); err != nil {
			return nil, fmt.Errorf("event %d: %w", seq, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// LastEvent returns the number of the newest event ever stored.
func (m *Mem) LastEvent() (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, nil
}

// Failing returns nil: memory can always be written.
func (m *Mem) Failing() error { return nil }

// Check does nothing: a write to memory cannot fail.
func (m *Mem) Check() {}

// Close does nothing: there is no file.
func (m *Mem) Close() error { return nil }
