package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	bolt "go.etcd.io/bbolt"
)

// The history of the drives. Its keys are level, time and drive: the chunks that are written together are
// neighbors, and a write appends to the end of a level. So an hour of 100 drives changes a few pages,
// where keys by drive would change one page for each.

var historyBucket = []byte("history")

// historyEntry is a chunk as it is stored: an object, so that it can carry a checksum.
type historyEntry struct {
	Points []byte `json:"points"`
}

const historyTime = 1 + 8 // bytes of the level and the time in a key

func historyKey(level drivebay.HistoryLevel, at time.Time, drive string) []byte {
	seconds := uint64(0)
	if !at.IsZero() {
		seconds = uint64(max(at.Unix(), 0))
	}
	return append(binary.BigEndian.AppendUint64([]byte{byte(level)}, seconds), drive...)
}

// PutHistory adds chunks and deletes those of each level that begin before a time, in one transaction.
func (b *Bolt) PutHistory(add []drivebay.HistoryChunk, before [drivebay.HistoryLevels]time.Time) error {
	values := make([][]byte, len(add))
	for i, c := range add {
		v, err := encode("history of drive", c.Drive, historyEntry{c.Data})
		if err != nil {
			return err
		}
		values[i] = v
	}
	return b.update("write the history", func(tx *bolt.Tx) error {
		bucket := tx.Bucket(historyBucket)
		bucket.FillPercent = 0.9 // keys only grow: half-empty pages would stay so
		for i, c := range add {
			key := historyKey(c.Level, c.Start, c.Drive)
			if err := bucket.Put(key, seal(key, values[i])); err != nil {
				return fmt.Errorf("drive %s: %w", c.Drive, err)
			}
		}
		for level, at := range before {
			if err := dropHistory(bucket, drivebay.HistoryLevel(level), at); err != nil {
				return fmt.Errorf("drop old history: %w", err)
			}
		}
		return nil
	})
}

func dropHistory(bucket *bolt.Bucket, level drivebay.HistoryLevel, before time.Time) error {
	first, end := historyKey(level, time.Time{}, ""), historyKey(level, before, "")
	c := bucket.Cursor()
	for k, _ := c.Seek(first); k != nil && bytes.Compare(k, end) < 0; k, _ = c.Seek(first) {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// History returns the chunks of a level that begin at or after a time and before another one (zero: no
// limit), oldest first, of one drive or of all (""). A damaged chunk is left out.
func (b *Bolt) History(level drivebay.HistoryLevel, from, until time.Time, drive string) (out []drivebay.HistoryChunk, err error) {
	end := []byte{byte(level) + 1}
	if !until.IsZero() {
		end = historyKey(level, until, "")
	}
	err = b.view("read the history", func(tx *bolt.Tx) error {
		bucket := tx.Bucket(historyBucket)
		if bucket == nil {
			return nil
		}
		c := bucket.Cursor()
		for k, v := c.Seek(historyKey(level, from, "")); k != nil && bytes.Compare(k, end) < 0; k, v = c.Next() {
			if len(k) < historyTime || drive != "" && string(k[historyTime:]) != drive {
				continue
			}
			var e historyEntry
			if _, err := unseal(k, v); err != nil || json.Unmarshal(v, &e) != nil {
				continue
			}
			at := time.Unix(int64(binary.BigEndian.Uint64(k[1:historyTime])), 0).UTC()
			out = append(out, drivebay.HistoryChunk{Drive: string(k[historyTime:]), Level: level, Start: at, Data: e.Points})
		}
		return nil
	})
	return out, err
}

// PutHistory adds chunks and deletes those of each level that begin before a time.
func (m *Mem) PutHistory(add []drivebay.HistoryChunk, before [drivebay.HistoryLevels]time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range add {
		m.history[string(historyKey(c.Level, c.Start, c.Drive))] = bytes.Clone(c.Data)
	}
	for level, at := range before {
		first, end := string([]byte{byte(level)}), string(historyKey(drivebay.HistoryLevel(level), at, ""))
		for k := range m.history {
			if k >= first && k < end {
				delete(m.history, k)
			}
		}
	}
	return nil
}

// History returns the chunks of a level that begin in an interval, oldest first.
func (m *Mem) History(level drivebay.HistoryLevel, from, until time.Time, drive string) (out []drivebay.HistoryChunk, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, data := range m.history {
		c := drivebay.HistoryChunk{Drive: k[historyTime:], Level: drivebay.HistoryLevel(k[0]), Data: bytes.Clone(data)}
		c.Start = time.Unix(int64(binary.BigEndian.Uint64([]byte(k[1:historyTime]))), 0).UTC()
		if c.Level == level && !c.Start.Before(from) && (until.IsZero() || c.Start.Before(until)) && (drive == "" || c.Drive == drive) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b drivebay.HistoryChunk) int {
		return strings.Compare(string(historyKey(a.Level, a.Start, a.Drive)), string(historyKey(b.Level, b.Start, b.Drive)))
	})
	return out, nil
}
