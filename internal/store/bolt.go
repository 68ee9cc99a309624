package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/drivebay/drivebay"
	bolt "go.etcd.io/bbolt"
)

var (
	metaBucket       = []byte("meta")
	recordsBucket    = []byte("records")
	eventsBucket     = []byte("events")
	quarantineBucket = []byte("quarantine") // entries that could not be decoded, under "bucket/key"
)

// Bolt is a store in one bbolt file.
type Bolt struct{ *database }

// Records returns the records of all drives. It moves a record that does not decode into
// quarantine and returns the others.
func (b *Bolt) Records() (map[string]drivebay.Record, error) {
	return entries[drivebay.Record](b, recordsBucket)
}

// PutRecords stores records in one transaction.
func (b *Bolt) PutRecords(records map[string]drivebay.Record) error {
	encoded, err := encodeRecords(records)
	if err != nil || len(encoded) == 0 {
		return err
	}
	return b.update("write records", func(tx *bolt.Tx) error {
		bucket := tx.Bucket(recordsBucket)
		for id, v := range encoded {
			if err := bucket.Put([]byte(id), seal([]byte(id), v)); err != nil {
				return fmt.Errorf("drive %s: %w", id, err)
			}
		}
		return nil
	})
}

// DeleteRecords deletes records of drives; a record that does not exist is no error.
func (b *Bolt) DeleteRecords(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return b.update("delete records", func(tx *bolt.Tx) error {
		bucket := tx.Bucket(recordsBucket)
		for _, id := range ids {
			if err := bucket.Delete([]byte(id)); err != nil {
				return fmt.Errorf("drive %s: %w", id, err)
			}
		}
		return nil
	})
}

// AppendEvents stores events under their numbers and deletes those that are too old, in
// one transaction. An event that is stored twice is stored once.
func (b *Bolt) AppendEvents(events []drivebay.Event) error {
	encoded, err := encodeEvents(events)
	if err != nil || len(encoded) == 0 {
		return err
	}
	return b.update("write events", func(tx *bolt.Tx) error {
		bucket := tx.Bucket(eventsBucket)
		last := bucket.Sequence()
		for i, v := range encoded {
			key := eventKey(events[i].Seq)
			if err := bucket.Put(key, seal(key, v)); err != nil {
				return fmt.Errorf("event %d: %w", events[i].Seq, err)
			}
			last = max(last, events[i].Seq)
		}
		if err := trim(bucket, oldestKept(last)); err != nil {
			return err
		}
		// The bucket's sequence survives the loss of the newest event: no number is
		// given twice.
		return bucket.SetSequence(last)
	})
}

func trim(bucket *bolt.Bucket, oldest uint64) error {
	c := bucket.Cursor()
	for k, _ := c.First(); k != nil && binary.BigEndian.Uint64(k) < oldest; k, _ = c.First() {
		if err := c.Delete(); err != nil {
			return fmt.Errorf("drop old events: %w", err)
		}
	}
	return nil
}

// Events returns at most limit events newer than after, oldest first; a limit of
// 0 means all.
func (b *Bolt) Events(after uint64, limit int) ([]drivebay.Event, error) {
	if after+1 == 0 {
		return nil, nil
	}
	var out []drivebay.Event
	err := b.scan(eventsBucket, eventKey(after+1), func(k, v []byte) (bool, error) {
		var e drivebay.Event
		if err := json.Unmarshal(v, &e); err != nil {
			return true, err
		}
		if !bytes.Equal(k, eventKey(e.Seq)) {
			return true, fmt.Errorf("event %d is not where it belongs", e.Seq)
		}
		out = append(out, e)
		return limit <= 0 || len(out) < limit, nil
	})
	return out, err
}

// LastEvent returns the number of the newest event ever stored.
func (b *Bolt) LastEvent() (last uint64, err error) {
	err = b.view("read events", func(tx *bolt.Tx) error {
		if bucket := tx.Bucket(eventsBucket); bucket != nil {
			last = bucket.Sequence()
		}
		return nil
	})
	return last, err
}

func eventKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }
