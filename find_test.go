package drivebay

import (
	"slices"
	"testing"
)

// TestFindVolume: an id wins over a name, a name over the beginning of an id, and two equal
// matches find nothing.
func TestFindVolume(t *testing.T) {
	volume := func(id, name string) *VolumeView { return &VolumeView{Volume: Volume{ID: id, Name: name}} }
	set := &VolumeSet{Volumes: []*VolumeView{volume("data-1-a", "x"), volume("data-1-b", "data-1"), volume("data-2-c", "data-2-d"), volume("data-2-d", "y"), volume("other-1", "twice"), volume("other-2", "twice")}}
	for what, want := range map[string]string{
		"data-1": "data-1-b", "data-1-a": "data-1-a", "data-2-d": "data-2-d", "data-2": "", "data-2-c": "data-2-c", "y": "data-2-d", "twice": "", "other": "", "other-": "", "": "", "none": "",
	} {
		v, ok := set.Find(what)
		if ok != (want != "") || ok && v.ID != want {
			t.Errorf("%q finds %+v, want %q", what, v, want)
		}
	}
}

// TestFindDrive: an id wins over a name of a drive, a name over the beginning of an id, in any
// order of the drives, and two equal matches find nothing.
func TestFindDrive(t *testing.T) {
	drive := func(id, name, serial string) Drive {
		return Drive{ID: id, Name: name, Identity: Identity{Serial: serial}}
	}
	drives := []Drive{drive("SERIAL-1", "sda", "a"), drive("SERIAL-2", "sdb", "SERIAL"), drive("wwn-1", "sdc", "wwn-3"), drive("wwn-2", "sdd", "wwn-3"), drive("wwn-3", "sde", "")}
	drives[4].WWN, drives[4].Paths = "w", []Path{{Name: "sdf"}}
	for range 2 {
		for what, want := range map[string]string{
			"SERIAL": "SERIAL-2", "SERIAL-": "", "SERIAL-1": "SERIAL-1", "serial": "SERIAL-2", "wwn-3": "wwn-3", "/dev/sdf": "wwn-3", "W": "wwn-3", "sda": "SERIAL-1", "": "", "sdz": "",
		} {
			d, ok := (&Snapshot{Drives: drives}).Find(what)
			if ok != (want != "") || ok && d.ID != want {
				t.Errorf("%q finds %+v, want %q", what, d, want)
			}
		}
		slices.Reverse(drives)
	}
}
