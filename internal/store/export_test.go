package store

import "time"

// MissingTime sets how long a removed file stays missing, and returns what it was.
func MissingTime(d time.Duration) time.Duration {
	was := missingTime
	missingTime = d
	return was
}

// Hang has a write under way since a moment; the zero time ends it.
func (b *Bolt) Hang(since time.Time) {
	if since.IsZero() {
		b.endWrite(nil)
		return
	}
	b.beginWrite()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.health.began = since
}

// Fail has the last write end with an error.
func (b *Bolt) Fail(err error) {
	b.beginWrite()
	b.endWrite(err)
}

// ReadOnly makes the store refuse writes, as after an open on a disk that takes none.
func (b *Bolt) ReadOnly(cause error) {
	b.readOnly, b.cause = true, cause
	b.Fail(cause)
}

// OpenReadOnly opens a store as Open does on a disk that takes no writes.
func OpenReadOnly(path string, cause error) *Bolt {
	b := &Bolt{&database{path: path, readOnly: true, cause: cause}}
	_ = b.openReadOnly()
	return b
}

// Written returns how many bytes of pages the store has written since it was opened, without the one page of
// metadata of each transaction (bbolt, Tx.Commit).
func Written(b *Bolt) int64 {
	stats := b.db.Stats().TxStats
	return stats.GetPageAlloc()
}
