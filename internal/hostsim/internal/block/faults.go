package block

import (
	"maps"
	"time"
)

// Faults holds what is wrong with a drive beyond its age.
type Faults struct {
	Hang     chan struct{} // closed when the drive answers again; nil: it does not hang
	Slow     time.Duration
	Eio      bool
	Offline  bool
	Dead     bool
	Denied   bool
	ReadOnly bool
	Flicker  bool
	Calm     chan struct{}   // closed to end a uevent storm
	Bad      map[uint64]bool // sectors of 512 bytes that are unreadable until they are written
}

func (f *Faults) scsiState() string {
	if f.Offline {
		return "offline"
	}
	return "running"
}

func (f *Faults) nvmeState() string {
	if f.Dead {
		return "dead"
	}
	return "live"
}

// Release ends the wait of hung commands and a uevent storm.
func (d *Drive) Release() {
	for _, ch := range []chan struct{}{d.Faults.Hang, d.Faults.Calm} {
		if ch != nil {
			close(ch)
		}
	}
	d.Faults.Hang, d.Faults.Calm = nil, nil
}

// unread returns the first unreadable sector of a range that is read.
func (d *Drive) unread(a Access) (sector uint64, bad bool) {
	if len(d.Faults.Bad) == 0 || a.Write || a.N == 0 {
		return 0, false
	}
	for s := a.Off / 512; s*512 < a.Off+a.N; s++ {
		if d.Faults.Bad[s] {
			return s, true
		}
	}
	return 0, false
}

// rewritten makes written sectors readable again: the drive remaps them.
func (d *Drive) rewritten(off, n uint64) {
	if len(d.Faults.Bad) == 0 {
		return
	}
	maps.DeleteFunc(d.Faults.Bad, func(s uint64, _ bool) bool { return s*512 >= off && (s+1)*512 <= off+n })
}
