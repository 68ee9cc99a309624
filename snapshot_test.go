package drivebay

import "testing"

func TestFind(t *testing.T) {
	s := &Snapshot{Drives: []Drive{
		{ID: "naa-5000c500aaaa0001", Name: "sda", Identity: Identity{Serial: "ZA1", WWN: "naa.5000c500aaaa0001"}, Paths: []Path{{Name: "sda"}, {Name: "sdq"}}},
		{ID: "naa-5000c500aaaa0002", Name: "sdb", Identity: Identity{Serial: "DUP"}},
		{ID: "sn-x-dup", Name: "sdc", Identity: Identity{Serial: "DUP"}},
	}}
	cases := map[string]string{
		"naa-5000c500aaaa0001": "sda", "sda": "sda", "/dev/sda": "sda", "sdq": "sda", "za1": "sda",
		"naa.5000c500aaaa0001": "sda", "sn-x-d": "sdc",
		"DUP": "", "naa-5000c500aaaa": "", "sn": "", "": "", "nothing": "",
	}
	for what, want := range cases {
		d, ok := s.Find(what)
		if ok != (want != "") || (ok && d.Name != want) {
			t.Errorf("Find(%q) = %v, %v, want %q", what, d, ok, want)
		}
	}
	if _, ok := (*Snapshot)(nil).Find("sda"); ok {
		t.Error("found a drive in no snapshot")
	}
}

func TestFindBay(t *testing.T) {
	s := &Snapshot{Bays: []Bay{
		{Slot: Slot{Enclosure: "a", Bay: "Slot 00"}}, {Slot: Slot{Enclosure: "b", Bay: "Slot 00"}}, {Slot: Slot{Enclosure: "b", Bay: "Slot 01"}},
	}}
	if b, ok := s.FindBay("Slot 01"); !ok || b.Enclosure != "b" {
		t.Errorf("Slot 01: %v %v", b, ok)
	}
	if _, ok := s.FindBay("Slot 00"); ok {
		t.Error("an ambiguous bay was found")
	}
	if b, ok := s.FindBay("a/Slot 00"); !ok || b.Enclosure != "a" {
		t.Errorf("a/Slot 00: %v %v", b, ok)
	}
}

func TestSortFindings(t *testing.T) {
	f := []Finding{{Code: "b", Severity: HealthSuspect}, {Code: "z", Severity: HealthBad}, {Code: "a", Severity: HealthSuspect}, {Code: "u"}}
	SortFindings(f)
	for i, want := range []string{"z", "a", "b", "u"} {
		if f[i].Code != want {
			t.Errorf("place %d: %s, want %s", i, f[i].Code, want)
		}
	}
}
