package drivebay

import "testing"

func TestServer(t *testing.T) {
	for _, c := range []struct {
		h    *Hardware
		bay  string
		want string
	}{
		{nil, "13", "bay 13"},
		{&Hardware{}, "", ""},
		{&Hardware{BIOS: BIOS{Version: "1.2"}}, "13", "bay 13"},
		{&Hardware{Vendor: "ACME", Product: "R740", Serial: "ABC123"}, "13", "server ACME R740, serial ABC123, bay 13"},
		{&Hardware{Vendor: "ACME", Product: "R740"}, "", "server ACME R740"},
		{&Hardware{Vendor: "ACME", Serial: "ABC123"}, "13", "server with serial ABC123, bay 13"},
		{&Hardware{Vendor: "HPE", Product: "hpe ProLiant", Serial: "ABC123"}, "", "server hpe ProLiant, serial ABC123"},
		{&Hardware{Board: Board{Vendor: "Supermicro", Product: "X11"}}, "", "server Supermicro X11"},
	} {
		m := Machine{Hardware: c.h}
		if is := m.Place(Slot{Bay: c.bay}); is != c.want {
			t.Errorf("%+v: %q, want %q", c.h, is, c.want)
		}
	}
}

// TestWhereServer: an operator reads which serial number is that of the server and which that of the drive.
func TestWhereServer(t *testing.T) {
	d := Drive{Identity: Identity{Serial: "S1"}, Slot: Slot{Bay: "13", Enclosure: "0x500"}}
	s := Snapshot{Drives: []Drive{d}}
	if is, want := s.Where(&d), "bay 13, enclosure 0x500, serial S1"; is != want {
		t.Errorf("%q, want %q", is, want)
	}
	s.Machine.Hardware = &Hardware{Vendor: "ACME", Product: "R740", Serial: "ABC123"}
	if is, want := s.Where(&d), "server ACME R740, serial ABC123, bay 13, enclosure 0x500, drive serial S1"; is != want {
		t.Errorf("%q, want %q", is, want)
	}
}
