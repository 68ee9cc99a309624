package drivebay

import (
	"errors"
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

// TestFindDriveByPlace: the bay of a drive names it, after its exact names and before the beginning of
// one; work that cannot be undone refuses the beginning of a name, and a text with two meanings.
func TestFindDriveByPlace(t *testing.T) {
	drive := func(id, name, serial, bay string, status Status) Drive {
		return Drive{ID: id, Name: name, Identity: Identity{Serial: serial}, Slot: Slot{Enclosure: "front", Bay: bay}, Status: status}
	}
	s := &Snapshot{Drives: []Drive{
		drive("naa-5000a1", "sda", "SER10000", "Slot 07", StatusOnline),
		drive("naa-5000a2", "sdb", "SER20000", "Slot 13", StatusOnline),
		drive("naa-5000a3", "sdc", "SER30000", "Slot 13", StatusOffline), // replaced by naa-5000a2
		drive("naa-5000a4", "sdd", "SER 40000", "Slot 18", StatusOffline),
		drive("naa-5000a5", "sde", "7", "8", StatusOnline),
		drive("nguid-00ff", "nvme0n1", "1300SER", "1-2", StatusOnline),
		drive("sn-x-12", "sdf", "13001", "", StatusOnline),
	}}
	s.Drives[0].WWN, s.Drives[5].WWN = "naa.5000c50acf274344", "eui.0025384600253800"
	s.Drives[5].Protocol, s.Drives[5].Model = ProtocolNVMe, "KIOXIA X"
	for what, row := range map[string]struct{ find, whole string }{
		"Slot 07":       {"naa-5000a1", "naa-5000a1"},
		"slot 7":        {"naa-5000a1", "naa-5000a1"},
		"Bay 7":         {"naa-5000a1", "naa-5000a1"},
		"front/7":       {"naa-5000a1", "naa-5000a1"},
		"front/Slot 07": {"naa-5000a1", "naa-5000a1"},
		"rear/7":        {"", ""},
		"7":             {"naa-5000a5", ""}, // the serial of one drive, the bay of another
		"13":            {"naa-5000a2", ""}, // the present drive; its predecessor was in this bay as well
		"Slot 13":       {"naa-5000a2", ""},
		"18":            {"naa-5000a4", "naa-5000a4"},
		"8":             {"naa-5000a5", "naa-5000a5"},
		"1-2":           {"nguid-00ff", "nguid-00ff"},
		"2":             {"", ""}, // the name of bay 1-2 is no word with a number
		"sda7":          {"", ""},
		"naa-5000a":     {"", ""},
		"1300":          {"", ""}, // begins two serials
		"1300S":         {"nguid-00ff", ""},
		"ser1":          {"naa-5000a1", ""},
		"SER":           {"", ""},
		"sn-x":          {"sn-x-12", ""},
		"sn-x-1":        {"sn-x-12", ""},
		"13001":         {"sn-x-12", "sn-x-12"},

		"5000c50acf274344":                          {"naa-5000a1", "naa-5000a1"},
		"0x5000c50acf274344":                        {"naa-5000a1", "naa-5000a1"},
		"/dev/disk/by-id/wwn-0x5000c50acf274344":    {"naa-5000a1", "naa-5000a1"},
		"/dev/disk/by-id/scsi-35000c50acf274344":    {"naa-5000a1", "naa-5000a1"},
		"/dev/disk/by-id/ata-ST1600_SER10000":       {"naa-5000a1", "naa-5000a1"},
		"ata-ST1600_SER_40000":                      {"naa-5000a4", "naa-5000a4"},
		"/dev/disk/by-id/nvme-eui.0025384600253800": {"nguid-00ff", "nguid-00ff"},
		"/dev/disk/by-id/nvme-KIOXIA_X_1300SER":     {"nguid-00ff", "nguid-00ff"},
		"/dev/disk/by-id/nvme-KIOXIA_X_1300SER_1":   {"nguid-00ff", "nguid-00ff"},
		"/dev/disk/by-id/ata-ST1600_SER10000-part1": {"", ""},
		"/dev/disk/by-id/wwn-0x5000c50acf27":        {"", ""},
		"/dev/":                                     {"", ""},
	} {
		d, err := s.Resolve(what)
		if (err == nil) != (row.find != "") || err == nil && d.ID != row.find {
			t.Errorf("%q finds %+v, %v; want %q", what, d, err, row.find)
		}
		d, err = s.ResolveWhole(what)
		if (err == nil) != (row.whole != "") || err == nil && d.ID != row.whole {
			t.Errorf("%q, as a whole, finds %+v, %v; want %q", what, d, err, row.whole)
		}
	}
}

// TestFindSaysCandidates: the error of a text that names several things lists them.
func TestFindSaysCandidates(t *testing.T) {
	s := &Snapshot{Drives: []Drive{{ID: "naa-1111", Name: "sda", Slot: Slot{Bay: "3"}, Identity: Identity{Serial: "S1"}}, {ID: "naa-1112", Name: "sdb"}}}
	_, err := s.Resolve("naa-111")
	if want := `drive "naa-111": ambiguous: it names naa-1111 (sda, bay 3, serial S1), naa-1112 (sdb): give the ID`; !errors.Is(err, ErrAmbiguous) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	_, err = s.ResolveWhole("naa-1112x")
	if !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	_, err = (&Snapshot{Drives: s.Drives[:1]}).ResolveWhole("naa-11")
	if want := `drive "naa-11": ambiguous: it is only the beginning of naa-1111 (sda, bay 3, serial S1): give the whole ID or name`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	set := &VolumeSet{Snapshots: []VolumeSnapshot{{ID: "snapa", Name: "monday"}, {ID: "snapb", Name: "monday"}, {ID: "snapc", Name: "tuesday"}}}
	for _, row := range []struct {
		what   string
		prefix bool
		id     string
	}{{"snapa", false, "snapa"}, {"monday", false, ""}, {"tues", true, "snapc"}, {"tues", false, ""}, {"snap", true, ""}} {
		if v, err := set.ResolveSnapshot(row.what, row.prefix); (err == nil) != (row.id != "") || err == nil && v.ID != row.id {
			t.Errorf("%q finds %+v, %v; want %q", row.what, v, err, row.id)
		}
	}
}
