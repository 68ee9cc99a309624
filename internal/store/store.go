// Package store keeps one record for each drive, volume and snapshot, and the newest
// events. Its loss loses no volume and no data: a drive gets a new record the next time it
// is listed, and a volume is found by the name of its partition or logical volume.
//
// Every backend passes the test suite of package storetest.
package store

import (
	"encoding/json"
	"fmt"

	"github.com/drivebay/drivebay"
)

// MaxEvents is how many events are kept; the oldest are deleted first.
const MaxEvents = 10_000

// encodeRecords encodes records for the store. It fails before anything is written, with
// the drive's name, if a record cannot be encoded.
func encodeRecords(records map[string]drivebay.Record) (map[string][]byte, error) {
	out := make(map[string][]byte, len(records))
	for id, r := range records {
		b, err := encode("drive", id, r)
		if err != nil {
			return nil, err
		}
		out[id] = b
	}
	return out, nil
}

// encodeEvents encodes events, and refuses an event without a number: it is the key.
func encodeEvents(events []drivebay.Event) ([][]byte, error) {
	out := make([][]byte, len(events))
	for i, e := range events {
		if e.Seq == 0 {
			return nil, fmt.Errorf("event %q of drive %q without a number: %w", e.Kind, e.Drive, drivebay.ErrInvalid)
		}
		b, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		out[i] = b
	}
	return out, nil
}

// oldestKept returns the number of the oldest event that is kept when last is the newest.
func oldestKept(last uint64) uint64 {
	if last <= MaxEvents {
		return 1
	}
	return last - MaxEvents + 1
}
