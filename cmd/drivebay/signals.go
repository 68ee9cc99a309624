package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal ends the context at the first SIGINT or SIGTERM. From then on the
// signals do what they do by default, so that a second one ends us at once.
func untilSignal(parent context.Context) context.Context {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

// hangups delivers SIGHUP until ctx ends.
func hangups(ctx context.Context) <-chan os.Signal {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGHUP)
	context.AfterFunc(ctx, func() { signal.Stop(ch) })
	return ch
}
