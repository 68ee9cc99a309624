package gpt

import (
	"errors"
	"hash/crc32"
	"testing"
)

// FuzzRead reads anything that may stand at the ends of a drive, with sums made
// right, or nothing would come past them. What is read must hold, and be written
// and read again as it was, unless it is of a shape that is never written here.
func FuzzRead(f *testing.F) {
	m := newMedium(4*mib, 512)
	table, err := New(m)
	must(f, err)
	add(f, table, mib, "drivebay-a")
	add(f, table, mib, "drivebay-b")
	must(f, table.Write(m))
	const array = 32 * 512
	end := len(m.data) - array - 512
	f.Add(m.data[512:1024], m.data[1024:1024+512], m.data[end+array:], uint16(9))
	f.Add(m.data[512:1024], m.data[1024:1024+512], []byte(nil), uint16(12))
	f.Add([]byte(signature), []byte(nil), []byte(nil), uint16(8))
	f.Fuzz(func(t *testing.T, first, entries, backup []byte, shift uint16) {
		block := 512 << (shift % 4)
		m := newMedium(4*mib, block)
		end := len(m.data) - arraySize - block
		copy(m.data[block:2*block], first)
		copy(m.data[2*block:], entries)
		copy(m.data[end:], entries)
		copy(m.data[len(m.data)-block:], backup)
		for _, at := range []int{block, len(m.data) - block} {
			seal(m, m.data[at:at+block])
		}
		got, err := Read(m)
		if err != nil {
			return
		}
		must(t, got.check())
		if err := got.Write(m); errors.Is(err, ErrMisencoded) {
			t.Fatal(err) // what can be encoded, another implementation reads alike
		} else if err != nil {
			return
		}
		again, err := Read(m)
		if err != nil || !same(got, again) || !whole(m) {
			t.Fatalf("read %+v\nthen %+v, %v", got, again, err)
		}
	})
}

// seal makes the sums of a header right where its numbers let it.
func seal(m *medium, b []byte) {
	at, bytes := le.Uint64(b[72:])*uint64(m.block), uint64(le.Uint32(b[80:]))*uint64(le.Uint32(b[84:]))
	if at < m.Size() && bytes <= m.Size()-at {
		le.PutUint32(b[88:], crc32.ChecksumIEEE(m.data[at:at+bytes]))
	}
	if size := le.Uint32(b[12:]); size >= headerSize && int(size) <= len(b) {
		clear(b[16:20])
		le.PutUint32(b[16:], crc32.ChecksumIEEE(b[:size]))
	}
}
