package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestExit(t *testing.T) {
	c := newGuest(t)
	for script, want := range map[string]ExitError{
		"exit 0":        {},
		"exit 3":        {Code: 3},
		"exit 255":      {Code: 255},
		"kill -TERM $$": {Code: 128 + 15, Signal: syscall.SIGTERM},
		"kill -KILL $$": {Code: 128 + 9, Signal: syscall.SIGKILL},
	} {
		err := start(t, c, sh(script), Streams{}).Wait()
		if want.Code == 0 {
			if err != nil {
				t.Errorf("%s: %v", script, err)
			}
			continue
		}
		e, ok := errors.AsType[*ExitError](err)
		if !ok || e.Code != want.Code || e.Signal != want.Signal || e.Command[2] != script {
			t.Errorf("%s: %#v, want %#v", script, err, want)
		}
	}
}

func TestExitErrorSaysWhy(t *testing.T) {
	c := newGuest(t)
	out, err := c.Output(t.Context(), "sh", "-c", "echo partly; echo no   such   drive >&2; exit 4")
	if out != "partly\n" {
		t.Errorf("output %q", out)
	}
	for _, want := range []string{"sh -c", "exit status 4", "no such drive"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	if _, err := c.Output(t.Context(), "sh", "-c", "kill -KILL $$"); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("killed by a signal: %v", err)
	}
}

func TestNeverStarted(t *testing.T) {
	c := newGuest(t)
	for _, cmd := range []Command{
		{},
		{Argv: []string{"no-such-program"}},
		{Argv: []string{"/no/such/program"}},
		{Argv: []string{"true"}, Dir: "/no/such/folder"},
		{Argv: []string{"no-such-program"}, Terminal: &Window{}},
	} {
		p, err := c.Start(t.Context(), cmd, Streams{In: strings.NewReader("unread")})
		if err == nil {
			t.Errorf("%v in %q started as %d", cmd.Argv, cmd.Dir, p.PID)
			continue
		}
		if _, ended := errors.AsType[*ExitError](err); ended {
			t.Errorf("%v: what was never started has ended: %v", cmd.Argv, err)
		}
		if len(cmd.Argv) > 0 && !strings.Contains(err.Error(), cmd.Argv[0]) {
			t.Errorf("%v: %v", cmd.Argv, err)
		}
	}
}

func TestEnvironmentAndFolder(t *testing.T) {
	t.Setenv("LAB_TEST_OWN", "guest's")
	c := newGuest(t)
	cmd := sh(`echo "$LAB_TEST_OWN $LAB_TEST_ADDED"; pwd`)
	cmd.Env, cmd.Dir = []string{"LAB_TEST_ADDED=added"}, "/usr"
	out := newTranscript()
	if err := start(t, c, cmd, Streams{Out: out}).Wait(); err != nil || out.String() != "guest's added\n/usr\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestStreamsApartAndInOrder(t *testing.T) {
	c := newGuest(t)
	var out, errs bytes.Buffer
	script := "i=0; while [ $i -lt 3000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done"
	if err := start(t, c, sh(script), Streams{Out: &out, Err: &errs}).Wait(); err != nil {
		t.Fatal(err)
	}
	for word, got := range map[string]string{"out": out.String(), "err": errs.String()} {
		var want strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&want, "%s %d\n", word, i)
		}
		if got != want.String() {
			t.Errorf("%s: %d bytes, want %d; begins %.40q", word, len(got), want.Len(), got)
		}
	}
}

func TestStdin(t *testing.T) {
	c := newGuest(t)
	if out, err := c.Output(t.Context(), "cat"); err != nil || out != "" {
		t.Errorf("with nothing to read: %q, %v", out, err)
	}
	out := newTranscript()
	in, w := io.Pipe()
	p := start(t, c, Command{Argv: []string{"cat"}}, Streams{In: in, Out: out})
	for _, line := range []string{"first\n", "second\n"} { // each comes back before the next is sent
		io.WriteString(w, line)
		out.await(t, line)
	}
	select {
	case <-p.Done():
		t.Fatal("ended before its input did")
	default:
	}
	w.Close()
	if err := p.Wait(); err != nil || out.String() != "first\nsecond\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestUnreadStdin: a command that ends without reading does not wait for its input.
func TestUnreadStdin(t *testing.T) {
	c := newGuest(t)
	in, w := io.Pipe()
	defer w.Close()
	p := start(t, c, sh("exit 5"), Streams{In: in})
	await(t, "the end", p.Done())
	if e, ok := errors.AsType[*ExitError](p.Wait()); !ok || e.Code != 5 {
		t.Errorf("ended with %v", p.Wait())
	}
}

func TestManyBytes(t *testing.T) {
	c := newGuest(t)
	sent := make([]byte, 20_000_000)
	rand.NewChaCha8([32]byte{1}).Read(sent)
	var got bytes.Buffer
	if err := start(t, c, Command{Argv: []string{"cat"}}, Streams{In: bytes.NewReader(sent), Out: &got}).Wait(); err != nil {
		t.Fatal(err)
	}
	if got.Len() != len(sent) || sha256.Sum256(got.Bytes()) != sha256.Sum256(sent) {
		t.Errorf("%d bytes came back of %d, or others", got.Len(), len(sent))
	}
}

// TestManyCommands: the first 50 come at once, before there is a connection.
func TestManyCommands(t *testing.T) {
	c := newGuest(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			var out bytes.Buffer
			p, err := c.Start(ctx, sh(fmt.Sprintf("cat; echo %d; exit %d", i, i)), Streams{In: strings.NewReader("in "), Out: &out})
			if err != nil {
				t.Error(err)
				return
			}
			err = p.Wait()
			e, _ := errors.AsType[*ExitError](err)
			if out.String() != fmt.Sprintf("in %d\n", i) || (i == 0) != (err == nil) || (e != nil && e.Code != i) {
				t.Errorf("command %d: %q, %v", i, out.String(), err)
			}
		})
	}
	wg.Wait()
}

// shut is a writer that takes nothing until it is opened.
type shut struct {
	open chan struct{}
	took int
}

func (w *shut) Write(b []byte) (int, error) {
	<-w.open
	w.took += len(b)
	return len(b), nil
}

// works proves that the wire carries something both ways, more than its buffers hold.
func works(t *testing.T, c *Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	big := bytes.Repeat([]byte("drivebay"), 1<<20)
	name := t.TempDir() + "/big"
	if err := c.Put(ctx, name, 0o600, bytes.NewReader(big)); err != nil {
		t.Fatal(err)
	}
	if b, err := c.Get(ctx, name); err != nil || !bytes.Equal(b, big) {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
}

func TestUnreadOutputHoldsUpNobody(t *testing.T) {
	c := newGuest(t)
	out := &shut{open: make(chan struct{})}
	const size = 64 << 20 // more than all buffers on the way
	p := start(t, c, sh(fmt.Sprintf("head -c %d /dev/zero", size)), Streams{Out: out})
	works(t, c)
	select {
	case <-p.Done():
		t.Fatal("ended although nobody read what it wrote")
	default:
	}
	close(out.open)
	if err := p.Wait(); err != nil || out.took != size {
		t.Errorf("%d bytes of %d, %v", out.took, size, err)
	}
}

func TestUnreadInputHoldsUpNobody(t *testing.T) {
	c := newGuest(t)
	for range 3 {
		p := start(t, c, sh("sleep 1000"), Streams{In: bytes.NewReader(make([]byte, 16<<20))})
		defer p.Kill()
	}
	works(t, c)
}

// zeros are without end; taken counts them.
type zeros struct{ taken atomic.Int64 }

func (r *zeros) Read(b []byte) (int, error) {
	clear(b)
	r.taken.Add(int64(len(b)))
	return len(b), nil
}

// TestKillUnread: a command is killed although its input is stuck and nothing
// else stirs on the wire.
func TestKillUnread(t *testing.T) {
	c := newGuest(t)
	in := &zeros{}
	p := start(t, c, Command{Argv: []string{"sleep", "1000"}}, Streams{In: in})
	for last := int64(-1); last != in.taken.Load(); time.Sleep(100 * time.Millisecond) {
		last = in.taken.Load()
	}
	killed := make(chan struct{})
	go func() {
		p.Kill()
		close(killed)
	}()
	await(t, "the end", killed)
	awaitDeath(t, p.PID)
}

// TestOutputOutlivesItsCommand: what a command wrote arrives although it has long
// ended when somebody reads it.
func TestOutputOutlivesItsCommand(t *testing.T) {
	c := newGuest(t)
	out := &shut{open: make(chan struct{})}
	counter := t.TempDir() + "/counter"
	// Writes of less than PIPE_BUF happen whole or not at all (pipe(7)).
	p := start(t, c, sh(`i=0; while :; do printf %1000s; i=$((i+1)); echo $i >`+counter+`; done`), Streams{Out: out})
	count := func() int {
		b, _ := os.ReadFile(counter)
		n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
		return n
	}
	wrote := 0
	for still := 0; still < 20; time.Sleep(25 * time.Millisecond) { // until all buffers on the way are full
		n := count()
		if still++; n == 0 || n != wrote {
			wrote, still = n, 0
		}
	}
	if err := p.Signal(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitDeath(t, p.PID)
	wrote = max(wrote, count())         // on a busy host the buffers may not have been full
	time.Sleep(1200 * time.Millisecond) // longer than somebody may be willing to wait
	close(out.open)
	if e, ok := errors.AsType[*ExitError](p.Wait()); !ok || e.Signal != syscall.SIGKILL || out.took != 1000*wrote && out.took != 1000*(wrote+1) { // it counts after it has written
		t.Errorf("%d bytes of %d, %v", out.took, 1000*wrote, p.Wait())
	}
}

// family starts a command with a child and a grandchild and says who they are.
func family(t *testing.T, c *Client, ctx context.Context) (*Process, []int) {
	t.Helper()
	out := newTranscript()
	p, err := c.Start(ctx, sh("sleep 1000 & echo $!; sh -c 'sleep 1000 & echo $!; wait' & echo $!; wait"), Streams{Out: out})
	if err != nil {
		t.Fatal(err)
	}
	pids := append(out.pids(t, 3), p.PID)
	for _, pid := range pids {
		if !alive(pid) {
			t.Fatalf("process %d does not run", pid)
		}
	}
	return p, pids
}

func TestKillTakesTheFamily(t *testing.T) {
	c := newGuest(t)
	other, _ := family(t, c, t.Context())
	for name, end := range map[string]func(*Process, func()){
		"Kill":           func(p *Process, _ func()) { p.Kill() },
		"end of context": func(_ *Process, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p, pids := family(t, c, ctx)
			end(p, cancel)
			await(t, "the end", p.Done())
			if err := p.Wait(); err == nil {
				t.Error("a command that was killed ended well")
			}
			awaitDeath(t, pids...)
		})
	}
	if !alive(other.PID) {
		t.Error("a command died that nobody killed")
	}
	other.Kill()
}

// TestOrphan: a command has ended when it has, not when what it left behind does.
func TestOrphan(t *testing.T) {
	for name, window := range map[string]*Window{"pipes": nil, "terminal": {}} {
		t.Run(name, func(t *testing.T) {
			c := newGuest(t)
			out := newTranscript()
			cmd := sh("trap '' HUP; sleep 1000 & echo $!")
			cmd.Terminal = window
			p := start(t, c, cmd, Streams{Out: out})
			await(t, "the end", p.Done())
			if err := p.Wait(); err != nil {
				t.Errorf("ended with %v", err)
			}
			orphan := out.pids(t, 1)[0]
			defer syscall.Kill(orphan, syscall.SIGKILL)
			if !alive(orphan) {
				t.Error("it took its child with it")
			}
		})
	}
}

func TestSignal(t *testing.T) {
	c := newGuest(t)
	out := newTranscript()
	p := start(t, c, sh("trap 'exit 7' USR1; echo ready; while :; do sleep 0.01; done"), Streams{Out: out})
	out.await(t, "ready")
	if err := p.Signal(t.Context(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if e, ok := errors.AsType[*ExitError](p.Wait()); !ok || e.Code != 7 || e.Signal != 0 {
		t.Errorf("ended with %v", p.Wait())
	}
	p = start(t, c, Command{Argv: []string{"sleep", "1000"}}, Streams{})
	if err := p.Signal(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e, ok := errors.AsType[*ExitError](p.Wait()); !ok || e.Signal != syscall.SIGTERM {
		t.Errorf("ended with %v", p.Wait())
	}
	for _, pid := range []int{-1, 0, 1} { // all processes, the agent's own group, the guest itself
		if err := (&Process{PID: pid, client: c}).Signal(t.Context(), 0); err == nil {
			t.Errorf("a signal to %d was sent", pid)
		}
	}
}
