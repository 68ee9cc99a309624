package drbd

import (
	"os"
	"os/signal"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestUninterrupted: a signal to the thread, and one to the process, end no wait of the kernel.
func TestUninterrupted(t *testing.T) {
	got := make(chan os.Signal, 100)
	signal.Notify(got, unix.SIGUSR1)
	defer signal.Stop(got)
	waits := func(wrapped func(func() error) error) error {
		return wrapped(func() error {
			thread := unix.Gettid()
			time.AfterFunc(20*time.Millisecond, func() {
				for _, kill := range []func() error{
					func() error { return unix.Tgkill(unix.Getpid(), thread, unix.SIGURG) },
					func() error { return unix.Tgkill(unix.Getpid(), thread, unix.SIGUSR1) },
					func() error { return unix.Kill(unix.Getpid(), unix.SIGUSR1) },
				} {
					if err := kill(); err != nil {
						t.Error(err)
					}
				}
			})
			_, err := unix.Poll(nil, 300)
			return err
		})
	}
	if err := waits(func(call func() error) error { return call() }); err != unix.EINTR {
		t.Fatalf("without it, a wait ends with %v", err)
	}
	for len(got) > 0 {
		<-got
	}
	if err := waits(uninterrupted); err != nil {
		t.Errorf("a wait ended with %v", err)
	}
	select { // what waited comes when the call is over
	case <-got:
	case <-time.After(10 * time.Second):
		t.Error("a signal is lost")
	}
	var now unix.Sigset_t
	if err := uninterrupted(func() error { return unix.PthreadSigmask(unix.SIG_SETMASK, nil, &now) }); err != nil || now.Val[0]&(1<<(unix.SIGURG-1)) == 0 {
		t.Errorf("SIGURG is not blocked (%v)", err)
	}
}
