package emul

import (
	"bytes"
	"math/rand"
	"path/filepath"
	"testing"
)

func rw16(op byte, lba uint64, count uint32) []byte {
	b := make([]byte, 16)
	b[0] = op
	be.PutUint64(b[2:], lba)
	be.PutUint32(b[10:], count)
	return b
}

// Both stores behave as a flat piece of memory does.
func TestStores(t *testing.T) {
	const size = 8 * chunkSize
	onDisk, err := openFile(filepath.Join(t.TempDir(), "disk"), size)
	if err != nil {
		t.Fatal(err)
	}
	m := memory{}
	want, got := make([]byte, size), make([]byte, size)
	rnd := rand.New(rand.NewSource(1))
	for i := range 300 {
		from := rnd.Intn(size)
		piece := want[from : from+rnd.Intn(min(size-from, 3*chunkSize))+1]
		switch rnd.Intn(3) {
		case 0:
			rnd.Read(piece)
		default:
			clear(piece)
		}
		for _, s := range []store{m, onDisk} {
			if i%3 == 0 && zeros(piece) {
				err = s.discard(int64(from), int64(len(piece)))
			} else {
				_, err = s.WriteAt(piece, int64(from))
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("step %d: %T is not as it was written (%v)", i, s, err)
			}
		}
	}
	if err := m.discard(0, size); err != nil || len(m) != 0 {
		t.Errorf("%v: %d chunks are left of nothing", err, len(m))
	}
}

func TestMedia(t *testing.T) {
	desc := testDisk()
	last := desc.blocks() - 1
	d := newDisk(t, desc)
	data := bytes.Repeat([]byte{7}, 1024)
	if r := d.Do(rw16(0x8a, last-1, 2), data); r.Status != StatusGood {
		t.Fatalf("% x", r.Sense)
	}
	if got := ask(t, d, rw16(0x88, last-1, 2)); !bytes.Equal(got, data) {
		t.Error("read is not what was written")
	}
	for name, cdb := range map[string][]byte{"behind the end": rw16(0x88, last, 2), "far behind": rw16(0x88, 1<<63, 1<<31), "a write": rw16(0x8a, last+1, 1)} {
		if r := d.Do(cdb, data); r.Status != StatusCheckCondition || r.Sense[2] != outOfRange.asc {
			t.Errorf("%s: % x", name, r.Sense)
		}
	}
	capacity := make([]byte, 16)
	capacity[0], capacity[1], capacity[13] = 0x9e, 0x10, 32
	if b := ask(t, d, capacity); be.Uint64(b) != last || be.Uint32(b[8:]) != 512 || b[13] != 3 {
		t.Errorf("capacity % x", b)
	}
	if b := ask(t, d, []byte{0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0}); be.Uint32(b) != 0xffffffff {
		t.Errorf("capacity % x", b)
	}
}

// What came before an unreadable block has been read; the information field names
// the block.
func TestUnreadable(t *testing.T) {
	const bad = 1<<32 + 5
	d := newDisk(t, testDisk())
	d.Do(rw16(0x8a, bad-2, 4), bytes.Repeat([]byte{9}, 2048))
	d.apply(Change{ReadErrors: &[]uint64{bad, bad + 1}})
	r := d.Do(rw16(0x88, bad-2, 8), nil)
	want := append([]byte{0x72, keyMedium, 0x11, 0, 0, 0, 0, 12, 0, 10, 0x80, 0}, be.AppendUint64(nil, bad)...)
	if !bytes.Equal(r.Sense, want) || !bytes.Equal(r.Data, bytes.Repeat([]byte{9}, 1024)) {
		t.Errorf("sense % x, %d bytes", r.Sense, len(r.Data))
	}
	if s := d.state(); s.ErrorCount != 10 || s.Errors[2].LBA != bad || s.Errors[2].Hours != 12345 {
		t.Errorf("logged %+v", s.Errors)
	}
	if ask(t, d, rw16(0x88, bad+2, 1)); d.Do(rw16(0x8f, bad, 1), nil).Status == StatusGood {
		t.Error("an unreadable block is verified")
	}
	d.descriptors = false
	d.apply(Change{ReadErrors: &[]uint64{77}})
	if r := d.Do([]byte{0x28, 0, 0, 0, 0, 70, 0, 0, 9, 0}, nil); !bytes.Equal(r.Sense[:14], []byte{0xf0, 0, keyMedium, 0, 0, 0, 77, 10, 0, 0, 0, 0, 0x11, 0}) || len(r.Data) != 7*512 {
		t.Errorf("fixed: % x, %d bytes", r.Sense, len(r.Data))
	}
}

func TestReallocation(t *testing.T) {
	for _, mends := range []bool{false, true} {
		desc := testDisk()
		desc.Reallocate = mends
		d := newDisk(t, desc)
		d.apply(Change{ReadErrors: &[]uint64{3, 4, 100}})
		d.Do(rw16(0x8a, 0, 8), make([]byte, 4096))
		if s := d.state(); mends && (len(s.ReadErrors) != 1 || s.Attributes[0].Raw != 10) || !mends && (len(s.ReadErrors) != 3 || s.Attributes[0].Raw != 8) {
			t.Errorf("mends %v: %+v", mends, s)
		}
	}
	d := newDisk(t, testDisk())
	d.apply(Change{WriteErrors: &[]uint64{3}})
	if r := d.Do(rw16(0x8a, 0, 8), make([]byte, 4096)); r.Status == StatusGood || r.Sense[1] != keyMedium || r.Sense[2] != 0x0c {
		t.Errorf("% x", r.Sense)
	}
	if b := ask(t, d, rw16(0x88, 3, 1)); !zeros(b) {
		t.Error("a failed write wrote")
	}
}

func TestUnmap(t *testing.T) {
	desc := testDisk()
	desc.RPM, desc.Block, desc.PhysicalBlock = 0, 4096, 0
	d := newDisk(t, desc)
	d.Do(rw16(0x8a, 10, 4), bytes.Repeat([]byte{1}, 4*4096))
	list := make([]byte, 24)
	be.PutUint16(list[2:], 16)
	be.PutUint64(list[8:], 11)
	be.PutUint32(list[16:], 2)
	if r := d.Do([]byte{0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0}, list); r.Status != StatusGood {
		t.Fatalf("% x", r.Sense)
	}
	b := ask(t, d, rw16(0x88, 10, 4))
	if b[0] != 1 || !zeros(b[4096:3*4096]) || b[3*4096] != 1 {
		t.Error("the wrong blocks are zeros")
	}
}
