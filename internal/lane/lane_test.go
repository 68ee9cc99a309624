package lane

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
)

type wallClock struct{}

func (wallClock) Now() time.Time                         { return time.Now() }
func (wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// A question that the kernel never answers costs its asker his patience and the
// next one nothing but a refusal; when the kernel lets go, the lane is free.
func TestLaneHoldsOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, release := New(), make(chan struct{})
		hang := func(context.Context) (int, error) { <-release; return 1, nil }
		short := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		if _, err := Through(short(), l, wallClock{}, hang); !errors.Is(err, drivebay.ErrTimeout) {
			t.Errorf("a hung question: %v", err)
		}
		began := time.Now()
		if _, err := Through(short(), l, wallClock{}, hang); !errors.Is(err, drivebay.ErrBusy) {
			t.Errorf("a second question: %v", err)
		}
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("the second asker waited %v", waited)
		}
		if held := l.Occupied(time.Now()); held != 2*time.Second {
			t.Errorf("the lane is held for %v", held)
		}
		close(release)
		synctest.Wait()
		if held := l.Occupied(time.Now()); held != 0 {
			t.Errorf("a free lane is held for %v", held)
		}
		got, err := Through(short(), l, wallClock{}, func(context.Context) (int, error) { return 7, nil })
		if got != 7 || err != nil {
			t.Errorf("after the hang: %v, %v", got, err)
		}
	})
}

func TestLaneSurvivesPanic(t *testing.T) {
	l := New()
	for range 2 {
		_, err := Through(t.Context(), l, wallClock{}, func(context.Context) (int, error) { panic("short page") })
		if err == nil {
			t.Fatal("a panic is no error")
		}
	}
}

// TestLaneEndedContext: no request begins for a caller whose context has ended.
func TestLaneEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		_, err := Through(ctx, New(), wallClock{}, func(context.Context) (int, error) {
			t.Error("a request began")
			return 0, nil
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, drivebay.ErrTimeout) {
			t.Fatalf("an ended context: %v", err)
		}
	}
}

type device struct{ closed bool }

func (d *device) Close() error { d.closed = true; return nil }

// TestLateAnswerIsClosed: a device that opens after its caller has gone does not stay open, and the
// lane is not free before it is closed.
func TestLateAnswerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, d := New(), new(device)
		ctx, end := context.WithCancel(t.Context())
		opened, err := Through(ctx, l, wallClock{}, func(context.Context) (*device, error) {
			end()
			synctest.Wait() // the caller goes
			return d, nil
		})
		if opened != nil || !errors.Is(err, drivebay.ErrTimeout) {
			t.Fatalf("%v, %v", opened, err)
		}
		if _, err := Through(t.Context(), l, wallClock{}, func(context.Context) (int, error) { return 0, nil }); err != nil || !d.closed {
			t.Errorf("the lane is free, %v, and the device is closed: %v", err, d.closed)
		}
		if opened, err = Through(t.Context(), l, wallClock{}, func(context.Context) (*device, error) { return new(device), nil }); err != nil || opened.closed {
			t.Errorf("in time: %v, %v", opened, err)
		}
	})
}

// TestAnswerAtTheEnd: a device that opens while the context of its caller ends is the caller's, or closed.
func TestAnswerAtTheEnd(t *testing.T) {
	for range 1000 {
		l, d := New(), new(device)
		ctx, end := context.WithCancel(t.Context())
		opened, err := Through(ctx, l, wallClock{}, func(context.Context) (*device, error) { end(); return d, nil })
		if _, err := Through(t.Context(), l, wallClock{}, func(context.Context) (int, error) { return 0, nil }); err != nil {
			t.Fatal(err)
		}
		if got := err == nil; got == d.closed || got != (opened == d) {
			t.Fatalf("got %v, %v; closed %v", opened, err, d.closed)
		}
	}
}
