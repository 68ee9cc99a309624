// Package fusedisk serves a file that hangs or fails on demand. To the kernel, a loop
// device over it is a drive that hangs or answers with errors, on a machine that has no
// device-mapper. The package needs root and /dev/fuse.
package fusedisk

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Disk is the file. Its content is in memory; pages that were not written take no room.
type Disk struct {
	dir  string
	fd   int    // of /dev/fuse; it does not block
	stop [2]int // a pipe: closing its end wakes the server
	size uint64
	done chan struct{}
	late sync.WaitGroup // reads, writes and syncs in progress

	mu     sync.Mutex
	change *sync.Cond
	pages  map[uint64][]byte
	hang   bool
	fail   bool
	closed bool
	reads  int
	writes int
}

const page = 4096

// New mounts a filesystem on dir, with one file in it.
func New(dir string, size uint64) (*Disk, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/fuse: %w", err)
	}
	d := &Disk{dir: dir, fd: fd, size: size, done: make(chan struct{}), pages: map[uint64][]byte{}}
	d.change = sync.NewCond(&d.mu)
	err = unix.Pipe2(d.stop[:], unix.O_CLOEXEC)
	if err == nil {
		err = unix.Mount("fusedisk", dir, "fuse", unix.MS_NODEV|unix.MS_NOSUID, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd))
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("mount on %s: %w", dir, err)
	}
	go d.serve()
	return d, d.settle()
}

// settle makes the kernel ask once whether the file can be polled, and learn that it
// cannot. Go's runtime polls every file that it opens, in a system call that it
// expects to be short: there it would sometimes wait forever for the answer, which
// this same process has to give.
func (d *Disk) settle() error {
	fd, err := unix.Open(d.Path(), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		unix.Close(fd)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", d.Path(), err), d.Close())
	}
	return nil
}

// Path returns the path of the file.
func (d *Disk) Path() string { return filepath.Join(d.dir, "disk") }

// Hang holds every read and write until it is switched off.
func (d *Disk) Hang(on bool) { d.set(func() { d.hang = on }) }

// Fail answers every read and write with EIO.
func (d *Disk) Fail(on bool) { d.set(func() { d.fail = on }) }

// Asked returns how many reads and writes the kernel has requested.
func (d *Disk) Asked() (reads, writes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reads, d.writes
}

func (d *Disk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	d.change.Broadcast()
}

// Close unmounts the filesystem. Reads and writes that wait, or come later, get an
// error. The caller detaches loop devices before.
func (d *Disk) Close() error {
	d.set(func() { d.closed = true })
	unix.Close(d.stop[1])
	<-d.done
	d.late.Wait()
	err := unix.Unmount(d.dir, unix.MNT_DETACH)
	// Closing /dev/fuse ends the connection in the kernel, even if the file is still open.
	return errors.Join(err, unix.Close(d.fd), unix.Close(d.stop[0]))
}

func (d *Disk) serve() {
	defer close(d.done)
	for {
		ready := []unix.PollFd{{Fd: int32(d.fd), Events: unix.POLLIN}, {Fd: int32(d.stop[0])}}
		if _, err := unix.Poll(ready, -1); err != nil && !errors.Is(err, unix.EINTR) || ready[1].Revents != 0 {
			return
		}
		b := make([]byte, maxWrite+page)
		n, err := unix.Read(d.fd, b)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOENT): // ENOENT: the request was interrupted
			continue
		case err != nil || n < headIn:
			return
		}
		r := parse(b[:n])
		switch r.op {
		case opForget, opForgets, opInterrupt:
		case opRead, opWrite, opFsync:
			d.late.Go(func() { d.answer(r, d.transfer) }) // one that hangs does not block others
		default:
			d.answer(r, d.handle)
		}
	}
}

func (d *Disk) answer(r request, handle func(request) ([]byte, syscall.Errno)) {
	body, errno := handle(r)
	b := make([]byte, headOut, headOut+len(body))
	le.PutUint32(b[4:], uint32(-int32(errno)))
	le.PutUint64(b[8:], r.unique)
	b = append(b, body...)
	le.PutUint32(b, uint32(len(b)))
	unix.Write(d.fd, b) // an interrupted request needs no answer
}

func (d *Disk) handle(r request) ([]byte, syscall.Errno) {
	switch r.op {
	case opInit:
		return initOut(), 0
	case opLookup:
		if string(r.body) != "disk\x00" {
			return nil, syscall.ENOENT
		}
		return d.entryOut(), 0
	case opGetattr, opSetattr:
		return d.attrOut(r.node), 0
	case opOpen:
		return words(0, openDirect), 0
	case opOpendir:
		return words(0, 0), 0
	case opStatfs:
		return make([]byte, 80), 0
	case opReaddir, opFlush, opRelease, opReleasedir, opDestroy:
		return nil, 0
	}
	return nil, syscall.ENOSYS
}

// transfer reads, writes or syncs, once the disk does not hang.
func (d *Disk) transfer(r request) ([]byte, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r.op {
	case opRead:
		d.reads++
	case opWrite:
		d.writes++
	}
	for d.hang && !d.closed {
		d.change.Wait()
	}
	if d.fail || d.closed {
		return nil, syscall.EIO
	}
	if r.op == opFsync {
		return nil, 0
	}
	at, n := le.Uint64(r.body[8:]), uint64(le.Uint32(r.body[16:]))
	if r.op == opRead {
		return d.read(at, n), 0
	}
	d.write(at, r.body[40:40+n])
	return words(n), 0
}

func (d *Disk) read(at, n uint64) []byte {
	if at >= d.size {
		return nil
	}
	out := make([]byte, min(n, d.size-at))
	for done := uint64(0); done < uint64(len(out)); {
		off := (at + done) % page
		piece := min(page-off, uint64(len(out))-done)
		if p := d.pages[(at+done)/page]; p != nil {
			copy(out[done:done+piece], p[off:])
		}
		done += piece
	}
	return out
}

func (d *Disk) write(at uint64, b []byte) {
	for len(b) > 0 {
		off := at % page
		p := d.pages[at/page]
		if p == nil {
			p = make([]byte, page)
			d.pages[at/page] = p
		}
		n := copy(p[off:], b)
		at, b = at+uint64(n), b[n:]
	}
}
