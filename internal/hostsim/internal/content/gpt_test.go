package content

import (
	"hash/crc32"
	"slices"
	"testing"
)

const mib = 1 << 20

// table returns a drive with the table of a system drive, and its entries.
func table(t *testing.T, size, block uint64) (*Bytes, []Entry) {
	t.Helper()
	c := &Bytes{}
	c.Put(GPT(size, block, SystemTable(size, block)...))
	list := c.Table(size, block)
	if len(list) != 2 || list[1].Name != "root" || list[1].Number != 2 {
		t.Fatalf("blocks of %d bytes: %+v", block, list)
	}
	return c, list
}

// TestAgrees: both copies are read by two implementations, and entries that differ in anything do not
// agree.
func TestAgrees(t *testing.T) {
	for _, size := range []uint64{64 * mib, 3 << 40, 1 << 60} {
		for _, block := range []uint64{512, 4096} {
			c, list := table(t, size, block)
			for _, lba := range []uint64{1, size/block - 1} {
				if !c.agrees(list, lba, size, block) {
					t.Errorf("%d bytes in blocks of %d: the copy in block %d is read differently", size, block, lba)
				}
				for what, change := range map[string]func(*Entry){
					"number": func(e *Entry) { e.Number++ }, "first": func(e *Entry) { e.First++ }, "last": func(e *Entry) { e.Last-- },
					"type": func(e *Entry) { e.Kind[3]++ }, "GUID": func(e *Entry) { e.ID[9]++ }, "name": func(e *Entry) { e.Name += "x" },
				} {
					other := slices.Clone(list)
					if change(&other[1]); c.agrees(other, lba, size, block) {
						t.Errorf("%d bytes in blocks of %d, block %d: another %s agrees", size, block, lba, what)
					}
				}
				if c.agrees(list[:1], lba, size, block) {
					t.Errorf("%d bytes in blocks of %d, block %d: one entry agrees with two", size, block, lba)
				}
			}
			c.Write(make([]byte, block), block)
			if again := c.Table(size, block); !slices.Equal(again, list) {
				t.Errorf("%d bytes in blocks of %d: the backup has %+v", size, block, again)
			}
		}
	}
}

// TestStrangeTables: a header that asks for more memory than a process has, with right checksums, is
// refused before go-diskfs reads it, and so is one whose numbers overflow.
func TestStrangeTables(t *testing.T) {
	const size, block = 64 * mib, 512
	for what, change := range map[string]func(h []byte){
		"2^31 entries":             func(h []byte) { le.PutUint32(h[80:], 1<<31) },
		"2^32-1 entries":           func(h []byte) { le.PutUint32(h[80:], 1<<32-1) },
		"entries of 2^31 bytes":    func(h []byte) { le.PutUint32(h[84:], 1<<31) },
		"entries beyond the drive": func(h []byte) { le.PutUint64(h[72:], 1<<63) },
		"another revision":         func(h []byte) { le.PutUint32(h[8:], 0x00020000); le.PutUint64(h[72:], 1<<63) },
		"entries at the end":       func(h []byte) { le.PutUint64(h[72:], size/block-1) },
	} {
		c, _ := table(t, size, block)
		for _, lba := range []uint64{1, size/block - 1} {
			h := make([]byte, 92)
			c.Read(h, lba*block)
			change(h)
			clear(h[16:20])
			le.PutUint32(h[16:], crc32.ChecksumIEEE(h))
			c.Write(h, lba*block)
		}
		if list := c.Table(size, block); list != nil {
			t.Errorf("%s: %+v", what, list)
		}
	}
}

// TestOneReaderOnly: a table that only one of the two implementations accepts has no partitions. Here the
// entries end behind the drive, where the bytes in memory read as zeros.
func TestOneReaderOnly(t *testing.T) {
	const size, block = 64 * mib, 512
	c, _ := table(t, size, block)
	entries, h := make([]byte, GptEntries*gptEntry), make([]byte, 92)
	c.Read(entries, 2*block)
	c.Zero(size-33*block, 33*block) // the backup
	c.Write(entries[:2*gptEntry], size-8*block)
	c.Read(h, block)
	le.PutUint64(h[72:], size/block-8)
	clear(h[16:20])
	le.PutUint32(h[16:], crc32.ChecksumIEEE(h))
	c.Write(h, block)
	if list := c.Table(size, block); list != nil {
		t.Errorf("%+v", list)
	}
}
