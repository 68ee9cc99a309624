package hostsim

import (
	"maps"
	"time"
)

// faults holds what is wrong with a drive beyond its age.
type faults struct {
	hang     chan struct{} // closed when the drive answers again; nil: it does not hang
	slow     time.Duration
	eio      bool
	offline  bool
	dead     bool
	denied   bool
	readOnly bool
	flicker  bool
	calm     chan struct{}   // closed to end a uevent storm
	bad      map[uint64]bool // sectors of 512 bytes that are unreadable until they are written
}

func (f *faults) scsiState() string {
	if f.offline {
		return "offline"
	}
	return "running"
}

func (f *faults) nvmeState() string {
	if f.dead {
		return "dead"
	}
	return "live"
}

// release ends the wait of hung commands and a uevent storm.
func (d *drive) release() {
	for _, ch := range []chan struct{}{d.faults.hang, d.faults.calm} {
		if ch != nil {
			close(ch)
		}
	}
	d.faults.hang, d.faults.calm = nil, nil
}

// unread returns the first unreadable sector of a range that is read.
func (d *drive) unread(a access) (sector uint64, bad bool) {
	if len(d.faults.bad) == 0 || a.write || a.n == 0 {
		return 0, false
	}
	for s := a.off / 512; s*512 < a.off+a.n; s++ {
		if d.faults.bad[s] {
			return s, true
		}
	}
	return 0, false
}

// rewritten makes written sectors readable again: the drive remaps them.
func (d *drive) rewritten(off, n uint64) {
	if len(d.faults.bad) == 0 {
		return
	}
	maps.DeleteFunc(d.faults.bad, func(s uint64, _ bool) bool { return s*512 >= off && (s+1)*512 <= off+n })
}
