package gpt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const mib = 1 << 20

// medium is a drive in memory. It remembers its writes, and some of its bytes
// cannot be read.
type medium struct {
	data   []byte
	block  int
	writes []region
	bad    func(off int64) bool
	lies   bool // takes writes and keeps none
}

var errMedium = errors.New("medium error")

func newMedium(size, block int) *medium { return &medium{data: make([]byte, size), block: block} }

func (m *medium) Size() uint64   { return uint64(len(m.data)) }
func (m *medium) BlockSize() int { return m.block }
func (m *medium) Sync() error    { return nil }

func (m *medium) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m.data)) {
		return 0, io.EOF
	}
	n := copy(p, m.data[off:])
	for i := range n {
		if m.bad != nil && m.bad(off+int64(i)) {
			return i, errMedium
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *medium) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > int64(len(m.data)) || off%int64(m.block) != 0 || len(p)%m.block != 0 {
		return 0, io.ErrShortWrite
	}
	m.writes = append(m.writes, region{at: uint64(off), data: bytes.Clone(p)})
	if !m.lies {
		copy(m.data[off:], p)
	}
	return len(p), nil
}

func (m *medium) clone() *medium { return &medium{data: bytes.Clone(m.data), block: m.block} }

const linux = "0fc63daf-8483-4772-8e79-3d69d8477de4"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fresh(t testing.TB, m *medium) *Table {
	t.Helper()
	table, err := New(m)
	must(t, err)
	return table
}

func add(t testing.TB, table *Table, size uint64, name string) Partition {
	t.Helper()
	p, err := table.Add(size, Align, linux, NewGUID(), name)
	must(t, err)
	return p
}

func reads(t testing.TB, m *medium, want *Table) {
	t.Helper()
	if got, err := Read(m); err != nil || !whole(m) || !same(got, want) {
		t.Fatalf("read %+v, %v\nwant %+v", got, err, want)
	}
}

// whole reports whether both copies of a table are there and equal, with the MBR that the kernel wants.
func whole(d Disk) bool {
	c, err := readCopies(d)
	return err == nil && c.first != nil && reflect.DeepEqual(c.first, c.backup) && isProtective(c.mbr)
}

func same(a, b *Table) bool {
	return a.GUID == b.GUID && a.First == b.First && a.End == b.End && slices.Equal(a.Partitions, b.Partitions)
}

var blockSizes = []int{512, 1024, 2048, 4096}

func TestRoundTrip(t *testing.T) {
	for _, block := range blockSizes {
		m := newMedium(16*mib, block)
		if _, err := Read(m); !errors.Is(err, ErrNone) {
			t.Errorf("a blank drive: %v", err)
		}
		table := fresh(t, m)
		if len(m.writes) != 0 {
			t.Error("New writes")
		}
		must(t, table.Write(m))
		reads(t, m, table)
		a := add(t, table, 2*mib, "drivebay-"+strings.Repeat("a", 26))
		b := add(t, table, 3*mib, "drivebay-\U0001F4BE é") // 9 of 12 MiB are to spare, two fifths of them a's
		c := add(t, table, 4*mib, "c")                     // 2 of 6 MiB are, less than one of them b's
		if a.Number != 1 || a.Start != mib || b.Number != 2 || b.Start != 6*mib || c.Number != 3 || c.Start != 9*mib {
			t.Errorf("%+v, %+v, %+v", a, b, c)
		}
		must(t, table.Write(m))
		reads(t, m, table)
		must(t, table.Remove(strings.ToUpper(b.GUID)))
		must(t, table.Grow(a.GUID, 5*mib))
		d := add(t, table, mib, "d")
		if d.Number != 2 || d.Start != 7*mib {
			t.Errorf("%+v", d)
		}
		must(t, table.Write(m))
		reads(t, m, table)
		if p, ok := table.Find(a.GUID); !ok || p.Size != 5*mib {
			t.Errorf("%+v, %v", p, ok)
		}
		if p, ok := table.FindName("d"); !ok || p != d {
			t.Errorf("%+v, %v", p, ok)
		}
		if _, ok := table.Find(b.GUID); ok {
			t.Error("what was removed is found")
		}
		if err := Erase(m); err == nil {
			t.Error("a table with partitions is erased")
		}
		reads(t, m, table)
	}
}

func TestRefusals(t *testing.T) {
	m := newMedium(8*mib, 4096)
	table := fresh(t, m)
	a, b := add(t, table, mib, "a"), add(t, table, 2*mib, "b")
	must(t, table.Grow(a.GUID, 2*mib)) // up to b
	a, _ = table.Find(a.GUID)
	before := *table
	before.Partitions = []Partition{a, b}
	adds := func(size, align uint64, kind, guid, name string) error {
		_, err := table.Add(size, align, kind, guid, name)
		return err
	}
	for what, row := range map[string]struct{ err, want error }{
		"too large":          {adds(5*mib, Align, linux, NewGUID(), "x"), ErrNoRoom},
		"far too large":      {adds(1<<63, Align, linux, NewGUID(), "x"), ErrNoRoom},
		"of no size":         {adds(0, Align, linux, NewGUID(), "x"), nil},
		"half a MiB":         {adds(mib/2, Align, linux, NewGUID(), "x"), nil},
		"aligned to nothing": {adds(mib, 0, linux, NewGUID(), "x"), nil},
		"aligned to 512":     {adds(mib, 512, linux, NewGUID(), "x"), nil},
		"a name too long":    {adds(mib, Align, linux, NewGUID(), strings.Repeat("x", 37)), errName},
		"no text":            {adds(mib, Align, linux, NewGUID(), "\xff"), errName},
		"a zero in a name":   {adds(mib, Align, linux, NewGUID(), "a\x00b"), errName},
		"no type":            {adds(mib, Align, "00000000-0000-0000-0000-000000000000", NewGUID(), "x"), nil},
		"half a type":        {adds(mib, Align, linux[:18], NewGUID(), "x"), nil},
		"no GUID":            {adds(mib, Align, linux, "zfc63daf-8483-4772-8e79-3d69d8477de4", "x"), nil},
		"a GUID of another":  {adds(mib, Align, linux, strings.ToUpper(a.GUID), "x"), nil},
		"grow into another":  {table.Grow(a.GUID, 3*mib), ErrNoRoom},
		"grow over the end":  {table.Grow(b.GUID, 6*mib), ErrNoRoom},
		"grow far":           {table.Grow(b.GUID, 1<<63), ErrNoRoom},
		"shrink":             {table.Grow(b.GUID, mib), nil},
		"grow half a block":  {table.Grow(b.GUID, 2*mib+512), nil},
		"grow nothing":       {table.Grow(linux, mib), ErrNoPartition},
		"remove nothing":     {table.Remove(linux), ErrNoPartition},
	} {
		if row.err == nil || row.want != nil && !errors.Is(row.err, row.want) {
			t.Errorf("%s: %v", what, row.err)
		}
	}
	must(t, table.Grow(a.GUID, 2*mib))
	if !same(table, &before) {
		t.Errorf("refusals changed the table: %+v", table)
	}
	table.Partitions[1].Start -= 4096
	if err := table.Write(m); err == nil || len(m.writes) != 0 {
		t.Errorf("partitions that overlap are written: %v", err)
	}
	for _, size := range []int{0, 16 << 10, mib, 2 * mib} {
		if _, err := New(newMedium(size, 512)); err == nil {
			t.Errorf("a table for %d bytes", size)
		}
	}
	if _, err := New(newMedium(8*mib, 520)); err == nil {
		t.Error("a table on blocks of 520 bytes")
	}
}

// TestFull fills a drive to its last MiB and a table to its last entry.
func TestFull(t *testing.T) {
	m := newMedium(130*mib, 512)
	table := fresh(t, m)
	if r := table.Largest(Align); r != (Range{Start: mib, Size: 128 * mib}) {
		t.Errorf("free: %+v", r)
	}
	for i := range 128 {
		add(t, table, mib, fmt.Sprint(i))
	}
	if free := table.Free(Align); free != nil || table.Largest(Align) != (Range{}) {
		t.Errorf("free: %+v", free)
	}
	must(t, table.Write(m))
	reads(t, m, table)
	order := table.byStart()
	for _, i := range []int{9, 99, 100} {
		must(t, table.Remove(order[i].GUID))
	}
	if p := add(t, table, mib, "exact fit"); p.Start != 10*mib {
		t.Errorf("%+v", p)
	}
	if p := add(t, table, 2*mib, "only fit"); p.Start != 100*mib {
		t.Errorf("%+v", p)
	}
	must(t, table.Write(m))
	larger := newMedium(200*mib, 512)
	copy(larger.data, m.data)
	got, err := Read(larger)
	must(t, err)
	if whole(larger) || got.End <= table.End || len(got.Partitions) != 127 {
		t.Errorf("on a drive that grew: until %d", got.End)
	}
	add(t, got, mib, "the last entry")
	if _, err := got.Add(mib, Align, linux, NewGUID(), "one too many"); !errors.Is(err, ErrNoRoom) {
		t.Errorf("entry 129: %v", err)
	}
	must(t, got.Write(larger))
	reads(t, larger, got)
}

// TestProperties does anything in any order: partitions never overlap, are
// aligned, keep their numbers, and read back.
func TestProperties(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		block := blockSizes[rnd.IntN(len(blockSizes))]
		m := newMedium((4+rnd.IntN(40))*mib+rnd.IntN(4)*block, block)
		table := fresh(t, m)
		numbers := map[string]int{}
		for step := range 60 {
			var guid string
			if n := len(table.Partitions); n > 0 {
				guid = table.Partitions[rnd.IntN(n)].GUID
			}
			switch rnd.IntN(4) {
			case 0, 1:
				if p, err := table.Add(uint64(1+rnd.IntN(5))*mib, Align, linux, NewGUID(), fmt.Sprint(step)); err == nil {
					numbers[p.GUID] = p.Number
				} else if !errors.Is(err, ErrNoRoom) {
					t.Fatal(err)
				}
			case 2:
				if table.Remove(guid) == nil {
					delete(numbers, guid)
				}
			case 3:
				if p, ok := table.Find(guid); ok {
					_ = table.Grow(guid, p.Size+uint64(rnd.IntN(3))*mib)
				}
			}
			holds(t, m, table)
			for _, p := range table.Partitions {
				if numbers[p.GUID] != p.Number {
					t.Fatalf("partition %d was %d", p.Number, numbers[p.GUID])
				}
			}
			if rnd.IntN(3) == 0 {
				must(t, table.Write(m))
				reads(t, m, table)
			}
		}
	}
}

func holds(t *testing.T, m *medium, table *Table) {
	t.Helper()
	must(t, table.check())
	sum := uint64(0)
	for _, p := range table.Partitions {
		if p.Start%Align != 0 || p.Size%Align != 0 || p.end() > m.Size() {
			t.Fatalf("%+v", p)
		}
		sum += p.Size
	}
	for _, r := range table.Free(Align) {
		if r.Start%Align != 0 || r.Size%Align != 0 || r.Size == 0 {
			t.Fatalf("%+v", r)
		}
		sum += r.Size
	}
	// All but the ends that hold the tables is free or taken.
	if want := table.End/Align*Align - Align; sum != want {
		t.Fatalf("%d bytes are free or taken of %d", sum, want)
	}
}

func TestGUID(t *testing.T) {
	const text, raw = "01234567-89ab-cdef-0123-456789abcdef", "\x67\x45\x23\x01\xab\x89\xef\xcd\x01\x23\x45\x67\x89\xab\xcd\xef"
	g, err := parseGUID(strings.ToUpper(text))
	if err != nil || string(g[:]) != raw || g.String() != text {
		t.Errorf("% x, %s, %v", g, g, err)
	}
	if a, b := NewGUID(), NewGUID(); a == b || a[14] != '4' || !strings.ContainsRune("89ab", rune(a[19])) {
		t.Errorf("%s, %s", a, b)
	}
}
