package volume

import (
	"fmt"
	"maps"
	"slices"

	"github.com/drivebay/drivebay"
)

// While the record store cannot be written, volumes are still staged, published, unpublished
// and unstaged: the mount table shows the same as their records. What must outlive the daemon
// to be safe (that a volume is made, moved, wiped or removed, or which leg of a mirror is the
// newest) is written first, by Engine.change, or is not done.

// notStored returns the error for a record that must be written first and cannot be.
func notStored(err error) error {
	return fmt.Errorf("%w: the record store cannot be written: %w; repair the disk of the state directory and retry", drivebay.ErrUnavailable, err)
}

// changeSoon changes facts in a record that can be found again on the machine. If the store
// cannot be written the change is kept in memory, and written later.
func (e *Engine) changeSoon(id string, f func(*drivebay.VolumeRecord) error) (drivebay.VolumeRecord, error) {
	e.writing.Lock()
	defer e.writing.Unlock()
	r, err := e.edited(id, f)
	if err == nil {
		e.putSoon(r)
	}
	return r, err
}

// putSoon is put for facts that can be found again on the machine. Engine.writing is held.
func (e *Engine) putSoon(r drivebay.VolumeRecord) {
	err := e.put(r)
	if err == nil {
		return
	}
	e.mu.Lock()
	e.records[r.Volume.ID], e.sorted = &r, nil
	before := e.held[r.Volume.ID]
	e.held[r.Volume.ID] = true
	e.mu.Unlock()
	e.publish()
	if !before {
		e.log.Warn("record kept in memory until the store can be written", "op", "store", "volume", r.Volume.ID, "err", err)
	}
}

// Unwritten returns the ids of the volumes whose newest record is in memory only, sorted.
func (e *Engine) Unwritten() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.held))
}

// writeHeld writes the records that were kept in memory, up to the first that cannot be
// written.
func (e *Engine) writeHeld() {
	for _, id := range e.Unwritten() {
		if !e.writeOne(id) {
			return
		}
	}
}

func (e *Engine) writeOne(id string) bool {
	e.writing.Lock()
	defer e.writing.Unlock()
	e.mu.Lock()
	r, held := e.records[id], e.held[id]
	e.mu.Unlock()
	return !held || r == nil || e.put(*r) == nil
}

// writeHeldAside runs writeHeld outside the goroutine of Run: the disk of the store may hang.
func (e *Engine) writeHeldAside() {
	if len(e.Unwritten()) == 0 || !e.writesHeld.CompareAndSwap(false, true) {
		return
	}
	e.inBackground("write records", func() {
		defer e.writesHeld.Store(false)
		e.writeHeld()
	})
}
