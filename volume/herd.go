package volume

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// herd is a volume group with all that our records say is in it. What is in one group
// moves together: its drives are those of each of its records. One drive more than its
// kind has (two of linear and thin ones, three of a mirror) says that it is on its way
// between two of them. So where a move stands is told by the records and by the drives
// alone, whatever became of who began it.
type herd struct {
	drivebay.Location // LV is empty; the drives are the most that a record has
	volumes           []*drivebay.VolumeRecord
	snaps             []*drivebay.SnapshotRecord
}

// herds are those of some records, by group.
func herds(records []*drivebay.VolumeRecord, snaps []*drivebay.SnapshotRecord) map[string]*herd {
	out := map[string]*herd{}
	of := func(l drivebay.Location) *herd {
		h := out[l.VG]
		if h == nil {
			h = &herd{Location: l}
			h.LV, h.Instance = "", ""
			out[l.VG] = h
		}
		if len(l.Drives) > len(h.Drives) {
			h.Drives, h.Found = l.Drives, l.Found
		}
		return h
	}
	for _, r := range records {
		if l := r.Volume.Location; l.VG != "" {
			h := of(l)
			h.volumes = append(h.volumes, r)
		}
	}
	for _, r := range snaps {
		if l := r.Snapshot.Location; l.VG != "" {
			h := of(l)
			h.snaps = append(h.snaps, r)
		}
	}
	return out
}

// herds leaves out what went with its drives.
func (e *Engine) herds() map[string]*herd {
	s := e.drives.Snapshot()
	return herds(slices.DeleteFunc(slices.Clone(e.all()), func(r *drivebay.VolumeRecord) bool { return adrift(s, r.Volume.Location) }),
		slices.DeleteFunc(e.snapshotRecords(), func(r *drivebay.SnapshotRecord) bool { return adrift(s, r.Snapshot.Location) }))
}

// adrift says that all drives of a location were taken out for good. Others of its
// group may be elsewhere.
func adrift(s *drivebay.Snapshot, l drivebay.Location) bool {
	return len(l.Drives) > 0 && !slices.ContainsFunc(l.Drives, func(id string) bool {
		d, known := driveOf(s, id)
		return known && d.Usage != drivebay.UsageRemoved || !known && !s.Complete
	})
}

// width is how many drives a group of a kind has.
func width(k drivebay.LocationKind) int {
	if k == drivebay.LocationMirror {
		return 2
	}
	return 1
}

// travels says whether a location is one of a group that is on its way.
func travels(l drivebay.Location) bool { return l.VG != "" && len(l.Drives) > width(l.Kind) }

// resting refuses what cannot be done to a group on its way.
func resting(l drivebay.Location) error {
	if travels(l) {
		return fmt.Errorf("%w: volume group %s moves between drives %v: try again when it has moved", drivebay.ErrPending, l.VG, l.Drives)
	}
	return nil
}

func (h *herd) ids() []string {
	var out []string
	for _, r := range h.volumes {
		out = append(out, r.Volume.ID)
	}
	for _, r := range h.snaps {
		out = append(out, r.Snapshot.ID)
	}
	return out
}

// carries are the volumes that stand and fall with some logical volumes.
func (h *herd) carries(lvs []string) []*drivebay.VolumeRecord {
	var out []*drivebay.VolumeRecord
	for _, r := range h.volumes {
		if l := r.Volume.Location; slices.Contains(lvs, l.LV) || l.Pool != "" && slices.Contains(lvs, l.Pool) {
			out = append(out, r)
		}
	}
	return out
}

// pvOf is the identity of the physical volume that is made for a group on a drive to
// which it moves: it is written down nowhere, and the same after every loss of power.
func pvOf(vg, drive string) string { return lvm.PVUUID(vg + "\x00" + drive) }

// heading is what is to be done next with a group.
type heading struct {
	from, to string // drives; no to: it is to be chosen
	wait     string // what keeps it from being done
	over     bool   // from has gone for good, with all that is on it; to is where the others stay
}

// at is what is known of a drive for who heads for it.
type at struct {
	usage      drivebay.Usage
	here, well bool // it answers; it is not BAD
	holds      bool // the group has a physical volume on it
	empty      bool // nothing lies on that
	gone       bool // it was taken out for good, or is forgotten
}

// newestOn says that the legs of all mirrors on a drive hold everything: from others none is
// made anew before an operator accepts the loss.
func (h *herd) newestOn(drive string) bool {
	return !slices.ContainsFunc(h.volumes, func(r *drivebay.VolumeRecord) bool {
		m := r.Volume.Mirror
		return m != nil && (m.Doubt != "" || m.Current != "" && m.Current != drive)
	})
}

func (h *herd) heading(look func(drive string) at) (heading, bool) {
	if travels(h.Location) {
		if h.Found {
			return headFound(h.Location, look)
		}
		if h.Kind == drivebay.LocationMirror {
			return headMirror(h.Drives, look)
		}
		return headHome(h.Drives[0], h.Drives[1], look)
	}
	for i, id := range h.Drives {
		is := look(id)
		lost := h.Kind == drivebay.LocationMirror && len(h.Drives) == 2 && is.gone && look(h.Drives[1-i]).here && h.newestOn(h.Drives[1-i])
		if is.usage == drivebay.UsageReleasing || lost {
			return heading{from: id}, true
		}
	}
	return heading{}, false
}

// headHome says which way what lies on two drives goes. Home is the first of them,
// until it is empty: back there if it stays, or if the other has turned bad, but never
// from a drive that is well to one that is BAD.
func headHome(home, other string, look func(string) at) (heading, bool) {
	a, b := look(home), look(other)
	back := heading{from: other, to: home}
	on := heading{from: home, to: other}
	switch {
	case !b.here && a.here && b.usage == drivebay.UsageRemoved:
		return heading{from: other, to: home, over: true}, true
	case !b.here && a.here && !b.holds: // nothing of it is there
		return back, true
	case !b.here:
		return heading{from: home, to: other, wait: fmt.Sprintf("drive %s, to which it was moving, is not there: put it back", other)}, true
	case !a.here && a.usage == drivebay.UsageRemoved:
		return heading{from: home, to: other, over: true}, true
	case !a.here:
		return heading{from: home, to: other, wait: fmt.Sprintf("drive %s, from which it was moving, is not there: put it back", home)}, true
	case !a.holds && b.holds:
		return on, true
	case a.well != b.well && a.well:
		return back, true
	case a.well != b.well:
		return on, true
	case a.usage == drivebay.UsageInUse:
		return back, true
	}
	return on, true
}

// headFound says which way a group goes that was found again on one drive more than its
// kind has. What had been decided is lost with the records, and so the drives alone
// decide: one that has to leave is left, one that has no part of the group, one that is
// BAD while the others are not, or one on which nothing lies. Where they do not decide, an
// operator does.
func headFound(l drivebay.Location, look func(string) at) (heading, bool) {
	from := ""
	for _, leaves := range []func(at) bool{
		func(d at) bool { return d.usage != drivebay.UsageInUse },
		func(d at) bool { return d.here && !d.holds },
		func(d at) bool { return d.here && !d.well },
		func(d at) bool { return d.here && d.empty },
	} {
		some := slices.DeleteFunc(slices.Clone(l.Drives), func(id string) bool { return !leaves(look(id)) })
		if len(some) == 1 && from == "" {
			from = some[0]
		}
	}
	others := slices.DeleteFunc(slices.Clone(l.Drives), func(id string) bool { return id == from })
	head := heading{from: from, to: others[0]}
	away := slices.DeleteFunc(slices.Clone(l.Drives), func(id string) bool { return look(id).here })
	switch {
	case from == "":
		head.from, head.to = l.Drives[0], l.Drives[1]
		head.wait = fmt.Sprintf("it is on drives %s, a move was cut short, and it is not known which of them was to be left: `drivebay release DRIVE` says so", strings.Join(l.Drives, ", "))
	case len(l.Drives) == 2 && len(away) > 0:
		return headHome(from, head.to, look)
	case len(away) > 0:
		head.wait = fmt.Sprintf("drive %s is not there: put it back", away[0])
	}
	return head, true
}

// headMirror says the same of a mirror with a third drive: it takes the place of the
// first that leaves. Where none does any more, the third goes again, if what it has
// can go back.
func headMirror(drives []string, look func(string) at) (heading, bool) {
	third := drives[2]
	c := look(third)
	for i, id := range drives[:2] {
		other := look(drives[1-i])
		if look(id).usage == drivebay.UsageInUse {
			continue
		}
		switch {
		case !c.here && c.holds:
			return heading{from: id, to: third, wait: fmt.Sprintf("drive %s, to which a leg was moving, is not there: put it back", third)}, true
		case (!c.here || !c.well) && look(id).here && look(id).well:
			return heading{from: third, to: id}, true
		case !other.here:
			return heading{from: id, to: third, wait: fmt.Sprintf("drive %s, which has the other leg, is not there: put it back", drives[1-i])}, true
		}
		return heading{from: id, to: third}, true
	}
	for _, id := range drives[:2] {
		if !look(id).holds {
			return heading{from: id, to: third}, true
		}
	}
	return heading{from: third, to: drives[0]}, true
}
