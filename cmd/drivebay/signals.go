package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal ends the context at the first SIGINT or SIGTERM. By then the signals have
// their default action again: a second one ends the process at once.
func untilSignal(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-ch:
		case <-ctx.Done():
		}
		signal.Stop(ch)
		cancel()
	}()
	return ctx
}
