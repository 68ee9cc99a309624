package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
)

// While the record store cannot be written, or a write to it does not end, volumes are still staged,
// published, unpublished and unstaged: the mount table shows the same as their records. What must
// outlive the daemon to be safe (that a volume is made, moved, wiped or removed, or which leg of a
// mirror is the newest) is written first, by Change, or is not done.

// NotStored returns the error for a record that must be written first and cannot be.
func NotStored(err error) error {
	return fmt.Errorf("%w: the record store cannot be written: %w; repair the disk of the state directory and retry", drivebay.ErrUnavailable, err)
}

// storeTime is how long a call waits for the store to write a record that may also be written later.
// While a write is late, calls do not wait for others.
const storeTime = time.Second

var errLate = fmt.Errorf("a write has not ended after %v: the disk may hang", storeTime)

// ChangeSoon changes facts in a record that can be found again on the machine. If the store
// does not write the record in time, it is kept in memory and written later.
func (e *Ledger) ChangeSoon(id string, f func(*drivebay.VolumeRecord) error) (drivebay.VolumeRecord, error) {
	return e.changeSoon(id, f, e.Publish)
}

// ChangeUnseen is ChangeSoon for facts that no view shows: the set of volumes is not computed again.
func (e *Ledger) ChangeUnseen(id string, f func(*drivebay.VolumeRecord) error) (drivebay.VolumeRecord, error) {
	return e.changeSoon(id, f, func() {})
}

func (e *Ledger) changeSoon(id string, f func(*drivebay.VolumeRecord) error, show func()) (drivebay.VolumeRecord, error) {
	if !e.changing.lock(id, e.Machine.After(storeTime)) {
		return drivebay.VolumeRecord{}, fmt.Errorf("volume %s: %w", id, NotStored(errLate))
	}
	defer e.changing.unlock(id)
	r, err := e.edited(id, f)
	if err == nil {
		e.putSoon(r, show)
	}
	return r, err
}

// PutSoon is Put for facts that can be found again on the machine.
func (e *Ledger) PutSoon(r drivebay.VolumeRecord) error {
	if !e.changing.lock(r.Volume.ID, e.Machine.After(storeTime)) {
		return fmt.Errorf("volume %s: %w", r.Volume.ID, NotStored(errLate))
	}
	defer e.changing.unlock(r.Volume.ID)
	e.putSoon(r, e.Publish)
	return nil
}

// putSoon makes a record count, calls show, and has the record written. Its lock in changing is held.
func (e *Ledger) putSoon(r drivebay.VolumeRecord, show func()) {
	e.Mu.Lock()
	e.Records[r.Volume.ID], e.sorted = &r, nil
	logged := e.Held[r.Volume.ID]
	e.Held[r.Volume.ID] = logged
	written := e.queueWrite(r.Volume.ID)
	e.Mu.Unlock()
	show()
	if e.late.Load() > 0 {
		return
	}
	select {
	case <-written:
	case <-e.Machine.After(storeTime):
		e.late.Add(1)
		e.Log.Warn("record kept in memory until the store has written it", "op", "store", "volume", r.Volume.ID, "err", errLate)
		e.InBackground("late write", func() { <-written; e.late.Add(-1) })
	}
}

// queueWrite has a goroutine write the newest record of a volume, and returns a channel that is
// closed once it has tried. Ledger.Mu is held.
func (e *Ledger) queueWrite(id string) <-chan struct{} {
	if over := e.queued[id]; over != nil { // it has not read the record yet
		return over
	}
	over := make(chan struct{})
	if e.queued == nil {
		e.queued = map[string]chan struct{}{}
	}
	e.queued[id] = over
	e.InBackground("write record", func() {
		defer close(over)
		e.storing.lock(id, nil)
		defer e.storing.unlock(id)
		e.Mu.Lock()
		delete(e.queued, id)
		e.Mu.Unlock()
		_ = e.writeOne(id) // a tick tries again
	})
	return over
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
		e.storing.lock(id, nil)
		err := e.writeOne(id)
		e.storing.unlock(id)
		if err != nil {
			return
		}
	}
}

// writeOne writes the newest record of a volume if only the memory has it. Its lock in storing is
// held.
func (e *Ledger) writeOne(id string) error {
	e.Mu.Lock()
	r := e.Records[id]
	_, held := e.Held[id]
	e.Mu.Unlock()
	if !held || r == nil {
		return nil
	}
	err := e.Store.PutVolume(*r)
	e.Mu.Lock()
	defer e.Mu.Unlock()
	switch {
	case err != nil && !e.Held[id]:
		e.Held[id] = true
		e.Log.Warn("record kept in memory until the store can be written", "op", "store", "volume", id, "err", err)
	case err == nil && e.Records[id] == r:
		delete(e.Held, id)
	}
	return err
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
