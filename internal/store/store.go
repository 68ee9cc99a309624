// Package store keeps what is worth remembering: one record a drive, a volume and
// a snapshot, and the newest events. Losing it loses no volume and no data: a drive
// is known again the next time it is seen, and a volume by what its piece of the
// drive is called.
//
// Every backend passes the one suite of package storetest.
package store

import (
	"encoding/json"
	"fmt"

	"github.com/drivebay/drivebay"
)

// MaxEvents is how many events are kept; the oldest go first.
const MaxEvents = 10_000

// encodeRecords turns records into what is stored. A record that cannot be
// encoded is an error that names its drive, before anything is written.
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

// encodeEvents checks the numbers of events too: they are the keys.
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

// oldestKept is the first event number that stays when last is the newest.
func oldestKept(last uint64) uint64 {
	if last <= MaxEvents {
		return 1
	}
	return last - MaxEvents + 1
}
