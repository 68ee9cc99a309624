package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/drivebay/drivebay"
)

// While the record store cannot be written, volumes are still staged, published, unpublished
// and unstaged: the mount table shows the same as their records. What must outlive the daemon
// to be safe (that a volume is made, moved, wiped or removed, or which leg of a mirror is the
// newest) is written first, by Change, or is not done.

// NotStored returns the error for a record that must be written first and cannot be.
func NotStored(err error) error {
	return fmt.Errorf("%w: the record store cannot be written: %w; repair the disk of the state directory and retry", drivebay.ErrUnavailable, err)
}

// ChangeSoon changes facts in a record that can be found again on the machine. If the store
// cannot be written the change is kept in memory, and written later.
func (e *Ledger) ChangeSoon(id string, f func(*drivebay.VolumeRecord) error) (drivebay.VolumeRecord, error) {
	e.Writing.Lock()
	defer e.Writing.Unlock()
	r, err := e.edited(id, f)
	if err == nil {
		e.PutSoon(r)
	}
	return r, err
}

// PutSoon is Put for facts that can be found again on the machine. Ledger.Writing is held.
func (e *Ledger) PutSoon(r drivebay.VolumeRecord) {
	err := e.Put(r)
	if err == nil {
		return
	}
	e.Mu.Lock()
	e.Records[r.Volume.ID], e.sorted = &r, nil
	before := e.Held[r.Volume.ID]
	e.Held[r.Volume.ID] = true
	e.Mu.Unlock()
	e.Publish()
	if !before {
		e.Log.Warn("record kept in memory until the store can be written", "op", "store", "volume", r.Volume.ID, "err", err)
	}
}

// Unwritten returns the ids of the volumes whose newest record is in memory only, sorted.
func (e *Ledger) Unwritten() []string {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return slices.Sorted(maps.Keys(e.Held))
}

// WriteHeld writes the records that were kept in memory, up to the first that cannot be
// written.
func (e *Ledger) WriteHeld() {
	for _, id := range e.Unwritten() {
		if !e.writeOne(id) {
			return
		}
	}
}

func (e *Ledger) writeOne(id string) bool {
	e.Writing.Lock()
	defer e.Writing.Unlock()
	e.Mu.Lock()
	r, held := e.Records[id], e.Held[id]
	e.Mu.Unlock()
	return !held || r == nil || e.Put(*r) == nil
}

// WriteHeldAside runs WriteHeld outside the goroutine of Run: the disk of the store may hang.
func (e *Ledger) WriteHeldAside() {
	if len(e.Unwritten()) == 0 || !e.writesHeld.CompareAndSwap(false, true) {
		return
	}
	e.InBackground("write records", func() {
		defer e.writesHeld.Store(false)
		e.WriteHeld()
	})
}
