package volume

import "github.com/drivebay/drivebay"

// facts is what is known of a volume without asking its drives anything.
func (e *Engine) facts(v *drivebay.Volume, s *drivebay.Snapshot) drivebay.Facts {
	f := drivebay.Facts{Volume: *v, Drives: []drivebay.Drive{}, Complete: s.Complete, Gone: e.gone(v), LV: e.lvFacts(v)}
	for i := range s.Drives {
		for _, id := range v.Location.Drives {
			if s.Drives[i].ID == id {
				f.Drives = append(f.Drives, s.Drives[i])
			}
		}
	}
	return f
}
