package volume

import "context"

// Tick is a round as the clock makes one.
func (e *Engine) Tick(ctx context.Context) {
	e.watch(ctx)
	e.publish()
}
