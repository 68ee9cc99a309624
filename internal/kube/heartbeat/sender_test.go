package heartbeat

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
)

// rooms counts the questions for the room of a class.
type rooms struct {
	Volumes
	asked int
	err   error
}

func (r *rooms) Capacity(_ context.Context, c drivebay.Class) (drivebay.Capacity, error) {
	r.asked++
	if c.Backing == drivebay.BackingThin {
		return drivebay.Capacity{}, fmt.Errorf("thin: %w", drivebay.ErrNoSupport)
	}
	return drivebay.Capacity{Available: 9, Largest: 5, Smallest: 1}, r.err
}

// TestReportIsAskedForOnce: a renewal of the Lease of a node on which nothing changes does not compute the room of every class.
func TestReportIsAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &rooms{}
		s := New(Options{Volumes: v})
		first := s.current(t.Context())
		all := v.asked
		if len(first.Room) != 4*4*2 || first.Mirrored {
			t.Fatalf("%+v", first)
		}
		asks := func(what string, again bool) {
			t.Helper()
			v.asked = 0
			r := s.current(t.Context())
			if r.Mirrored = false; v.err == nil && !reflect.DeepEqual(r, first) {
				t.Errorf("%s: %+v", what, r)
			}
			if want := map[bool]int{true: all}[again]; v.asked != want {
				t.Errorf("%s: asked %d times, want %d", what, v.asked, want)
			}
		}
		asks("nothing changed", false)
		s.Mirrored(true)
		if asks("all volumes have objects", false); !s.current(t.Context()).Mirrored {
			t.Error("the report does not say that all volumes have objects")
		}
		s.stale.Store(true)
		asks("a drive changed", true)
		asks("after that", false)
		v.err = drivebay.ErrUnavailable
		time.Sleep(reportAge)
		asks("it is old", true)
		asks("a drive was not read", true)
		v.err = nil
		asks("it was read", true)
		asks("nothing changed again", false)
	})
}
