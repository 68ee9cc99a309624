package history

import (
	"reflect"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

var start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func n(v int64) *int64 { return &v }

func TestEncoding(t *testing.T) {
	points := []drivebay.HistoryPoint{
		{At: start, Temperature: n(41), PercentUsed: n(3), Reallocated: n(1 << 61), MediaErrors: n(0), Latency: n(120)},
		{At: start.Add(Step), Temperature: n(-7)},
		{At: start.Add(-time.Hour)},
		{At: start.Add(2 * Step), Reallocated: n(0), Latency: n(9_000_000)},
	}
	is, err := Decode(Encode(points))
	if err != nil || !reflect.DeepEqual(is, points) {
		t.Errorf("%v: %+v", err, is)
	}
	b := Encode(points)
	for i := range b {
		if _, err := Decode(b[:i]); err == nil {
			t.Errorf("the first %d of %d bytes decode", i, len(b))
		}
	}
	if _, err := Decode(append(b, 0)); err == nil {
		t.Error("a byte too many decodes")
	}
	if _, err := Decode([]byte{1, 0, 0x80}); err == nil {
		t.Error("a value of a later version decodes")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode([]drivebay.HistoryPoint{{At: start, Temperature: n(1)}, {At: start.Add(Step), Latency: n(2)}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		points, err := Decode(b)
		if err != nil {
			return
		}
		if again, err := Decode(Encode(points)); err != nil || !reflect.DeepEqual(again, points) {
			t.Fatalf("%v: %+v is not %+v", err, again, points)
		}
	})
}

// An hour keeps its peak, and the last value of a counter.
func TestThin(t *testing.T) {
	out := Thin([]drivebay.HistoryPoint{
		{At: start.Add(Step), Temperature: n(40), Reallocated: n(1), Latency: n(5)},
		{At: start.Add(2 * Step), Temperature: n(61), Reallocated: n(2), Latency: n(900)},
		{At: start.Add(3 * Step), Temperature: n(39), Reallocated: n(7)},
		{At: start.Add(time.Hour), Temperature: n(38)},
	}, time.Hour)
	want := []drivebay.HistoryPoint{{At: start, Temperature: n(61), Reallocated: n(7), Latency: n(900)}, {At: start.Add(time.Hour), Temperature: n(38)}}
	if !reflect.DeepEqual(out, want) {
		t.Errorf("%+v", out)
	}
}

// The latency is the mean of what completed in between; a drive that completed nothing, or whose counters
// began again, has none.
func TestLatency(t *testing.T) {
	var of recorded
	for i, c := range []struct {
		completed, waited uint64
		want              *int64
	}{{100, 50, nil}, {110, 70, n(2000)}, {110, 70, nil}, {5, 1, nil}, {6, 4, n(3000)}} {
		if is := of.latency(&drivebay.Kernel{Completed: c.completed, Waited: c.waited}); !reflect.DeepEqual(is, c.want) {
			t.Errorf("%d: %v", i, is)
		}
	}
}
