package daemon

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// hangups delivers SIGHUP until ctx ends.
func hangups(ctx context.Context) <-chan os.Signal {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGHUP)
	context.AfterFunc(ctx, func() { signal.Stop(ch) })
	return ch
}
