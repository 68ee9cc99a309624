package emul

import (
	"fmt"
	"sync"
	"time"
)

// Unit is a device with what can go wrong with any: it counts the commands that
// come, and can hang, be slow, or not be there any more.
type Unit struct {
	Name   string
	Host   string // as in the description
	device Device
	disk   *SATDisk // one of the two
	shelf  *Shelf

	mu      sync.Mutex
	hang    Hang
	deaf    bool // gives no aborted command back either
	delay   time.Duration
	gone    bool // answers that it is not there
	pulled  bool // is not there
	counts  Counts
	changed chan struct{}
}

// Hang names the commands that get no answer.
type Hang string

// What can hang. SMART is every ATA command that is passed through, IO every
// command to the medium.
const (
	HangNothing Hang = ""
	HangAll     Hang = "all"
	HangSMART   Hang = "smart"
	HangIO      Hang = "io"
)

// Units makes the devices of a specification.
func Units(s Spec) ([]*Unit, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	var units []*Unit
	for _, desc := range s.Disks {
		d, err := NewDisk(desc)
		if err != nil {
			return nil, err
		}
		units = append(units, &Unit{Name: desc.Name, Host: desc.Host, device: d, disk: d, changed: make(chan struct{}, 1)})
	}
	for _, desc := range s.Enclosures {
		e, err := NewShelf(desc)
		if err != nil {
			return nil, err
		}
		units = append(units, &Unit{Name: desc.Name, Host: desc.Host, device: e, shelf: e, changed: make(chan struct{}, 1)})
	}
	return units, nil
}

// Size is what the kernel is told of the device: bytes and the block.
func (u *Unit) Size() (size uint64, block int) {
	if u.disk != nil {
		return u.disk.desc.Size, u.disk.desc.block()
	}
	return 1 << 20, 512
}

// Do answers one command.
func (u *Unit) Do(cdb, out []byte) Reply {
	u.mu.Lock()
	gone := u.gone || u.pulled
	u.mu.Unlock()
	if gone {
		return notResponding.reply(false)
	}
	return u.device.Do(cdb, out)
}

// Arrived counts a command. Hung ones count, too.
func (u *Unit) Arrived(cdb []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.counts.add(Key(cdb))
}

// Held says whether a command gets no answer now, and how long one takes that
// does.
func (u *Unit) Held(cdb []byte) (held bool, delay time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone || u.pulled {
		return false, 0
	}
	return u.hang.holds(cdb), u.delay
}

// Deaf says whether commands that hang stay where they are when the kernel gives
// them up.
func (u *Unit) Deaf() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.deaf && !u.gone && !u.pulled
}

// Pull takes the device out of its slot, or puts it in.
func (u *Unit) Pull(out bool) {
	u.mu.Lock()
	u.pulled = out
	u.mu.Unlock()
	u.wake()
}

// IsDisk tells disks from enclosures.
func (u *Unit) IsDisk() bool { return u.disk != nil }

// Changed tells that Held may say something else now.
func (u *Unit) Changed() <-chan struct{} { return u.changed }

func (u *Unit) wake() {
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

func (h Hang) holds(cdb []byte) bool {
	if len(cdb) == 0 {
		return false
	}
	passed := cdb[0] == 0x85 || cdb[0] == 0xa1
	switch h {
	case HangAll:
		return true
	case HangSMART:
		return passed
	case HangIO:
		return touchesMedium[cdb[0]]
	}
	return false
}

func (h Hang) valid() error {
	switch h {
	case HangNothing, HangAll, HangSMART, HangIO:
		return nil
	}
	return fmt.Errorf("hang %q is none of all, smart, io and nothing", h)
}

// touchesMedium are the reads, writes, verifies and flushes.
var touchesMedium = map[byte]bool{0x08: true, 0x28: true, 0xa8: true, 0x88: true, 0x0a: true, 0x2a: true, 0xaa: true, 0x8a: true,
	0x2f: true, 0x8f: true, 0x35: true, 0x91: true, 0x42: true}
