package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestTwice: a machine that does not come up in time gets one more try, one that
// fails for a reason of its own does not, and neither when nobody waits any more.
func TestTwice(t *testing.T) {
	broken := errors.New("no such drive")
	asleep := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	well := func(context.Context) error { return nil }
	fails := func(context.Context) error { return broken }
	crashes := func(context.Context) error { return fmt.Errorf("start: %w", errEnded) }
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		tries []func(context.Context) error
		want  error
	}{
		{"at once", t.Context(), []func(context.Context) error{well}, nil},
		{"asleep", t.Context(), []func(context.Context) error{asleep, well}, nil},
		{"asleep, then broken", t.Context(), []func(context.Context) error{asleep, fails}, broken},
		{"broken", t.Context(), []func(context.Context) error{fails}, broken},
		{"crashed", t.Context(), []func(context.Context) error{crashes, well}, nil},
		{"crashed, then broken", t.Context(), []func(context.Context) error{crashes, fails}, broken},
		{"nobody waits", gone, []func(context.Context) error{asleep}, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log strings.Builder
			tried := 0
			err := twice(c.ctx, 10*time.Millisecond, &log, func(ctx context.Context) error {
				tried++
				return c.tries[tried-1](ctx)
			})
			if !errors.Is(err, c.want) || tried != len(c.tries) {
				t.Errorf("%d tries end in %v, want %d and %v", tried, err, len(c.tries), c.want)
			}
			if said := strings.Contains(log.String(), "once more"); said != (tried == 2) {
				t.Errorf("after %d tries it said %q", tried, log.String())
			}
		})
	}
}
