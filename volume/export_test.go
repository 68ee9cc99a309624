package volume

import "context"

// Tick is a round as the clock makes one.
func (e *Engine) Tick(ctx context.Context) {
	e.watch(ctx)
	e.publish()
}

// Adopting looks at the drives now, and takes in what it saw when it is called.
func (e *Engine) Adopting(ctx context.Context) (take func() error, err error) {
	s := e.drives.Snapshot()
	err = e.look(ctx, s)
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.index
	return func() error { return e.adoptFrom(ctx, s, x) }, err
}

// CopyProgress is how far the copy of a volume is, at this moment.
func (e *Engine) CopyProgress(id string) (done, total uint64, ok bool) {
	m := e.moves.of(id)
	if m == nil {
		return 0, 0, false
	}
	return m.copied.Load() / 2, m.total.Load(), m.total.Load() > 0
}

// Unlabelled is nil if nothing of LVM is on a drive.
func (e *Engine) Unlabelled(ctx context.Context, drive string) error { return e.unlabelled(ctx, drive) }
