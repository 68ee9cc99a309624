package render

import (
	"cmp"
	"slices"
	"strings"
)

// Layout is how the caller wants a list.
type Layout struct {
	Wide    bool     // every column, each in one line
	Columns []string // these columns in this order, by their names in lower case; empty: the usual ones
	Sort    string   // sort by this column, "-" before it for the reverse order; empty: the usual order
	Bare    bool     // no heads, and no summary below the list
}

// field is a column of a list of T.
type field[T any] struct {
	column
	on   shownWhere
	cell func(T) cell
	rank func(T) float64 // what the column is sorted by; nil: its text, with the numbers in it as numbers
}

// shownWhere says in which output a column is shown unless the caller names columns.
type shownWhere uint8

const (
	always        shownWhere = iota
	wideOnly                 // with -o wide
	narrowOnly               // without -o wide
	onRequest                // only if the caller names it
	inCluster                // in a list of several machines
	wideOrCluster            // in such a list, and with -o wide
)

func (w shownWhere) shown(wide bool) bool {
	return w == always || (w == wideOnly || w == wideOrCluster) && wide || w == narrowOnly && !wide
}

// ofCluster returns the columns of a list of several machines.
func ofCluster[T any](fields []field[T]) []field[T] {
	out := slices.Clone(fields)
	for i := range out {
		if out[i].on == inCluster || out[i].on == wideOrCluster {
			out[i].on = always
		}
	}
	return out
}

// name is the name of a column on the command line.
func (c column) name() string { return strings.ToLower(strings.ReplaceAll(c.head, " ", "-")) }

func names[T any](fields []field[T]) (out []string) {
	for _, f := range fields {
		if n := f.name(); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// chosen returns the columns of a layout. Names that no column has are left out.
func chosen[T any](fields []field[T], l Layout) (out []field[T]) {
	if len(l.Columns) == 0 {
		return slices.DeleteFunc(slices.Clone(fields), func(f field[T]) bool { return !f.on.shown(l.Wide) })
	}
	for _, name := range l.Columns {
		if i := indexOf(fields, name); i >= 0 {
			out = append(out, fields[i])
		}
	}
	return out
}

func indexOf[T any](fields []field[T], name string) int {
	return slices.IndexFunc(fields, func(f field[T]) bool { return f.name() == name })
}

// sortedBy returns items in the order of a layout.
func sortedBy[T any](fields []field[T], items []T, l Layout) []T {
	name, reverse := strings.CutPrefix(l.Sort, "-")
	i := indexOf(fields, name)
	if i < 0 {
		return items
	}
	f, out := fields[i], slices.Clone(items)
	slices.SortStableFunc(out, func(a, b T) int {
		order := 0
		if f.rank != nil {
			order = cmp.Compare(f.rank(a), f.rank(b))
		} else {
			order = natural(f.cell(a).text, f.cell(b).text)
		}
		if reverse {
			return -order
		}
		return order
	})
	return out
}

// tableOf draws items in the order given.
func tableOf[T any](fields []field[T], items []T, l Layout, s Style) string {
	shown := chosen(fields, l)
	t := table{keep: len(l.Columns) > 0, bare: l.Bare}
	for _, f := range shown {
		t.columns = append(t.columns, f.column)
	}
	for _, item := range items {
		row := make([]cell, len(shown))
		for i, f := range shown {
			row[i] = f.cell(item)
		}
		t.add(row...)
	}
	if l.Wide {
		s.Width = 0
	}
	return t.String(s)
}
