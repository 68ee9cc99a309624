package tcmu

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/drivebay/drivebay/hack/lab/emul"
)

// Layout of the shared memory (include/uapi/linux/target_core_user.h). Numbers are
// in the machine's order, which is little-endian wherever this runs.
const (
	mailboxVersion = 2

	mailboxFlags = 2  // u16
	mailboxOff   = 4  // u32, where the ring begins
	mailboxSize  = 8  // u32, how long it is
	mailboxHead  = 12 // u32, moved by the kernel
	mailboxTail  = 64 // u32, moved by us

	outOfOrder = 1 << 0 // flags: completions may overtake each other
	readLength = 1 << 1 // flags: a completion may say how much was read

	entryID    = 4  // u16
	entryFlags = 7  // u8, ours
	entryBase  = 8  // of request and response
	entryMin   = 48 // of a command

	requestVectors = 8  // u32
	requestCommand = 24 // u64, offset of the command block
	requestVector  = 48 // pairs of u64: offset and length

	responseStatus = 8  // u8
	responseRead   = 12 // u32
	responseSense  = 16
	senseSize      = 96

	tmrKind  = 8  // u8
	tmrCount = 12 // u32
	tmrIDs   = 32 // u16 each

	flagUnknown = 1 << 0
	flagLength  = 1 << 1
)

// Operations, in the low three bits of an entry's length.
const (
	opPad = iota
	opCommand
	opTask
	opMask = 7
)

var le = binary.LittleEndian

// ring is the memory that a device shares with the kernel. Commands are taken in
// the order in which they come, and may be answered in any: the kernel looks for
// the command's number in the entry at the tail, not for its place.
type ring struct {
	mem  []byte
	off  uint32
	size uint32
	next uint32 // the first entry that was not taken yet
}

// command is one that was taken and not answered.
type command struct {
	id  uint16
	cdb []byte
	out []byte   // data for the device
	in  [][]byte // where its data go; the same memory
}

// abort is a task management function: the kernel gave these commands up, and
// waits until they are answered.
type abort struct{ ids []uint16 }

func newRing(mem []byte) (*ring, error) {
	if len(mem) < mailboxTail+4 || le.Uint16(mem) != mailboxVersion {
		return nil, fmt.Errorf("the mailbox is not of version %d", mailboxVersion)
	}
	if f := le.Uint16(mem[mailboxFlags:]); f&outOfOrder == 0 || f&readLength == 0 {
		return nil, fmt.Errorf("the kernel cannot complete commands out of order, or short (flags %x)", f)
	}
	r := &ring{mem: mem, off: le.Uint32(mem[mailboxOff:]), size: le.Uint32(mem[mailboxSize:])}
	if r.size == 0 || uint64(r.off)+uint64(r.size) > uint64(len(mem)) {
		return nil, fmt.Errorf("a ring of %d bytes at %d does not fit into %d", r.size, r.off, len(mem))
	}
	r.next = *r.word(mailboxTail)
	return r, nil
}

// word is a number of the mailbox, for atomic use: the mapping begins a page, so
// its offset is its alignment.
func (r *ring) word(at int) *uint32 { return (*uint32)(unsafe.Pointer(&r.mem[at])) }

func (r *ring) head() uint32     { return atomic.LoadUint32(r.word(mailboxHead)) % r.size }
func (r *ring) tail() uint32     { return atomic.LoadUint32(r.word(mailboxTail)) % r.size }
func (r *ring) setTail(v uint32) { atomic.StoreUint32(r.word(mailboxTail), v) }

// entry is what stands at a place of the ring, and the place behind it.
func (r *ring) entry(at uint32) (e []byte, op int, next uint32, err error) {
	if at+4 > r.size {
		return nil, 0, 0, fmt.Errorf("entry at %d of %d", at, r.size)
	}
	lengthAndOp := le.Uint32(r.mem[r.off+at:])
	length := lengthAndOp &^ opMask
	if length == 0 || uint64(at)+uint64(length) > uint64(r.size) {
		return nil, 0, 0, fmt.Errorf("an entry of %d bytes at %d of %d", length, at, r.size)
	}
	return r.mem[r.off+at : r.off+at+length], int(lengthAndOp & opMask), (at + length) % r.size, nil
}

// take reads what came since the last time.
func (r *ring) take() (commands []command, aborts []abort, err error) {
	for head := r.head(); r.next != head; {
		e, op, next, err := r.entry(r.next)
		if err != nil {
			return commands, aborts, err
		}
		switch op {
		case opPad:
		case opCommand:
			c, err := r.command(e)
			if err != nil {
				return commands, aborts, err
			}
			commands = append(commands, c)
		case opTask:
			aborts = append(aborts, readAbort(e))
		default:
			e[entryFlags] |= flagUnknown
		}
		r.next = next
	}
	r.skip()
	return commands, aborts, nil
}

// command copies the request, because its place in the ring may be used for the
// answer to another.
func (r *ring) command(e []byte) (command, error) {
	if len(e) < entryMin {
		return command{}, fmt.Errorf("a command of %d bytes", len(e))
	}
	cdb, err := r.slice(le.Uint64(e[requestCommand:]), 1)
	if err != nil {
		return command{}, err
	}
	if cdb, err = r.slice(le.Uint64(e[requestCommand:]), commandLength(cdb[0])); err != nil {
		return command{}, err
	}
	c := command{id: le.Uint16(e[entryID:]), cdb: append([]byte(nil), cdb...)}
	n := int(le.Uint32(e[requestVectors:]))
	if n > (len(e)-requestVector)/16 {
		return command{}, fmt.Errorf("%d vectors in an entry of %d bytes", n, len(e))
	}
	for i := range n {
		v := e[requestVector+16*i:]
		b, err := r.slice(le.Uint64(v), int(min(le.Uint64(v[8:]), uint64(len(r.mem)))))
		if err != nil {
			return command{}, err
		}
		c.in = append(c.in, b)
		if sends(cdb[0]) {
			c.out = append(c.out, b...)
		}
	}
	return c, nil
}

func (r *ring) slice(off uint64, n int) ([]byte, error) {
	if off > uint64(len(r.mem)) || uint64(n) > uint64(len(r.mem))-off {
		return nil, fmt.Errorf("%d bytes at %d are not in the shared memory", n, off)
	}
	return r.mem[off : off+uint64(n)], nil
}

// commandLength goes by the group of the operation code (SPC-5 4.2.5.1).
func commandLength(op byte) int {
	return [8]int{6, 10, 10, 16, 16, 12, 16, 16}[op>>5]
}

// sends is whether a command carries data to the device; reading what is none
// would fetch the memory of a large read for nothing.
func sends(op byte) bool {
	switch op {
	case 0x08, 0x28, 0xa8, 0x88: // the reads
		return false
	}
	return true
}

func readAbort(e []byte) abort {
	var a abort
	if len(e) < tmrIDs {
		return a
	}
	for i := range min(int(le.Uint32(e[tmrCount:])), (len(e)-tmrIDs)/2) {
		a.ids = append(a.ids, le.Uint16(e[tmrIDs+2*i:]))
	}
	return a
}

// skip moves the tail over entries that want no answer.
func (r *ring) skip() {
	for at := r.tail(); at != r.next; {
		_, op, next, err := r.entry(at)
		if err != nil || op == opCommand {
			return
		}
		r.setTail(next)
		at = next
	}
}

// complete answers a command in the entry at the tail.
func (r *ring) complete(c command, reply emul.Reply) error {
	e, op, next, err := r.entry(r.tail())
	if err != nil || op != opCommand || len(e) < responseSense+senseSize {
		return fmt.Errorf("no entry for an answer at %d: %w", r.tail(), err)
	}
	given := scatter(c, reply.Data)
	le.PutUint16(e[entryID:], c.id)
	e[entryFlags] = 0
	clear(e[entryBase : responseSense+senseSize])
	e[responseStatus] = reply.Status
	copy(e[responseSense:responseSense+senseSize], reply.Sense)
	if given > 0 {
		e[entryFlags] |= flagLength
		le.PutUint32(e[responseRead:], uint32(given))
	}
	r.setTail(next)
	r.skip()
	return nil
}

// scatter writes an answer into a command's memory. What is left of a read is
// cleared: the memory is used again and again.
func scatter(c command, data []byte) (given int) {
	for _, v := range c.in {
		n := copy(v, data)
		clear(v[n:])
		data = data[n:]
		given += n
	}
	return given
}
