package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	maxOutput = 4 << 10         // bytes of a command's output that are kept
	pipeTime  = 2 * time.Second // that the output of a killed command may stay open
)

// command runs a program with the notice as JSON on its standard input. No shell is involved. Exit
// status 0 means delivered; with any other one the notice is sent again.
type command struct {
	argv    []string
	timeout time.Duration
}

func (c *command) deliver(ctx context.Context, n *Notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	out := &firstBytes{left: maxOutput}
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = bytes.NewReader(append(body, '\n')), out, out, "/"
	// The command gets a process group of its own, and at the deadline the whole group is killed:
	// what a script has started would outlive it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipeTime
	err = cmd.Run()
	switch {
	case err == nil, exitedWell(cmd, err):
		return nil
	case ctx.Err() != nil:
		err = fmt.Errorf("no end within %s", c.timeout)
	}
	return fmt.Errorf("%s: %w%s", c.argv[0], err, out.tail())
}

// exitedWell reports whether a command ended with status 0 and left something running that holds its
// output, or did not read its input.
func exitedWell(cmd *exec.Cmd, err error) bool {
	_, exit := errors.AsType[*exec.ExitError](err)
	return !exit && cmd.ProcessState != nil && cmd.ProcessState.Success()
}

// firstBytes keeps the first bytes that are written to it. What a command has left running may still
// write when the error is made.
type firstBytes struct {
	mu   sync.Mutex
	text []byte
	left int
}

func (w *firstBytes) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	keep := min(len(b), w.left)
	w.text, w.left = append(w.text, b[:keep]...), w.left-keep
	return len(b), nil
}

// tail returns the output as the end of an error: one line.
func (w *firstBytes) tail() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(w.text), "?")), " ")
	if text == "" {
		return ""
	}
	return ": " + text
}
