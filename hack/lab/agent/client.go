package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Client is the host's side of the wire to one guest.
type Client struct {
	http *http.Client
	mu   sync.Mutex
	conn net.Conn // the one in use; nil: none yet
}

// Connect speaks to the guest behind a unix socket of QEMU. The wire knows one
// connection only: a second one would find the guest in the middle of the first.
func Connect(socket string) *Client {
	t := &http.Transport{Protocols: unencrypted(), DisableCompression: true, MaxConnsPerHost: 1}
	c := &Client{http: &http.Client{Transport: t}}
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conn = conn
		return conn, err
	}
	return c
}

// Close hangs up, whatever still runs.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
	}
}

func (c *Client) send(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://guest"+path+"?"+query.Encode(), body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		if resp.StatusCode == http.StatusNotFound {
			return nil, fmt.Errorf("guest: %s: %w", strings.TrimSpace(string(text)), os.ErrNotExist)
		}
		return nil, fmt.Errorf("guest: %s", strings.TrimSpace(string(text)))
	}
	return resp, nil
}

func (c *Client) call(ctx context.Context, method, path string, query url.Values, body io.Reader) error {
	resp, err := c.send(ctx, method, path, query, body)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// Put writes a file of the guest, with the folders above it.
func (c *Client) Put(ctx context.Context, path string, mode os.FileMode, content io.Reader) error {
	q := url.Values{"path": {path}, "mode": {strconv.FormatUint(uint64(mode.Perm()), 8)}}
	return c.call(ctx, http.MethodPut, "/file", q, content)
}

// Get reads a file of the guest.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	resp, err := c.send(ctx, http.MethodGet, "/file", url.Values{"path": {path}}, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// SetClock sets the guest's clock.
func (c *Client) SetClock(ctx context.Context, t time.Time) error {
	return c.call(ctx, http.MethodPost, "/clock", url.Values{"ns": {strconv.FormatInt(t.UnixNano(), 10)}}, nil)
}

// Drives waits until the kernel shows every one of the serial numbers and says
// which kernel name each drive has.
func (c *Client) Drives(ctx context.Context, serials []string, wait time.Duration) (map[string]string, error) {
	b, err := json.Marshal(serials)
	if err != nil {
		return nil, err
	}
	resp, err := c.send(ctx, http.MethodPost, "/drives", url.Values{"wait": {wait.String()}}, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var names map[string]string
	return names, json.NewDecoder(resp.Body).Decode(&names)
}

// Share mounts a folder of the host as /share/TAG once the guest sees its device.
func (c *Client) Share(ctx context.Context, tag string) error {
	return c.call(ctx, http.MethodPost, "/share", url.Values{"tag": {tag}}, nil)
}

// Streams are the standard streams of a command; what is nil is empty or dropped.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Process is a command that runs in the guest.
type Process struct {
	PID    int
	client *Client
	cancel context.CancelFunc
	done   chan struct{}
	end    exit
	err    error
}

// ExitError is a command that ended otherwise than with 0.
type ExitError struct {
	Command []string
	Code    int
	Signal  syscall.Signal // 0: it ended by itself
	Stderr  string         // its last words, where Output took them
}

func (e *ExitError) Error() string {
	s := fmt.Sprintf("%s: exit status %d", strings.Join(e.Command, " "), e.Code)
	if e.Signal != 0 {
		s = fmt.Sprintf("%s: %v", strings.Join(e.Command, " "), e.Signal)
	}
	if e.Stderr != "" {
		s += ": " + strings.TrimSpace(e.Stderr)
	}
	return s
}

// Start runs a command and does not wait for it. When ctx ends, the command and
// its children are killed.
func (c *Client) Start(ctx context.Context, cmd Command, io Streams) (*Process, error) {
	ctx, cancel := context.WithCancel(ctx)
	resp, err := c.send(ctx, http.MethodPost, "/exec", nil, request(cmd, io.In))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Argv, " "), err)
	}
	closeAtEnd(ctx, resp.Body)
	p := &Process{client: c, cancel: cancel, done: make(chan struct{})}
	started := make(chan struct{})
	go func() {
		defer close(p.done)
		defer resp.Body.Close()
		p.err = p.follow(bufio.NewReader(resp.Body), io, sync.OnceFunc(func() { close(started) }))
		if p.err == nil && p.end.Error != "" {
			p.err = errors.New(p.end.Error)
		}
		if p.err == nil && p.end.Code != 0 {
			p.err = &ExitError{Command: cmd.Argv, Code: p.end.Code, Signal: syscall.Signal(p.end.Signal)}
		}
	}()
	select {
	case <-started:
	case <-p.done:
		if p.PID == 0 && p.err != nil {
			cancel()
			return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Argv, " "), p.err)
		}
	}
	return p, nil
}

// request is the command as one line of JSON, then what it reads: through a pipe,
// because closing one ends who waits for more of it.
func request(cmd Command, stdin io.Reader) io.Reader {
	line, _ := json.Marshal(cmd)
	head := bytes.NewReader(append(line, '\n'))
	if stdin == nil {
		return head
	}
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, io.MultiReader(head, stdin))
		w.CloseWithError(err)
	}()
	return r
}

// follow hands out the records until the command has ended.
func (p *Process) follow(r *bufio.Reader, to Streams, started func()) error {
	var head [5]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return fmt.Errorf("the guest hung up: %w", err)
		}
		n := binary.BigEndian.Uint32(head[1:])
		if n > maxRecord {
			return fmt.Errorf("the guest sent a record of %d bytes", n)
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return fmt.Errorf("the guest hung up: %w", err)
		}
		switch head[0] {
		case recordPID:
			p.PID, _ = strconv.Atoi(string(b))
			started()
		case recordStdout:
			write(to.Out, b)
		case recordStderr:
			write(to.Err, b)
		case recordExit:
			return json.Unmarshal(b, &p.end)
		}
	}
}

func write(w io.Writer, b []byte) {
	if w != nil {
		w.Write(b)
	}
}

// Wait waits for the end; an *ExitError says that it was not a good one.
func (p *Process) Wait() error {
	<-p.done
	p.cancel()
	return p.err
}

// Done is closed when the command has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the command.
func (p *Process) Signal(ctx context.Context, sig syscall.Signal) error {
	q := url.Values{"pid": {strconv.Itoa(p.PID)}, "signal": {strconv.Itoa(int(sig))}}
	return p.client.call(ctx, http.MethodPost, "/signal", q, nil)
}

// Resize tells a command on a terminal the new size of its window.
func (p *Process) Resize(ctx context.Context, w Window) error {
	b, _ := json.Marshal(w)
	return p.client.call(ctx, http.MethodPost, "/window", url.Values{"pid": {strconv.Itoa(p.PID)}}, bytes.NewReader(b))
}

// Kill ends the command and its children at once.
func (p *Process) Kill() {
	p.cancel()
	<-p.done
}

// Output runs a command to its end and returns what it wrote.
func (c *Client) Output(ctx context.Context, argv ...string) (string, error) {
	var out, errs bytes.Buffer
	p, err := c.Start(ctx, Command{Argv: argv}, Streams{Out: &out, Err: &errs})
	if err != nil {
		return "", err
	}
	err = p.Wait()
	if e, ok := errors.AsType[*ExitError](err); ok {
		e.Stderr = errs.String()
	}
	return out.String(), err
}

// Shell runs a line of shell and returns what it wrote.
func (c *Client) Shell(ctx context.Context, line string) (string, error) {
	return c.Output(ctx, "/bin/bash", "-c", line)
}
