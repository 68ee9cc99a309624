package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Serve answers one connection until it ends.
func Serve(conn net.Conn) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /alive", serveAlive)
	mux.HandleFunc("POST /exec", serveExec)
	mux.HandleFunc("POST /signal", serveSignal)
	mux.HandleFunc("POST /window", serveWindow)
	mux.HandleFunc("GET /file", serveGet)
	mux.HandleFunc("PUT /file", servePut)
	mux.HandleFunc("POST /dial", serveDial)
	mux.HandleFunc("POST /clock", serveClock)
	mux.HandleFunc("POST /drives", serveDrives)
	mux.HandleFunc("POST /share", serveShare)
	// A command that does not read its input fills its own window, not that of all.
	windows := &http.HTTP2Config{MaxReceiveBufferPerStream: 256 << 10, MaxReceiveBufferPerConnection: 1 << 30}
	server := &http.Server{Handler: mux, Protocols: unencrypted(), HTTP2: windows}
	return server.Serve(&one{conn: conn, closed: make(chan struct{})})
}

func unencrypted() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// one is a listener with a single connection to give.
type one struct {
	mu     sync.Mutex
	conn   net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *one) Accept() (net.Conn, error) {
	l.mu.Lock()
	c := l.conn
	l.conn = nil
	l.mu.Unlock()
	if c != nil {
		return &told{Conn: c, gone: func() { l.Close() }}, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *one) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *one) Addr() net.Addr { return portAddr{} }

// told tells when it is closed, which ends the server with its connection.
type told struct {
	net.Conn
	gone func()
}

func (c *told) Close() error { defer c.gone(); return c.Conn.Close() }

type portAddr struct{}

func (portAddr) Network() string { return "virtio-serial" }
func (portAddr) String() string  { return "guest" }

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		status = http.StatusNotFound
	case errors.Is(err, os.ErrDeadlineExceeded):
		status = http.StatusGatewayTimeout
	}
	http.Error(w, err.Error(), status)
}

func serveExec(w http.ResponseWriter, r *http.Request) {
	body := bufio.NewReader(r.Body)
	line, err := body.ReadBytes('\n')
	var c Command
	if err == nil {
		err = json.Unmarshal(line, &c)
	}
	if err == nil && len(c.Argv) == 0 {
		err = errors.New("no command")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := &records{w: w}
	end := execute(r, c, body, out)
	b, _ := json.Marshal(end)
	out.put(recordExit, b)
}

func execute(r *http.Request, c Command, stdin io.Reader, out *records) exit {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir = append(os.Environ(), c.Env...), c.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s, err := connect(cmd, c.Terminal, stdin, out)
	if err != nil {
		return exit{Code: 127, Error: err.Error()}
	}
	if err := out.begin(cmd, s); err != nil {
		s.finish()
		return exit{Code: 127, Error: err.Error()}
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-done:
		case <-r.Context().Done(): // the host gave it up: so do its children
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}()
	err = cmd.Wait()
	s.finish()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exit{Code: 128 + int(status.Signal()), Signal: int(status.Signal())}
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 || err == nil {
		return exit{Code: code}
	}
	return exit{Code: 126, Error: err.Error()}
}

func connect(cmd *exec.Cmd, window *Window, stdin io.Reader, out *records) (streams, error) {
	if window != nil {
		return onTerminal(cmd, *window, stdin, out)
	}
	return onPipes(cmd, stdin, out)
}

func serveSignal(w http.ResponseWriter, r *http.Request) {
	pid, err1 := strconv.Atoi(r.FormValue("pid"))
	sig, err2 := strconv.Atoi(r.FormValue("signal"))
	if err := errors.Join(err1, err2); err != nil || pid < 2 {
		http.Error(w, fmt.Sprint("pid and signal: ", err), http.StatusBadRequest)
		return
	}
	if err := syscall.Kill(pid, syscall.Signal(sig)); err != nil {
		fail(w, err)
	}
}

func serveGet(w http.ResponseWriter, r *http.Request) {
	f, err := os.Open(r.FormValue("path"))
	if err != nil {
		fail(w, err)
		return
	}
	defer f.Close()
	if _, err := io.Copy(w, f); err != nil {
		panic(http.ErrAbortHandler) // half a file must not look like a file
	}
}

func servePut(w http.ResponseWriter, r *http.Request) {
	path := r.FormValue("path")
	mode, err := strconv.ParseUint(r.FormValue("mode"), 8, 32)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		fail(w, err)
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, os.FileMode(mode))
	if err != nil {
		fail(w, err)
		return
	}
	_, err = io.Copy(f, r.Body)
	if err := errors.Join(err, f.Chmod(os.FileMode(mode)), f.Close()); err != nil {
		fail(w, err)
	}
}

func serveDial(w http.ResponseWriter, r *http.Request) {
	conn, err := net.DialTimeout(r.FormValue("network"), r.FormValue("address"), 5*time.Second)
	if err != nil {
		fail(w, err)
		return
	}
	defer conn.Close()
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	go func() {
		io.Copy(conn, r.Body)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			half.CloseWrite()
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := conn.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
		if err != nil {
			return
		}
	}
}

// serveClock sets the clock: the one of a restored guest stands where it was saved.
func serveClock(w http.ResponseWriter, r *http.Request) {
	ns, err := strconv.ParseInt(r.FormValue("ns"), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	tv := syscall.NsecToTimeval(ns)
	if err := syscall.Settimeofday(&tv); err != nil {
		fail(w, err)
	}
}

// serveShare mounts a folder of the host once its device has come. It tries by
// itself: starting mount(8) again and again costs an emulated machine more than
// all the rest of its start.
func serveShare(w http.ResponseWriter, r *http.Request) {
	tag := r.FormValue("tag")
	dir := filepath.Join("/share", filepath.Base(tag))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		fail(w, err)
		return
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := syscall.Mount(tag, dir, "9p", syscall.MS_RDONLY, "trans=virtio,version=9p2000.L,msize=262144,cache=loose")
		if err == nil {
			return
		}
		if r.Context().Err() != nil || time.Now().After(end) {
			fail(w, fmt.Errorf("mount the share %s: %w", tag, err))
			return
		}
	}
}
