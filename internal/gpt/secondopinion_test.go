package gpt

import (
	"bytes"
	"errors"
	"hash/crc32"
	"math"
	"runtime"
	"strings"
	"testing"
)

// bent is a fault of an encoder: a change to the bytes of one copy, after which all checksums are made
// right again.
var bent = map[string]func(l layout, array, header []byte){
	"start":               func(_ layout, a, _ []byte) { a[32]++ },
	"start by a sector":   func(l layout, a, _ []byte) { le.PutUint64(a[32:], le.Uint64(a[32:])/8) },
	"end":                 func(_ layout, a, _ []byte) { a[40]-- },
	"end before start":    func(_ layout, a, _ []byte) { le.PutUint64(a[40:], 1) },
	"type":                func(_ layout, a, _ []byte) { a[0] ^= 1 },
	"type in byte order":  func(_ layout, a, _ []byte) { a[0], a[3] = a[3], a[0] },
	"GUID":                func(_ layout, a, _ []byte) { a[16+15] ^= 0x80 },
	"name":                func(_ layout, a, _ []byte) { a[56] ^= 1 },
	"name without an end": func(_ layout, a, _ []byte) { le.PutUint16(a[56+70:], 'x'); le.PutUint16(a[56+2*5:], 'x') },
	"attributes":          func(_ layout, a, _ []byte) { a[55] ^= 0x80 },
	"required":            func(_ layout, a, _ []byte) { a[48] |= 1 },
	"no entry":            func(_ layout, a, _ []byte) { clear(a[:16]) },
	"another entry":       func(_ layout, a, _ []byte) { copy(a[5*entrySize:], a[:entrySize]) },
	"number": func(_ layout, a, _ []byte) {
		copy(a[5*entrySize:], a[:entrySize])
		clear(a[:entrySize])
	},
	"entries of another table": func(_ layout, a, _ []byte) { clear(a) },
	"disk GUID":                func(_ layout, _, h []byte) { h[56] ^= 1 },
	"place of the header":      func(_ layout, _, h []byte) { h[24] ^= 2 },
	"place of the other":       func(_ layout, _, h []byte) { h[32] ^= 2 },
	"first block":              func(_ layout, _, h []byte) { h[40]++ },
	"last block":               func(_ layout, _, h []byte) { h[48]-- },
	"place of the entries":     func(_ layout, _, h []byte) { h[72]++ },
	"entries far away":         func(_ layout, _, h []byte) { le.PutUint64(h[72:], math.MaxUint64/3) },
	"2^31 entries":             func(_ layout, _, h []byte) { le.PutUint32(h[80:], 1<<31) },
	"no entries":               func(_ layout, _, h []byte) { le.PutUint32(h[80:], 0) },
	"entries of 2^31 bytes":    func(_ layout, _, h []byte) { le.PutUint32(h[84:], 1<<31) },
	"size of the header":       func(_ layout, _, h []byte) { le.PutUint32(h[12:], math.MaxUint32) },
	"signature":                func(_ layout, _, h []byte) { h[0] = 'e' },
	"revision":                 func(_ layout, _, h []byte) { h[10] = 2 },
}

// resum makes both checksums of a copy right, whatever its header says about sizes.
func resum(array, header []byte) {
	le.PutUint32(header[88:], crc32.ChecksumIEEE(array))
	clear(header[16:20])
	le.PutUint32(header[16:], crc32.ChecksumIEEE(header[:headerSize]))
}

// TestMisencoded: a table that was encoded wrongly is refused before anything is written, whichever copy
// is wrong, on a blank drive and over a sound table.
func TestMisencoded(t *testing.T) {
	for _, block := range blockSizes {
		blank := newMedium(16*mib, block)
		table := fresh(t, blank)
		for _, name := range []string{"drivebay-a", "drivebay-b", "drivebay-c"} {
			add(t, table, mib, name)
		}
		table.Partitions[0].TypeAttributes = 0x4000
		full := blank.clone()
		must(t, table.Write(full))
		for what, bend := range bent {
			for copyOf := range 2 {
				for _, on := range []*medium{blank, full} {
					c, err := readCopies(on)
					must(t, err)
					head, tail, err := table.encode(c.layout)
					must(t, err)
					parts := [][2][]byte{{head[2*block:], head[block : 2*block]}, {tail[:arraySize], tail[arraySize:]}}[copyOf]
					bend(c.layout, parts[0], parts[1])
					resum(parts[0], parts[1])
					refused(t, on, func(m *medium) error { return table.writeEncoded(m, c, head, tail) }, what)
				}
			}
		}
		refused(t, full, func(m *medium) error {
			c, err := readCopies(m)
			must(t, err)
			head, tail, err := table.encode(c.layout)
			must(t, err)
			clear(head[446:512])
			return table.writeEncoded(m, c, head, tail)
		}, "protective MBR")
		other := fresh(t, blank)
		add(t, other, 2*mib, "drivebay-a")
		refused(t, full, func(m *medium) error { // a whole table that was not asked for
			c, err := readCopies(m)
			must(t, err)
			head, tail, err := other.encode(c.layout)
			must(t, err)
			return table.writeEncoded(m, c, head, tail)
		}, "another table")
	}
}

// refused checks that a write fails with ErrMisencoded and leaves the drive as it was.
func refused(t *testing.T, on *medium, write func(*medium) error, what string) {
	t.Helper()
	on.writes = nil
	err := write(on)
	if !errors.Is(err, ErrMisencoded) || strings.Contains(err.Error(), "panic") {
		t.Errorf("blocks of %d bytes, %s: %v", on.block, what, err)
	}
	if len(on.writes) > 0 {
		t.Fatalf("blocks of %d bytes, %s: the drive was written", on.block, what)
	}
}

// vast is a drive of any size of which only what is written exists.
type vast struct {
	size  uint64
	block int
	held  []region
}

func (v *vast) Size() uint64   { return v.size }
func (v *vast) BlockSize() int { return v.block }
func (v *vast) Sync() error    { return nil }

func (v *vast) WriteAt(p []byte, off int64) (int, error) {
	v.held = append(v.held, region{at: uint64(off), data: bytes.Clone(p)})
	return len(p), nil
}

func (v *vast) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	for _, r := range v.held {
		if at := uint64(off); at >= r.at && at < r.at+uint64(len(r.data)) {
			copy(p, r.data[at-r.at:])
		}
	}
	return len(p), nil
}

// TestSecondOpinionVast: tables of drives beyond 2 TiB and 2^32 blocks agree, with the most partitions
// and the longest names, and cost the memory of the table only.
func TestSecondOpinionVast(t *testing.T) {
	for _, block := range blockSizes {
		for _, size := range []uint64{3 << 40, 30 << 40, 1 << 60} {
			v := &vast{size: size, block: block}
			table, err := New(v)
			must(t, err)
			for n := range MaxPartitions {
				name := strings.Repeat("\U0001F4BE", 18)
				if n%2 == 0 {
					name = strings.Repeat("é", 36)
				}
				_, err := table.Add(mib<<(n%12), Align, linux, NewGUID(), name)
				must(t, err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			must(t, table.Write(v))
			runtime.ReadMemStats(&after)
			if cost := after.TotalAlloc - before.TotalAlloc; cost > 2*mib {
				t.Errorf("%d bytes in blocks of %d: a write allocates %d bytes", size, block, cost)
			}
			got, err := Read(v)
			must(t, err)
			if !whole(v) || !same(got, table) {
				t.Errorf("%d bytes in blocks of %d: %+v", size, block, got)
			}
		}
	}
}

func BenchmarkSecondOpinion(b *testing.B) {
	m := newMedium(256*mib, 512)
	table := fresh(b, m)
	for range MaxPartitions {
		add(b, table, mib, "drivebay-0123456789abcdef")
	}
	l, err := layoutOf(m)
	must(b, err)
	head, tail, err := table.encode(l)
	must(b, err)
	b.ReportAllocs()
	for b.Loop() {
		must(b, table.secondOpinion(l, head, tail))
	}
}
