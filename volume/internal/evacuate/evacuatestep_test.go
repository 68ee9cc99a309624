package evacuate

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
)

// TestComplete: a group that misses a physical volume is not moved, whichever it is; a
// mirror is, and the physical volume to which a group moves is taken back when it is here.
func TestComplete(t *testing.T) {
	pv := func(uuid, device string, missing bool) lvm.PV {
		return lvm.PV{UUID: uuid, Device: device, Missing: missing}
	}
	here := pv("from", "/dev/a1", false)
	for _, r := range []struct {
		name string
		kind drivebay.LocationKind
		pvs  []lvm.PV
		may  bool
	}{
		{"all are here", drivebay.LocationLVM, []lvm.PV{here, pv("to", "/dev/b1", false)}, true},
		{"linear without from", drivebay.LocationLVM, []lvm.PV{pv("from", "", true), pv("to", "/dev/b1", false)}, false},
		{"thin without from", drivebay.LocationThin, []lvm.PV{pv("from", "", true), pv("to", "/dev/b1", false)}, false},
		{"from is here, and marked as missing", drivebay.LocationLVM, []lvm.PV{pv("from", "/dev/a1", true), pv("to", "/dev/b1", false)}, false},
		{"without to", drivebay.LocationLVM, []lvm.PV{here, pv("to", "", true)}, false},
		{"to is back", drivebay.LocationLVM, []lvm.PV{here, pv("to", "/dev/b1", true)}, true},
		{"without a third", drivebay.LocationThin, []lvm.PV{here, pv("to", "/dev/b1", false), pv("third", "", true)}, false},
		{"mirror", drivebay.LocationMirror, []lvm.PV{here, pv("to", "", true)}, true},
	} {
		h := &groups.VolumeGroup{Location: drivebay.Location{Kind: r.kind, VG: "vg"}}
		if err := complete(h, &lvm.Group{Name: "vg", PVs: r.pvs}, "to"); (err == nil) != r.may || err != nil && !errors.Is(err, drivebay.ErrRefused) {
			t.Errorf("%s: %v", r.name, err)
		}
	}
}

// TestDirectionWaitsForUnreadDrive: LVM cannot read one drive of a group that moves. A drive that was not
// read is not a drive without a part of the group.
func TestDirectionWaitsForUnreadDrive(t *testing.T) {
	ids := []string{"A", "B", "C"}
	for kind, n := range map[drivebay.LocationKind]int{drivebay.LocationLVM: 2, drivebay.LocationThin: 2, drivebay.LocationMirror: 3} {
		for _, found := range []bool{false, true} {
			for _, unread := range ids[:n] {
				h := &groups.VolumeGroup{Location: drivebay.Location{Kind: kind, VG: "vg", Drives: ids[:n], Found: found}}
				is, due := h.NextDirection(func(id string) groups.DriveState {
					return groups.DriveState{Usage: drivebay.UsageInUse, Here: true, Well: true, Holds: id != unread, Unread: id == unread}
				})
				if !due || is.Wait == "" {
					t.Errorf("%v, found %v, %s not read: %+v, %v", kind, found, unread, is, due)
				}
			}
		}
	}
}

// TestDirectionOfMirrorNeedsSource: no leg of a mirror moves, in whatever state the drives are, unless
// the leg that stays is here, and has all data or can get them from the leg that leaves.
func TestDirectionOfMirrorNeedsSource(t *testing.T) {
	usages := []drivebay.Usage{drivebay.UsageInUse, drivebay.UsageReleasing, drivebay.UsageRemoved}
	var all []groups.DriveState
	for _, u := range usages {
		for bits := range 8 {
			here := bits&1 != 0
			all = append(all, groups.DriveState{Usage: u, Here: here, Well: bits&2 != 0, Holds: bits&4 != 0, Gone: u == drivebay.UsageRemoved && !here})
		}
	}
	moved := 0
	for _, a := range all {
		for _, b := range all {
			for _, current := range []string{"", "A", "B"} {
				for _, ids := range [][]string{{"A", "B"}, {"A", "B", "C"}} {
					is := map[string]groups.DriveState{"A": a, "B": b, "C": {Usage: drivebay.UsageInUse, Here: true, Well: true}}
					r := &drivebay.VolumeRecord{Volume: drivebay.Volume{Mirror: &drivebay.Mirror{Current: current}}}
					h := &groups.VolumeGroup{Location: drivebay.Location{Kind: drivebay.LocationMirror, VG: "vg", Drives: ids}, Volumes: []*drivebay.VolumeRecord{r}}
					to, due := h.NextDirection(func(id string) groups.DriveState { return is[id] })
					if !due || to.Wait != "" || to.From == "C" || a.Usage == drivebay.UsageInUse && b.Usage == drivebay.UsageInUse {
						continue
					}
					moved++
					stays := map[string]string{"A": "B", "B": "A"}[to.From]
					if !is[stays].Here || !is[to.From].Here && current == to.From {
						t.Errorf("%v, A %+v, B %+v, the newest on %q: moves from %s", ids, a, b, current, to.From)
					}
				}
			}
		}
	}
	if moved == 0 {
		t.Error("nothing moves")
	}
}
