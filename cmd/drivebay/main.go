// Command drivebay is a daemon that watches the drives of a machine, and the commands
// that ask the daemon.
package main

import (
	"context"
	"os"
	"time"

	"github.com/drivebay/drivebay/cmd/drivebay/internal/plugin"
	"github.com/drivebay/drivebay/internal/host"
)

func main() {
	ctx := untilSignal(context.Background())
	p := plugin.New(os.Args[0], version)
	a := &app{
		in: os.Stdin, out: p.Output(os.Stdout), err: p.Output(os.Stderr), plugin: p,
		getenv: os.Getenv, environ: os.Environ(), now: time.Now, simulate: simulated,
		tty: isTerminal(os.Stdout), columns: func() int { return host.TerminalColumns(os.Stdout) },
	}
	os.Exit(a.run(ctx, os.Args[1:]))
}

// isTerminal reports whether a file is a terminal: a character device that is not the
// null device.
func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	if err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(st, null)
}
