package gpt

import (
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
)

// TestContent: whoever is killed between two writes leaves a drive that is blank
// or ours to those who look at what is on it, from the first partition until the
// last one goes; but for an empty table, which Erase ends.
func TestContent(t *testing.T) {
	for _, block := range []int{512, 4096} {
		m := newMedium(8*mib, block)
		kind := func(m *medium) drivebay.ContentKind { return content.Detect(m, m.Size(), block).Kind }
		table := fresh(t, m)
		p := add(t, table, 2*mib, content.OursPrefix+"first")
		cuts(t, m, table.Write, func(left *medium, whole bool) {
			if whole {
				if k := kind(left); k != drivebay.ContentBlank && k != drivebay.ContentOurs {
					t.Errorf("the first partition is being made: %v", k)
				}
			}
		})
		must(t, table.Write(m))
		add(t, table, mib, content.OursPrefix+"second")
		must(t, table.Grow(p.GUID, 2*mib))
		cuts(t, m, table.Write, func(left *medium, whole bool) {
			if whole {
				if k := kind(left); k != drivebay.ContentOurs {
					t.Errorf("another partition is being made: %v", k)
				}
			}
		})
		must(t, table.Write(m))
		for len(table.Partitions) > 0 {
			must(t, table.Remove(table.Partitions[0].GUID))
		}
		must(t, table.Write(m))
		must(t, Erase(m))
		if k := kind(m); k != drivebay.ContentBlank {
			t.Errorf("the last partition is gone: %v", k)
		}
	}
}
