package gpt

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// cuts calls look with every state that a loss of power can leave while do runs:
// each write whole or not at all, and the one that was under way in any mix of
// old and new sectors.
func cuts(t *testing.T, m *medium, do func(Disk) error, look func(left *medium, whole bool)) {
	t.Helper()
	done := m.clone()
	must(t, do(done))
	if len(done.writes) == 0 {
		t.Fatal("nothing is written")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	left := m.clone()
	for _, w := range done.writes {
		look(left.clone(), true)
		for range 20 {
			torn := left.clone()
			for at := 0; at < len(w.data); at += sector {
				if rnd.IntN(2) == 0 {
					copy(torn.data[int(w.at)+at:], w.data[at:at+sector])
				}
			}
			look(torn, false)
		}
		copy(left.data[w.at:], w.data)
	}
	look(left, true)
	if !bytes.Equal(left.data, done.data) {
		t.Fatal("the writes that were seen are not all")
	}
}

// TestPowerCutWrite cuts every change short, of a sound table and of one that has
// one copy only: the old table is read or the new one, and writing again ends it.
func TestPowerCutWrite(t *testing.T) {
	for _, block := range []int{512, 4096} {
		sound := newMedium(5*mib, block)
		old := fresh(t, sound)
		add(t, old, mib, "drivebay-old")
		must(t, old.Write(sound))
		next, err := Read(sound)
		must(t, err)
		add(t, next, 2*mib, "drivebay-new")
		must(t, next.Remove(old.Partitions[0].GUID))

		noFirst, noBackup, unread := sound.clone(), sound.clone(), sound.clone()
		clear(noFirst.data[block : 2*block])
		clear(noBackup.data[len(noBackup.data)-block:])
		clear(unread.data[:block]) // the MBR
		for name, m := range map[string]*medium{"sound": sound, "backup only": noFirst, "first only": noBackup, "no MBR": unread} {
			cuts(t, m, next.Write, func(left *medium, _ bool) {
				got, err := Read(left)
				if err != nil {
					t.Fatalf("%s, %d: %v", name, block, err)
				}
				if !same(got, old) && !same(got, next) {
					t.Fatalf("%s, %d: %+v", name, block, got)
				}
				must(t, next.Write(left))
				reads(t, left, next)
			})
		}
	}
}

// TestPowerCutFirst cuts the first table of a drive short. Between whole writes
// there is none or the new one. What is left is known as begun, and by no other.
func TestPowerCutFirst(t *testing.T) {
	for _, blank := range []byte{0, 0xff} {
		m := &medium{data: bytes.Repeat([]byte{blank}, 4*mib), block: 512}
		table, other := fresh(t, m), fresh(t, m)
		for _, t2 := range []*Table{table, other} {
			add(t, t2, 2*mib, "drivebay-new")
		}
		strange := 0
		cuts(t, m, table.Write, func(left *medium, whole bool) {
			got, err := Read(left)
			switch {
			case err == nil:
				if !same(got, table) {
					t.Fatalf("%+v", got)
				}
			case !whole && errors.Is(err, ErrDamaged):
			case !errors.Is(err, ErrNone):
				t.Fatal(err)
			}
			if begun, err := table.Begun(left); !begun || err != nil {
				t.Fatalf("not known as begun: %v", err)
			}
			begun, err := other.Begun(left)
			if err != nil || begun && got != nil {
				t.Fatalf("another table is taken for begun: %v", err)
			}
			if !begun {
				strange++
			}
			must(t, table.Write(left))
			reads(t, left, table)
		})
		if strange == 0 {
			t.Error("another table always looks begun")
		}
	}
}

// TestPowerCutErase cuts an erasure short: erasing again ends it.
func TestPowerCutErase(t *testing.T) {
	for _, block := range []int{512, 4096} {
		m := newMedium(4*mib, block)
		table := fresh(t, m)
		add(t, table, 2*mib, "drivebay-last")
		must(t, table.Write(m))
		must(t, table.Remove(table.Partitions[0].GUID))
		must(t, table.Write(m))
		copy(m.data[2*mib:], "somebody's data")
		blank := newMedium(4*mib, block)
		copy(blank.data[2*mib:], "somebody's data")
		cuts(t, m, Erase, func(left *medium, _ bool) {
			must(t, Erase(left))
			if !bytes.Equal(left.data, blank.data) {
				t.Fatal("an erasure that was cut short leaves something behind")
			}
		})
	}
}

// TestEraseSpares what is not an empty table.
func TestEraseSpares(t *testing.T) {
	empty := newMedium(4*mib, 512)
	must(t, fresh(t, empty).Write(empty))
	full := fresh(t, empty)
	add(t, full, mib, "drivebay-full")
	change := func(f func(*medium)) *medium { m := empty.clone(); f(m); return m }
	dos := func(m *medium) {
		clear(m.data)
		copy(m.data[446:], "\x80\x00\x00\x00\x83\x00\x00\x00\x00\x08\x00\x00\x00\x08\x00\x00")
		copy(m.data[510:], "\x55\xaa")
	}
	for what, row := range map[string]struct {
		m       *medium
		refused bool
	}{
		"partitions in both":     {change(func(m *medium) { must(t, full.Write(m)) }), true},
		"partitions in one":      {change(func(m *medium) { must(t, full.Write(m)); copy(m.data[:mib], empty.data) }), true},
		"partitions in backup":   {change(func(m *medium) { must(t, full.Write(m)); clear(m.data[512:1024]) }), true},
		"both copies damaged":    {change(func(m *medium) { m.data[600]++; m.data[len(m.data)-500]++ }), true},
		"the front is not read":  {change(func(m *medium) { clear(m.data[mib:]); m.bad = func(off int64) bool { return off == 700 } }), true},
		"the MBR of another":     {change(dos), false},
		"another MBR and nobody": {change(func(m *medium) { clear(m.data); copy(m.data[510:], "\x55\xaa") }), false},
	} {
		before := bytes.Clone(row.m.data)
		if err := Erase(row.m); (err != nil) != row.refused {
			t.Errorf("%s: %v", what, err)
		}
		if !bytes.Equal(row.m.data, before) {
			t.Errorf("%s: something was erased", what)
		}
	}
}

func TestDamage(t *testing.T) {
	sound := newMedium(4*mib, 512)
	table := fresh(t, sound)
	p := add(t, table, mib, "drivebay-a")
	must(t, table.Write(sound))
	end := len(sound.data)
	both := func(m *medium) { m.data[520]++; m.data[end-500]++ }
	for what, row := range map[string]struct {
		damage func(*medium)
		want   error // nil: read from the other copy
	}{
		"first header":            {func(m *medium) { m.data[520]++ }, nil},
		"first header gone":       {func(m *medium) { clear(m.data[512:1024]) }, nil},
		"first entries":           {func(m *medium) { m.data[1500]++ }, nil},
		"first not read":          {func(m *medium) { m.bad = func(off int64) bool { return off < mib } }, nil},
		"first entries not read":  {func(m *medium) { m.bad = func(off int64) bool { return off == 1024 } }, nil},
		"backup header":           {func(m *medium) { m.data[end-500]++ }, nil},
		"backup entries":          {func(m *medium) { m.data[end-600]++ }, nil},
		"backup not read":         {func(m *medium) { m.bad = func(off int64) bool { return off > 2*mib } }, nil},
		"MBR":                     {func(m *medium) { m.data[450] = 0x83 }, nil},
		"both":                    {both, ErrDamaged},
		"first damaged, one gone": {func(m *medium) { both(m); clear(m.data[end-512:]) }, ErrDamaged},
		"both gone":               {func(m *medium) { clear(m.data[512:1024]); clear(m.data[end-512:]) }, ErrNone},
		"one gone, one not read":  {func(m *medium) { clear(m.data[512:1024]); m.bad = func(off int64) bool { return off > 2*mib } }, errMedium},
		"nothing read":            {func(m *medium) { m.bad = func(int64) bool { return true } }, errMedium},
	} {
		m := sound.clone()
		row.damage(m)
		got, err := Read(m)
		if row.want != nil {
			if !errors.Is(err, row.want) || errors.Is(err, ErrNone) != (row.want == ErrNone) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if err != nil || whole(m) {
			t.Errorf("%s: %+v, %v", what, got, err)
			continue
		}
		if f, ok := got.Find(p.GUID); !ok || f != p || got.GUID != table.GUID {
			t.Errorf("%s: %+v", what, got)
		}
		if m.bad == nil {
			must(t, got.Write(m))
			reads(t, m, table)
		}
	}
	liar := sound.clone()
	liar.lies = true
	must(t, table.Remove(p.GUID))
	if err := table.Write(liar); err == nil {
		t.Error("a drive that keeps nothing is believed")
	}
}

// TestUnreadCopyIsKept: one copy of a table cannot be read at the moment, and the other one is damaged or
// says that the drive is empty. What cannot be read may be the table with the partitions: nothing is
// written over it.
func TestUnreadCopyIsKept(t *testing.T) {
	sound := newMedium(4*mib, 512)
	table := fresh(t, sound)
	add(t, table, mib, "drivebay-a")
	must(t, table.Write(sound))
	empty := newMedium(4*mib, 512)
	must(t, fresh(t, empty).Write(empty))
	backup := len(sound.data) - 33*512
	front := func(off int64) bool { return off < mib }
	back := func(off int64) bool { return off > 2*mib }
	for what, row := range map[string]struct {
		bad   func(off int64) bool
		write func(*medium) error
		other func(*medium)
	}{
		"first not read, backup damaged": {front, func(m *medium) error { return table.Write(m) }, func(m *medium) { m.data[len(m.data)-500]++ }},
		"backup not read, first damaged": {back, func(m *medium) error { return table.Write(m) }, func(m *medium) { m.data[520]++ }},
		"first not read, backup empty":   {front, func(m *medium) error { return Erase(m) }, func(m *medium) { copy(m.data[backup:], empty.data[backup:]) }},
		"backup not read, first empty":   {back, func(m *medium) error { return Erase(m) }, func(m *medium) { copy(m.data[:backup], empty.data[:backup]) }},
	} {
		m := sound.clone()
		row.other(m)
		m.bad = row.bad
		if err := row.write(m); !errors.Is(err, errMedium) || len(m.writes) > 0 {
			t.Errorf("%s: %v, %d writes", what, err, len(m.writes))
		}
	}
}
