package agent

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// records writes the answer of an exec; stdout and stderr come from goroutines
// of their own.
type records struct {
	mu sync.Mutex
	w  http.ResponseWriter
}

func (r *records) put(kind byte, b []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.write(kind, b)
}

// begin starts the command and tells its number before anything that it writes.
func (r *records) begin(cmd *exec.Cmd, s streams) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.started(cmd.Process.Pid)
	r.write(recordPID, []byte(strconv.Itoa(cmd.Process.Pid)))
	return nil
}

func (r *records) write(kind byte, b []byte) error {
	head := [5]byte{kind}
	binary.BigEndian.PutUint32(head[1:], uint32(len(b)))
	if _, err := r.w.Write(head[:]); err != nil {
		return err
	}
	_, err := r.w.Write(b)
	r.w.(http.Flusher).Flush()
	return err
}

type recordWriter struct {
	to   *records
	kind byte
}

func (w recordWriter) Write(b []byte) (int, error) { return len(b), w.to.put(w.kind, b) }

// streams are our end of a command's standard streams.
type streams struct {
	started func(pid int) // called before anybody else hears of the command
	finish  func()        // called when it has ended, or did not start
}

// onPipes gives the command a pipe for each of its standard streams.
func onPipes(cmd *exec.Cmd, stdin io.Reader, out *records) (streams, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return streams{}, err
	}
	stdout, writeOut, err := os.Pipe()
	if err != nil {
		return streams{}, err
	}
	stderr, writeErr, err := os.Pipe()
	if err != nil {
		return streams{}, err
	}
	cmd.Stdout, cmd.Stderr = writeOut, writeErr
	go func() {
		io.Copy(in, stdin)
		in.Close()
	}()
	drainOut, drainErr := drain(recordWriter{out, recordStdout}, stdout), drain(recordWriter{out, recordStderr}, stderr)
	return streams{started: func(int) {}, finish: func() {
		writeOut.Close()
		writeErr.Close()
		drainOut()
		drainErr()
	}}, nil
}

const (
	kept   = 128 << 10 // more than a pipe (pipe(7)) or a terminal holds
	silent = 100 * time.Millisecond
)

// drain copies what a command writes. finish is called when the command has ended
// and returns when all that it wrote is copied: not at the end of the stream, which
// a child that it left behind may keep open for ever.
func drain(to io.Writer, from *os.File) (finish func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := io.Copy(to, from); errors.Is(err, os.ErrDeadlineExceeded) {
			io.Copy(to, io.LimitReader(impatient{from}, kept))
		}
	}()
	return func() {
		from.SetReadDeadline(time.Now())
		<-done
		from.Close()
	}
}

// impatient reads what is there and waits for nothing more.
type impatient struct{ file *os.File }

func (r impatient) Read(b []byte) (int, error) {
	r.file.SetReadDeadline(time.Now().Add(silent))
	return r.file.Read(b)
}
