package tcmu

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"

	"github.com/drivebay/drivebay/hack/lab/emul"
)

// kernel plays the other side of a ring as target_core_user.c does: entries are
// contiguous, a pad fills the end, and space comes back behind the tail only.
type kernel struct {
	t       testing.TB
	mem     []byte
	off     uint32
	size    uint32
	cleaned uint32
	waiting map[uint16]uint64 // commands by number, and where their data is
	done    map[uint16]answer
}

type answer struct {
	status, flags byte
	read          uint32
	sense, data   []byte
}

const dataOff, slot = 4096, 512

func newKernel(t testing.TB, size uint32) (*kernel, *ring) {
	k := &kernel{t: t, mem: make([]byte, 16*4096), off: 128, size: size, waiting: map[uint16]uint64{}, done: map[uint16]answer{}}
	le.PutUint16(k.mem, mailboxVersion)
	le.PutUint16(k.mem[mailboxFlags:], outOfOrder|readLength)
	le.PutUint32(k.mem[mailboxOff:], k.off)
	le.PutUint32(k.mem[mailboxSize:], size)
	r, err := newRing(k.mem)
	if err != nil {
		t.Fatal(err)
	}
	return k, r
}

func (k *kernel) head() uint32     { return le.Uint32(k.mem[mailboxHead:]) }
func (k *kernel) setHead(v uint32) { le.PutUint32(k.mem[mailboxHead:], v) }

// room makes place for an entry, or says that there is none.
func (k *kernel) room(n uint32) bool {
	head, need := k.head(), n
	if k.size-head < n {
		need += k.size - head
	}
	if used := (head + k.size - k.cleaned) % k.size; k.size-used-1 < need {
		return false
	}
	if k.size-head < n {
		le.PutUint32(k.mem[k.off+head:], k.size-head) // opPad is 0
		k.setHead(0)
	}
	return true
}

func (k *kernel) put(e []byte, op uint32) {
	le.PutUint32(e, uint32(len(e))|op)
	copy(k.mem[k.off+k.head():], e)
	k.setHead((k.head() + uint32(len(e))) % k.size)
}

// send queues a command whose data are in two pieces that do not touch.
func (k *kernel) send(id uint16, cdb, out []byte) bool {
	e := make([]byte, 112+len(cdb)/8*8+8)
	if !k.room(uint32(len(e))) {
		return false
	}
	data := uint64(dataOff) + uint64(id%16)*slot
	le.PutUint16(e[entryID:], id)
	le.PutUint32(e[requestVectors:], 2)
	le.PutUint64(e[requestCommand:], uint64(k.off+k.head()+112))
	for i, v := range []uint64{data, slot / 4, data + slot/2, slot / 4} {
		le.PutUint64(e[requestVector+8*i:], v)
	}
	copy(e[112:], cdb)
	copy(k.mem[data:data+slot/4], out)
	if len(out) > slot/4 {
		copy(k.mem[data+slot/2:][:slot/4], out[slot/4:])
	}
	k.put(e, opCommand)
	k.waiting[id] = data
	return true
}

func (k *kernel) abort(ids ...uint16) {
	e := make([]byte, tmrIDs+8*((2*len(ids)+7)/8))
	if !k.room(uint32(len(e))) {
		k.t.Fatal("no room for an abort")
	}
	le.PutUint32(e[tmrCount:], uint32(len(ids)))
	for i, id := range ids {
		le.PutUint16(e[tmrIDs+2*i:], id)
	}
	k.put(e, opTask)
}

// collect reads the answers up to the tail.
func (k *kernel) collect() {
	for k.cleaned != le.Uint32(k.mem[mailboxTail:]) {
		e := k.mem[k.off+k.cleaned:]
		length := le.Uint32(e) &^ opMask
		if le.Uint32(e)&opMask == opCommand {
			id := le.Uint16(e[entryID:])
			data, there := k.waiting[id]
			if !there {
				k.t.Fatalf("an answer to command %d, which is none", id)
			}
			delete(k.waiting, id)
			k.done[id] = answer{status: e[responseStatus], flags: e[entryFlags], read: le.Uint32(e[responseRead:]), sense: bytes.Clone(e[responseSense:][:senseSize]),
				data: append(bytes.Clone(k.mem[data:data+slot/4]), k.mem[data+slot/2:][:slot/4]...)}
		}
		k.cleaned = (k.cleaned + length) % k.size
	}
}

// Thousands of commands of all lengths, answered in any order, around the end of
// the ring hundreds of times: each gets its own answer.
func TestRing(t *testing.T) {
	k, r := newKernel(t, 1000)
	rnd := rand.New(rand.NewSource(1))
	var pending []command
	next := uint16(1)
	for range 5000 {
		if len(k.waiting) < 6 && rnd.Intn(2) == 0 && k.waiting[next] == 0 {
			cdb := []byte{[]byte{0x12, 0x28, 0x88, 0xa8}[next%4], byte(next), byte(next >> 8), 15: 0}
			if k.send(next, cdb, bytes.Repeat([]byte{0xee}, slot/2)) {
				next++
			}
		}
		came, _, err := r.take()
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, came...)
		if len(pending) > 0 && rnd.Intn(2) == 0 {
			i := rnd.Intn(len(pending))
			c := pending[i]
			pending = append(pending[:i], pending[i+1:]...)
			id := uint16(c.cdb[1]) | uint16(c.cdb[2])<<8
			if id != c.id || len(c.cdb) != []int{6, 10, 16, 12}[id%4] {
				t.Fatalf("command %d is % x", c.id, c.cdb)
			}
			if err := r.complete(c, emul.Reply{Status: byte(id), Sense: []byte{byte(id), 1}, Data: bytes.Repeat([]byte{byte(id)}, int(id)%200)}); err != nil {
				t.Fatal(err)
			}
			k.collect()
		}
	}
	if len(k.done) < 1000 {
		t.Fatalf("%d commands only", len(k.done))
	}
	for id, a := range k.done {
		n := int(id) % 200
		want := append(bytes.Repeat([]byte{byte(id)}, n), make([]byte, slot/2-n)...)
		if a.status != byte(id) || a.sense[0] != byte(id) || a.read != uint32(n) || (a.flags == flagLength) != (n > 0) || !bytes.Equal(a.data, want) {
			t.Fatalf("command %d: %+v", id, a)
		}
	}
}

// What is sent is read from all its pieces; an abort names its commands.
func TestTake(t *testing.T) {
	k, r := newKernel(t, 2000)
	out := make([]byte, slot/2)
	rand.New(rand.NewSource(2)).Read(out)
	k.send(7, []byte{0x2a, 9: 0}, out)
	k.abort(7, 9, 11)
	k.send(8, []byte{0x28, 9: 0}, out)
	came, aborts, err := r.take()
	if err != nil || len(came) != 2 || !bytes.Equal(came[0].out, out) || came[1].out != nil || len(aborts) != 1 || fmt.Sprint(aborts[0].ids) != "[7 9 11]" {
		t.Fatalf("%v, %+v, %+v", err, came, aborts)
	}
	for _, c := range []command{came[1], came[0]} {
		if err := r.complete(c, emul.Reply{}); err != nil {
			t.Fatal(err)
		}
	}
	if k.collect(); k.cleaned != k.head() {
		t.Error("the abort is still in the way")
	}
}

func TestBrokenRing(t *testing.T) {
	for name, spoil := range map[string]func(e []byte){
		"command outside":  func(e []byte) { le.PutUint64(e[requestCommand:], 1<<40) },
		"vector outside":   func(e []byte) { le.PutUint64(e[requestVector:], 1<<63) },
		"vector too long":  func(e []byte) { le.PutUint64(e[requestVector+8:], 1<<62) },
		"too many vectors": func(e []byte) { le.PutUint32(e[requestVectors:], 1<<31) },
		"no length":        func(e []byte) { le.PutUint32(e, opCommand) },
		"too long":         func(e []byte) { le.PutUint32(e, 1<<20|opCommand) },
	} {
		k, r := newKernel(t, 1000)
		k.send(1, []byte{0x28, 9: 0}, nil)
		spoil(k.mem[k.off:])
		if _, _, err := r.take(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	k, r := newKernel(t, 1000)
	k.send(1, []byte{0x28, 9: 0}, nil)
	k.mem[k.off] |= 5 // an operation of a later kernel
	if came, _, err := r.take(); err != nil || len(came) != 0 || k.mem[k.off+entryFlags] != flagUnknown {
		t.Errorf("%v, %v", came, err)
	}
}

// The memory comes from the kernel, but a mistake in reading it must not end in a
// panic with every device's commands unanswered.
func FuzzRing(f *testing.F) {
	k, _ := newKernel(f, 1000)
	k.send(1, []byte{0x28, 9: 0}, nil)
	k.abort(1)
	f.Add(bytes.Clone(k.mem[:1200]))
	f.Fuzz(func(t *testing.T, b []byte) {
		mem := make([]byte, 16*4096)
		copy(mem, b)
		r, err := newRing(mem)
		if err != nil {
			return
		}
		came, _, err := r.take()
		if err != nil {
			return
		}
		for _, c := range came {
			if err := r.complete(c, emul.Reply{Data: make([]byte, 600)}); err != nil {
				return
			}
		}
	})
}
