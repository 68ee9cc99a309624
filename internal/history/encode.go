// Package history keeps what was measured of each drive on the last 90 days of the machine: as it was measured for two days, then
// one point an hour. It decides what is kept and how it is encoded; a Store keeps the bytes.
package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
)

var errEncoding = errors.New("the history of a drive is damaged")

// maxPoints bounds what one chunk may claim to hold.
const maxPoints = 1 << 16

// values returns the values of a point in the order in which they are encoded. The order is that of the
// bits in the mask: a new value is added at the end.
func values(p *drivebay.HistoryPoint) []**int64 {
	return []**int64{&p.Temperature, &p.PercentUsed, &p.Reallocated, &p.MediaErrors, &p.Latency}
}

// Encode encodes points, oldest first: the time since the point before in seconds, a mask of the values that
// were measured, and the difference of each to the last one that was measured. A point of a quiet drive
// takes about 8 bytes.
func Encode(points []drivebay.HistoryPoint) []byte {
	out := binary.AppendUvarint(nil, uint64(len(points)))
	at := int64(0)
	var last [8]int64
	for i := range points {
		p := &points[i]
		out = binary.AppendVarint(out, p.At.Unix()-at)
		at = p.At.Unix()
		mask, all := byte(0), values(p)
		for n, v := range all {
			if *v != nil {
				mask |= 1 << n
			}
		}
		out = append(out, mask)
		for n, v := range all {
			if *v != nil {
				out = binary.AppendVarint(out, **v-last[n])
				last[n] = **v
			}
		}
	}
	return out
}

// Decode decodes what Encode made.
func Decode(b []byte) ([]drivebay.HistoryPoint, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > maxPoints || count > uint64(len(b)) {
		return nil, errEncoding
	}
	b = b[n:]
	next := func() (int64, error) {
		v, n := binary.Varint(b)
		if n <= 0 {
			return 0, errEncoding
		}
		b = b[n:]
		return v, nil
	}
	out := make([]drivebay.HistoryPoint, count)
	at := int64(0)
	var last [8]int64
	for i := range out {
		step, err := next()
		if err != nil || len(b) == 0 {
			return nil, fmt.Errorf("%w: point %d", errEncoding, i)
		}
		at += step
		mask := b[0]
		b = b[1:]
		out[i].At = time.Unix(at, 0).UTC()
		all := values(&out[i])
		if mask>>len(all) != 0 {
			return nil, fmt.Errorf("%w: point %d has a value of a later version", errEncoding, i)
		}
		for k, v := range all {
			if mask&(1<<k) == 0 {
				continue
			}
			step, err := next()
			if err != nil {
				return nil, fmt.Errorf("%w: point %d", errEncoding, i)
			}
			last[k] += step
			value := last[k]
			*v = &value
		}
	}
	if len(b) != 0 {
		return nil, fmt.Errorf("%w: %d bytes too many", errEncoding, len(b))
	}
	return out, nil
}

// merge adds a later point of the same interval: the highest temperature and the longest latency count, and
// of the others the latest.
func merge(into *drivebay.HistoryPoint, p drivebay.HistoryPoint) {
	into.Temperature, into.Latency = higher(into.Temperature, p.Temperature), higher(into.Latency, p.Latency)
	for _, v := range []struct{ into, from **int64 }{{&into.PercentUsed, &p.PercentUsed}, {&into.Reallocated, &p.Reallocated}, {&into.MediaErrors, &p.MediaErrors}} {
		if *v.from != nil {
			*v.into = *v.from
		}
	}
}

func higher(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// Thin returns one point for each step: that of its beginning, with the values of all points in it.
func Thin(points []drivebay.HistoryPoint, step time.Duration) []drivebay.HistoryPoint {
	var out []drivebay.HistoryPoint
	for _, p := range points {
		p.At = p.At.Truncate(step)
		if n := len(out); n > 0 && !p.At.After(out[n-1].At) {
			merge(&out[n-1], p)
			continue
		}
		out = append(out, p)
	}
	return out
}
