//go:build !race

package compare

import (
	"slices"
	"testing"
)

// TestEveryComparedLeafCounts changes one leaf after another of every pair: the
// change must be named, unless the leaf is exempt. It has one goroutine, and took 40 s under the race detector.
func TestEveryComparedLeafCounts(t *testing.T) {
	for _, p := range pairs(t) {
		doc, err := read(p.document)
		if err != nil {
			t.Fatal(err)
		}
		table, changed := tableOf(doc), 0
		for _, l := range doc.leaves {
			if table.exempted(&p.drive, l) {
				continue
			}
			changed++
			if _, differences := Evidence(change(t, p.document, l.path), p.drive); !slices.Contains(paths(differences), l.path) {
				t.Errorf("%s: %s changed from %q, and the comparison does not name it: %v", p.name, l.path, l.text, differences)
			}
		}
		if compared, _ := Evidence(p.document, p.drive); changed != compared {
			t.Errorf("%s: %d leaves compared, %d changed", p.name, compared, changed)
		}
	}
}
