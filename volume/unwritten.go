package volume

import (
	"fmt"
	"maps"
	"slices"

	"github.com/drivebay/drivebay"
)

// While the record store cannot be written, volumes are still staged, published and let go
// of: the mount table says the same as their records. What has to outlive the daemon to be
// safe (what is made, moved, wiped, removed, or which leg of a mirror is the newest) is
// written first, by Engine.change, or is not done.

// notStored is the error for what has to be written down first and cannot be.
func notStored(err error) error {
	return fmt.Errorf("%w: the record store cannot be written: %w; repair the disk of the state directory and retry", drivebay.ErrUnavailable, err)
}

// changeSoon changes what can be found out again from the machine. If the store cannot be
// written the change is kept in memory, and written when it can.
func (e *Engine) changeSoon(id string, f func(*drivebay.VolumeRecord) error) (drivebay.VolumeRecord, error) {
	e.writing.Lock()
	defer e.writing.Unlock()
	r, err := e.edited(id, f)
	if err == nil {
		e.putSoon(r)
	}
	return r, err
}

// putSoon is put for a record that can be found out again. Engine.writing is held.
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

// Unwritten are the volumes whose newest record is in memory only, by id.
func (e *Engine) Unwritten() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.held))
}

// writeHeld writes what was kept in memory. The first record that cannot be written ends
// that until the next time.
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

// writeHeldAside is writeHeld beside the goroutine in Run: the disk of the store may hang.
func (e *Engine) writeHeldAside() {
	if len(e.Unwritten()) == 0 || !e.writesHeld.CompareAndSwap(false, true) {
		return
	}
	e.running.Go(func() {
		defer e.writesHeld.Store(false)
		e.writeHeld()
	})
}
