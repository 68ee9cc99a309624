// Package qmp speaks QEMU's control protocol (docs/interop/qmp-spec.rst of
// QEMU): one JSON object a line, answers in the order of the commands, events
// in between.
package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Client is one connection; its methods may be called from many goroutines.
type Client struct {
	conn net.Conn

	turn  sync.Mutex    // one command at a time
	reply chan answer   // closed when the connection ended and the last answer was taken
	gone  chan struct{} // closed when the connection ended

	mu    sync.Mutex
	waits map[*Wait]bool
}

type answer struct {
	Return json.RawMessage `json:"return"`
	Error  *Error          `json:"error"`
	Event  string          `json:"event"`
	Data   json.RawMessage `json:"data"`
}

// Error is QEMU's refusal of a command.
type Error struct {
	Command string `json:"-"`
	Class   string `json:"class"`
	Desc    string `json:"desc"`
}

func (e *Error) Error() string { return fmt.Sprintf("qemu: %s: %s", e.Command, e.Desc) }

// ErrGone: QEMU is not there any more.
var ErrGone = errors.New("qemu hung up")

// Connect waits for the socket to be there and takes control.
func Connect(ctx context.Context, socket string) (*Client, error) {
	var conn net.Conn
	for {
		var err error
		if conn, err = (&net.Dialer{}).DialContext(ctx, "unix", socket); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to qemu: %w: %w", err, context.Cause(ctx))
		case <-time.After(2 * time.Millisecond):
		}
	}
	c := &Client{conn: conn, reply: make(chan answer, 1), gone: make(chan struct{}), waits: map[*Wait]bool{}}
	go c.read()
	if _, err := c.Run(ctx, "qmp_capabilities", nil); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// Close hangs up; QEMU goes on.
func (c *Client) Close() error { return c.conn.Close() }

// Gone is closed when the connection has ended.
func (c *Client) Gone() <-chan struct{} { return c.gone }

func (c *Client) read() {
	defer close(c.gone)
	defer close(c.reply)
	lines := bufio.NewScanner(c.conn)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var a answer
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue
		}
		switch {
		case a.Event != "":
			c.tell(a.Event, a.Data)
		case a.Return != nil || a.Error != nil: // the greeting is neither
			select {
			case c.reply <- a:
			default: // of a command that nobody waits for any more
			}
		}
	}
}

// Run gives a command and waits for the answer.
func (c *Client) Run(ctx context.Context, command string, arguments any) (json.RawMessage, error) {
	msg := map[string]any{"execute": command}
	if arguments != nil {
		msg["arguments"] = arguments
	}
	line, err := json.Marshal(msg)
	if err != nil {
		return nil, err
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	select {
	case <-c.reply: // left by a command that was given up
	default:
	}
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", command, ErrGone, err)
	}
	select {
	case a, ok := <-c.reply:
		if !ok {
			return nil, fmt.Errorf("%s: %w", command, ErrGone)
		}
		if a.Error != nil {
			a.Error.Command = command
			return nil, a.Error
		}
		return a.Return, nil
	case <-ctx.Done():
		c.conn.Close() // an answer that comes later would be taken for another's
		return nil, fmt.Errorf("%s: no answer from qemu: %w", command, context.Cause(ctx))
	}
}

// Wait is an event that somebody waits for.
type Wait struct {
	client *Client
	name   string
	match  func(json.RawMessage) bool
	came   chan struct{}
	once   sync.Once
}

// Expect begins to wait for an event: do it before the command that causes it.
func (c *Client) Expect(event string, match func(data json.RawMessage) bool) *Wait {
	w := &Wait{client: c, name: event, match: match, came: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits[w] = true
	return w
}

func (c *Client) tell(event string, data json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.waits {
		if w.name == event && (w.match == nil || w.match(data)) {
			w.once.Do(func() { close(w.came) })
		}
	}
}

// Done returns when the event came, and forgets the wait.
func (w *Wait) Done(ctx context.Context) error {
	defer w.Cancel()
	select {
	case <-w.came:
		return nil
	case <-w.client.gone:
		select {
		case <-w.came: // it was the last thing that QEMU said
			return nil
		default:
		}
		return fmt.Errorf("wait for %s: %w", w.name, ErrGone)
	case <-ctx.Done():
		return fmt.Errorf("wait for %s of qemu: %w", w.name, context.Cause(ctx))
	}
}

// Cancel stops waiting.
func (w *Wait) Cancel() {
	w.client.mu.Lock()
	defer w.client.mu.Unlock()
	delete(w.client.waits, w)
}
