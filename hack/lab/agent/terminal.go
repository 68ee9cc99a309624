package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminals are the masters of the running commands that have one, by pid.
var terminals sync.Map

// onTerminal gives the command a new pseudo terminal (pty(7)) as its controlling one.
func onTerminal(cmd *exec.Cmd, window Window, stdin io.Reader, out *records) (streams, error) {
	// Only what does not block can be told to stop reading.
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return streams{}, err
	}
	slave, err := slaveOf(master)
	if err != nil {
		master.Close()
		return streams{}, err
	}
	resize(master, window)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	go io.Copy(master, stdin)
	drained := drain(recordWriter{out, recordStdout}, master) // EIO once nobody has the slave open
	number := 0
	return streams{started: func(pid int) {
		number = pid
		terminals.Store(pid, master)
	}, finish: func() {
		slave.Close()
		terminals.CompareAndDelete(number, master) // the number may be another's already
		drained()
	}}, nil
}

func slaveOf(master *os.File) (*os.File, error) {
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, fmt.Errorf("pseudo terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, fmt.Errorf("unlock pseudo terminal: %w", err)
	}
	return os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
}

func resize(master *os.File, w Window) error {
	raw, err := master.SyscallConn() // unlike Fd it waits with a closing of the file
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: w.Rows, Col: w.Cols})
	})
	return errors.Join(err, failed)
}

func serveWindow(w http.ResponseWriter, r *http.Request) {
	pid, _ := strconv.Atoi(r.FormValue("pid"))
	var size Window
	if err := json.NewDecoder(r.Body).Decode(&size); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if master, ok := terminals.Load(pid); ok {
		resize(master.(*os.File), size)
	}
}
