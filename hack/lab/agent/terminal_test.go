package agent

import (
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func onWindow(script string, w Window) Command {
	cmd := sh(script)
	cmd.Terminal = &w
	return cmd
}

func TestTerminal(t *testing.T) {
	c := newGuest(t)
	out, errs := newTranscript(), newTranscript()
	script := "test -t 0 && test -t 1 && test -t 2 && stty size; echo to stderr >&2; exit 3"
	p := start(t, c, onWindow(script, Window{Rows: 31, Cols: 97}), Streams{Out: out, Err: errs})
	if e, ok := errors.AsType[*ExitError](p.Wait()); !ok || e.Code != 3 {
		t.Errorf("ended with %v", p.Wait())
	}
	if out.String() != "31 97\r\nto stderr\r\n" || errs.String() != "" {
		t.Errorf("output %q, errors %q", out, errs)
	}
}

func TestResize(t *testing.T) {
	c := newGuest(t)
	out, other := newTranscript(), newTranscript()
	p := start(t, c, onWindow("trap 'stty size' WINCH; echo ready; while :; do sleep 0.01; done", Window{Rows: 24, Cols: 80}), Streams{Out: out})
	defer p.Kill()
	in, w := io.Pipe()
	defer w.Close()
	q := start(t, c, onWindow("stty size; read answer; stty size", Window{Rows: 25, Cols: 81}), Streams{In: in, Out: other})
	out.await(t, "ready")
	other.await(t, "25 81")
	if err := p.Resize(t.Context(), Window{Rows: 50, Cols: 132}); err != nil {
		t.Fatal(err)
	}
	out.await(t, "50 132") // the command was told
	io.WriteString(w, "\n")
	if err := q.Wait(); err != nil || strings.Count(other.String(), "25 81") != 2 {
		t.Errorf("another terminal says %q, %v", other, err)
	}
}

// TestResizeWhileOthersComeAndGo is for the race detector.
func TestResizeWhileOthersComeAndGo(t *testing.T) {
	c := newGuest(t)
	p := start(t, c, onWindow("exec sleep 1000", Window{}), Streams{})
	defer p.Kill()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 5 {
				q, err := c.Start(t.Context(), onWindow("stty size", Window{Rows: 1, Cols: 2}), Streams{})
				if err == nil {
					err = q.Wait()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 50 {
		if err := p.Resize(t.Context(), Window{Rows: 5, Cols: 6}); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}

// TestTerminalKeys: the terminal is the command's own, so keys of it act on it.
func TestTerminalKeys(t *testing.T) {
	c := newGuest(t)
	for name, test := range map[string]struct {
		key  string
		want syscall.Signal
	}{"interrupt": {"\x03", syscall.SIGINT}, "quit": {"\x1c", syscall.SIGQUIT}, "end of input": {"\x04", 0}} {
		t.Run(name, func(t *testing.T) {
			out := newTranscript()
			in, w := io.Pipe()
			defer w.Close()
			p := start(t, c, onWindow("ulimit -c 0; echo ready; exec cat", Window{}), Streams{In: in, Out: out})
			defer p.Kill()
			out.await(t, "ready")
			io.WriteString(w, test.key)
			await(t, "the end", p.Done())
			e, _ := errors.AsType[*ExitError](p.Wait())
			if test.want == 0 && p.Wait() != nil || test.want != 0 && (e == nil || e.Signal != test.want) {
				t.Errorf("ended with %v", p.Wait())
			}
		})
	}
}

func TestKillOnTerminal(t *testing.T) {
	c := newGuest(t)
	out := newTranscript()
	p := start(t, c, onWindow("sleep 1000 & echo $!; wait", Window{}), Streams{Out: out})
	pids := append(out.pids(t, 1), p.PID)
	p.Kill()
	awaitDeath(t, pids...)
}
