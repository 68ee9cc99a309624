package volume

import (
	"sort"
	"sync"

	"github.com/drivebay/drivebay"
)

type using struct {
	lanes     lanes
	tableMu   sync.Mutex
	lastTable *table
}

// facts is what is known of a volume without asking its drives anything.
func (e *Engine) facts(v *drivebay.Volume, s *drivebay.Snapshot) drivebay.Facts {
	f := drivebay.Facts{Volume: *v, Drives: []drivebay.Drive{}, Complete: s.Complete, Gone: e.gone(v), LV: e.lvFacts(v)}
	for _, id := range v.Location.Drives {
		if d, ok := driveOf(s, id); ok {
			f.Drives = append(f.Drives, *d)
		}
	}
	return f
}

// driveOf finds a drive by its id; the drives of a snapshot are in their order.
func driveOf(s *drivebay.Snapshot, id string) (*drivebay.Drive, bool) {
	i := sort.Search(len(s.Drives), func(i int) bool { return s.Drives[i].ID >= id })
	if i == len(s.Drives) || s.Drives[i].ID != id {
		return nil, false
	}
	return &s.Drives[i], true
}
