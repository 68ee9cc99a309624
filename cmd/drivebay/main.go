// Command drivebay knows the drives of a machine: a daemon that watches them,
// and the commands that ask it.
package main

import (
	"context"
	"os"
	"time"
)

func main() {
	ctx := untilSignal(context.Background())
	a := &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		getenv: os.Getenv, environ: os.Environ(), now: time.Now,
		tty: isTerminal(os.Stdout),
	}
	os.Exit(a.run(ctx, os.Args[1:]))
}

// isTerminal says whether somebody sits in front of a file: a character device
// that is not the null device.
func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	if err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(st, null)
}
