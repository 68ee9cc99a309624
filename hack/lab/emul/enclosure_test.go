package emul

import (
	"bytes"
	"testing"
)

func testShelf(t testing.TB) *Shelf {
	t.Helper()
	s, err := NewShelf(Enclosure{Name: "shelf", LogicalID: 0x5000c500aabbccdd,
		Slots: []Slot{{Name: "Slot 01", Address: 0x5000c50012345678}, {Name: "left of the door"}, {Name: "03", Removed: true}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func receive(page byte) []byte { return []byte{0x1c, 1, page, 0xff, 0xff, 0} }

// Elements are where the configuration page says, in the order of the names; this
// is how the kernel's driver walks them (drivers/scsi/ses.c).
func TestPages(t *testing.T) {
	s := testShelf(t)
	if got := ask(t, s, receive(0)); !bytes.Equal(got, []byte{0, 0, 0, 5, 0, 1, 2, 7, 0x0a}) {
		t.Errorf("supported pages % x", got)
	}
	conf := ask(t, s, receive(1))
	types := conf[12+int(conf[11]):]
	if conf[1] != 0 || conf[10] != 1 || types[0] != arrayDeviceSlot || types[1] != 3 || be.Uint64(conf[12:]) != 0x5000c500aabbccdd || int(be.Uint16(conf[2:])) != len(conf)-4 {
		t.Errorf("configuration % x", conf)
	}
	names := ask(t, s, receive(7))[8:]
	var got []string
	for len(names) > 0 {
		n := 4 + int(be.Uint16(names[2:]))
		got = append(got, string(names[4:n]))
		names = names[n:]
	}
	if len(got) != 4 || got[0] != "" || got[1] != "Slot 01" || got[2] != "left of the door" || got[3] != "03" {
		t.Errorf("names %q", got)
	}
	var addresses []uint64
	for b := ask(t, s, receive(10))[8:]; len(b) > 0; b = b[2+int(b[1]):] {
		if b[0]&0x80 == 0 {
			addresses = append(addresses, be.Uint64(b[8+12:]))
		}
	}
	if len(addresses) != 1 || addresses[0] != 0x5000c50012345678 {
		t.Errorf("addresses %x", addresses)
	}
	if got := ask(t, s, []byte{0x1c, 1, 1, 0, 32, 0}); !bytes.Equal(got, conf[:32]) {
		t.Error("the allocation length counts for nothing")
	}
	if r := s.Do(receive(3), nil); r.Status == StatusGood {
		t.Error("page 3 came")
	}
}

func TestLights(t *testing.T) {
	s := testShelf(t)
	slot := func(i int) []byte { return ask(t, s, receive(2))[12+4*i:][:4] }
	control := ask(t, s, receive(2))
	copy(control[12+4:], []byte{0x80, 0, 0x02, 0x20}) // selected: IDENT, FAULT
	copy(control[12:], []byte{0x00, 0, 0x02, 0x20})   // not selected
	if r := s.Do([]byte{0x1d, 0x10, 0, 0, byte(len(control)), 0}, control); r.Status != StatusGood {
		t.Fatalf("% x", r.Sense)
	}
	if !bytes.Equal(slot(0), []byte{1, 0, 0, 0}) || !bytes.Equal(slot(1), []byte{1, 0, 2, 0x20}) || !bytes.Equal(slot(2), []byte{0x15, 0, 0, 0}) {
		t.Errorf("% x", ask(t, s, receive(2)))
	}
	if st := s.state().Slots; st[0].Locate || st[0].Fault || !st[1].Locate || !st[1].Fault {
		t.Errorf("%+v", st)
	}
	control[7]++ // of another configuration
	if r := s.Do([]byte{0x1d, 0x10, 0, 0, byte(len(control)), 0}, control); r.Status == StatusGood {
		t.Error("the generation code counts for nothing")
	}
	yes, critical := true, byte(2)
	s.apply(Change{Slots: []SlotChange{{Name: "Slot 01", Status: &critical, Sensed: &yes, Locate: &yes}}})
	if !bytes.Equal(slot(0), []byte{2, 0, 2, 0x40}) {
		t.Errorf("% x", slot(0))
	}
}
