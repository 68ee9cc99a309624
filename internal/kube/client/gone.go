package client

import (
	"strconv"
	"time"
)

// Gone remembers which versions of objects were deleted. The answer to an own request may arrive after the stream has
// delivered the deletion: stored then, the object would be in a cache forever. The zero value is ready for use.
type Gone struct {
	listed uint64 // version of the last complete list
	byName map[string]deletion
}

type deletion struct {
	version uint64
	at      time.Time
}

// keepGone is how long a deletion is remembered: longer than any request takes.
const (
	keepGone = 10 * time.Minute
	manyGone = 4096
)

// Listed notes a complete list: what it lacks was deleted before, or is made later.
func (g *Gone) Listed(version string) {
	g.listed, _ = strconv.ParseUint(version, 10, 64)
	g.byName = nil
}

// Deleted notes that an object was deleted at a version, or after it.
func (g *Gone) Deleted(name string, version uint64) {
	if len(g.byName) >= manyGone {
		for name, d := range g.byName {
			if time.Since(d.at) > keepGone {
				delete(g.byName, name)
			}
		}
	}
	if g.byName == nil {
		g.byName = map[string]deletion{}
	}
	g.byName[name] = deletion{max(version, g.byName[name].version), time.Now()}
}

// Is reports whether a version of an object that is not in the cache is that of one that was deleted.
func (g *Gone) Is(name string, version uint64) bool {
	return version <= max(g.listed, g.byName[name].version)
}
