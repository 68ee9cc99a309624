package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
)

// Loss is a volume or snapshot that is lost with a drive.
type Loss struct{ Kind, ID, Name string }

func (l Loss) String() string { return fmt.Sprintf("%s %s (%s)", l.Kind, l.ID, render.Clean(l.Name)) }

// Lost lists the volumes and snapshots that have their only copy on a drive. It returns an error
// as well if the drive is ONLINE and one of these volumes is mounted.
func (f Facts) Lost(d *drivebay.Drive) (lost []Loss, err error) {
	for _, v := range f.Volumes.Volumes {
		if !slices.Contains(v.Location.Drives, d.ID) || survives(&v.Volume, d.ID, f.Drives) {
			continue
		}
		if d.Status == drivebay.StatusOnline && len(v.Publications) > 0 {
			err = fmt.Errorf("drive %s (%s): %w: %s is still mounted at %s", d.ID, d.Name, drivebay.ErrBusy, render.CalledVolume(&v.Volume), render.Clean(v.Publications[0].Path))
		}
		lost = append(lost, Loss{"volume", v.ID, v.Name})
	}
	for _, s := range f.Volumes.Snapshots {
		if slices.Contains(s.Location.Drives, d.ID) {
			lost = append(lost, Loss{"snapshot", s.ID, s.Name})
		}
	}
	return lost, err
}

// survives reports whether a volume is a mirror with all its data on another drive that is ONLINE.
func survives(v *drivebay.Volume, drive string, s *drivebay.Snapshot) bool {
	if m := v.Mirror; !v.Location.Mirrored() || m != nil && (m.Doubt != "" || m.Current == drive) {
		return false
	}
	return slices.ContainsFunc(v.Location.Drives, func(id string) bool {
		other, known := s.Get(id)
		return id != drive && known && other.Status == drivebay.StatusOnline
	})
}

// LossText lists what is lost.
func LossText(lost []Loss) string {
	if len(lost) == 0 {
		return "no known volume or snapshot"
	}
	var out []string
	for _, l := range lost {
		out = append(out, l.String())
	}
	return strings.Join(out, ", ")
}
