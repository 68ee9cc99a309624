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
	full  bool
	err   error
}

func (r *rooms) Capacity(_ context.Context, c drivebay.Class) (drivebay.Capacity, error) {
	r.asked++
	if c.Backing == drivebay.BackingThin {
		return drivebay.Capacity{}, fmt.Errorf("thin: %w", drivebay.ErrNoSupport)
	}
	if r.full {
		return drivebay.Capacity{Smallest: 1}, r.err
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

// TestReportOfStart: a node that has not read its drives yet writes another report than a full one.
func TestReportOfStart(t *testing.T) {
	class, err := drivebay.ParseClass(nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, v := range map[bool]*rooms{true: {}, false: {err: drivebay.ErrUnavailable}} {
		v.full = true
		r := New(Options{Volumes: v}).current(t.Context())
		if r.Whole != want || r.Capacity(class).Largest != 0 {
			t.Errorf("%v: %+v", v.err, r)
		}
	}
}

// noMkfs is a node that can make no filesystem.
type noMkfs struct{ rooms }

func (n *noMkfs) Capacity(ctx context.Context, c drivebay.Class) (drivebay.Capacity, error) {
	if c.FSType != "" {
		return drivebay.Capacity{}, fmt.Errorf("filesystem %s: %w", c.FSType, drivebay.ErrNoSupport)
	}
	return n.rooms.Capacity(ctx, c)
}

// TestReportOfBlockVolumes: a node that can make no filesystem has room for block volumes only.
func TestReportOfBlockVolumes(t *testing.T) {
	class, err := drivebay.ParseClass(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := New(Options{Volumes: &noMkfs{}}).current(t.Context())
	if has := r.Capacity(class); has.Largest != 0 {
		t.Errorf("with a filesystem: %+v", has)
	}
	if class.FSType = ""; r.Capacity(class).Largest == 0 || !r.Whole {
		t.Errorf("block: %+v", r)
	}
}
