package tcmu

import (
	"fmt"
	"slices"
	"time"

	"github.com/drivebay/drivebay/hack/lab/emul"
	"golang.org/x/sys/unix"
)

// server carries commands between a ring and a device. All of it runs in one
// goroutine; a device that hangs keeps its commands here, and nothing waits but
// they.
type server struct {
	unit    *emul.Unit
	uio     *uio
	ring    *ring
	pending []command
	busy    time.Time // the first command that may go is carried out then; zero: none is timed
	stop    chan struct{}
	over    chan error
}

func newServer(unit *emul.Unit, u *uio) (*server, error) {
	r, err := newRing(u.mem)
	if err != nil {
		return nil, err
	}
	return &server{unit: unit, uio: u, ring: r, stop: make(chan struct{}), over: make(chan error, 1)}, nil
}

// run serves until close is called, or the ring is broken.
func (s *server) run() {
	kicks := make(chan struct{}, 1)
	go s.uio.wait(kicks)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait, err := s.step()
		if err != nil {
			s.over <- fmt.Errorf("serve %s: %w", s.unit.Name, err)
			return
		}
		timer.Reset(wait)
		select {
		case <-s.stop:
			s.over <- nil
			return
		case <-kicks:
		case <-s.unit.Changed():
		case <-timer.C:
		}
	}
}

// close ends run and gives the device back.
func (s *server) close() error {
	close(s.stop)
	err := <-s.over
	if e := s.uio.file.Close(); err == nil {
		err = e
	}
	if e := unix.Munmap(s.uio.mem); err == nil {
		err = e
	}
	return err
}

// step takes what came and answers what may be answered. It returns how long
// nothing more will happen by itself.
func (s *server) step() (time.Duration, error) {
	const long = time.Hour
	came, aborts, err := s.ring.take()
	if err != nil {
		return 0, err
	}
	for _, c := range came {
		s.unit.Arrived(c.cdb)
	}
	s.pending = append(s.pending, came...)
	answered := false
	for _, a := range aborts {
		n, err := s.abort(a)
		if err != nil {
			return 0, err
		}
		answered = answered || n
	}
	wait := long
	for {
		i, due := s.ready()
		if i < 0 {
			wait = due
			break
		}
		if err := s.ring.complete(s.pending[i], s.unit.Do(s.pending[i].cdb, s.pending[i].out)); err != nil {
			return 0, err
		}
		s.pending, s.busy, answered = slices.Delete(s.pending, i, i+1), time.Time{}, true
	}
	if answered {
		return wait, s.uio.kick()
	}
	return wait, nil
}

// ready is the first command whose time has come, or how long there is none.
func (s *server) ready() (int, time.Duration) {
	const long = time.Hour
	for i, c := range s.pending {
		held, delay := s.unit.Held(c.cdb)
		switch {
		case held:
			continue
		case delay == 0:
			return i, 0
		case s.busy.IsZero():
			s.busy = time.Now().Add(delay)
		}
		if wait := time.Until(s.busy); wait > 0 {
			return -1, wait
		}
		return i, 0
	}
	return -1, long
}

// abort answers the commands that the kernel gave up, unless the device is so
// dead that it does not even take that.
func (s *server) abort(a abort) (answered bool, err error) {
	for _, id := range a.ids {
		i := slices.IndexFunc(s.pending, func(c command) bool { return c.id == id })
		if i < 0 || s.unit.Deaf() {
			continue
		}
		if err := s.ring.complete(s.pending[i], emul.Reply{Status: emul.StatusTaskAborted}); err != nil {
			return answered, err
		}
		s.pending, answered = slices.Delete(s.pending, i, i+1), true
	}
	return answered, nil
}
