package agent

import (
	"encoding/json"
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
func onTerminal(cmd *exec.Cmd, window Window, stdin io.Reader, out *records) (finish func(), err error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	slave, err := slaveOf(master)
	if err != nil {
		master.Close()
		return nil, err
	}
	resize(master, window)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	go io.Copy(master, stdin)
	drained := make(chan struct{})
	go func() {
		io.Copy(recordWriter{out, recordStdout}, master) // EIO once nobody has the slave open
		close(drained)
	}()
	terminals.Store(cmd, master)
	return func() {
		slave.Close()
		<-drained
		terminals.Delete(cmd)
		master.Close()
	}, nil
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
	return unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: w.Rows, Col: w.Cols})
}

func serveWindow(w http.ResponseWriter, r *http.Request) {
	pid, _ := strconv.Atoi(r.FormValue("pid"))
	var size Window
	if err := json.NewDecoder(r.Body).Decode(&size); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	terminals.Range(func(cmd, master any) bool {
		if p := cmd.(*exec.Cmd).Process; p != nil && p.Pid == pid {
			resize(master.(*os.File), size)
		}
		return true
	})
}
