package emul

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func testUnits(t testing.TB) (disk, shelf *Unit) {
	t.Helper()
	units, err := Units(Spec{Disks: []Disk{testDisk()}, Enclosures: []Enclosure{testShelf(t).desc}})
	if err != nil {
		t.Fatal(err)
	}
	return units[0], units[1]
}

func TestHang(t *testing.T) {
	u, _ := testUnits(t)
	read, check, inquiry := rw16(0x88, 0, 1), passed(ataCheckPower, 0, 0, 0, false), []byte{0x12, 0, 0, 0, 96, 0}
	for hang, want := range map[Hang][3]bool{HangNothing: {}, HangAll: {true, true, true}, HangIO: {true, false, false}, HangSMART: {false, true, false}} {
		if err := u.Apply(Change{Hang: &hang}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-u.Changed():
		default:
			t.Error("nobody is told")
		}
		for i, cdb := range [][]byte{read, check, inquiry} {
			if held, _ := u.Held(cdb); held != want[i] {
				t.Errorf("hang %q, %s: %v", hang, Key(cdb), held)
			}
		}
	}
	all, ms := HangAll, 20
	if err := u.Apply(Change{Hang: &all, Delay: &ms}); err != nil {
		t.Fatal(err)
	}
	if _, delay := u.Held(read); delay != 20*time.Millisecond {
		t.Errorf("delay %v", delay)
	}
	// A drive that is pulled hangs no more: what it did not answer fails.
	u.Pull(true)
	if held, delay := u.Held(read); held || delay != 0 || u.Do(read, nil).Sense[2] != keyNotReady {
		t.Errorf("held %v, delay %v", held, delay)
	}
	u.Pull(false)
	if u.Do(read, nil).Status != StatusGood {
		t.Error("not there again")
	}
}

func TestCounts(t *testing.T) {
	u, _ := testUnits(t)
	for range lastKept {
		u.Arrived(rw16(0x88, 0, 1))
	}
	u.Arrived(smartRead(smartReadData, 0))
	u.Arrived([]byte{0xa1, 6, 0, 0, 0, 0, 0, 0, 0, 0xe5, 0, 0})
	c := u.State().Counts
	want := map[string]uint64{"scsi 88": lastKept, "ata b0 d0": 1, "ata e5": 1}
	if c.Total != lastKept+2 || !reflect.DeepEqual(c.By, want) || len(c.Last) != lastKept || c.Last[lastKept-1] != "ata e5" || c.Last[lastKept-2] != "ata b0 d0" {
		t.Errorf("%+v", c)
	}
	if u.ResetCounts(); u.State().Counts.Total != 0 || c.Total == 0 {
		t.Error("not reset, or the copy was")
	}
}

// A change of which anything is wrong changes nothing.
func TestApply(t *testing.T) {
	disk, shelf := testUnits(t)
	before := disk.State()
	for _, change := range []string{
		`{"failed":true,"power":"asleep"}`, `{"failed":true,"hang":"smart-ish"}`, `{"failed":true,"delayMs":-1}`,
		`{"failed":true,"readErrors":[99999999999999]}`, `{"failed":true,"slots":[{"name":"Slot 01"}]}`,
		`{"failed":true,"statistics":[{"page":9,"offset":8,"value":1}]}`,
	} {
		if err := disk.Apply(parse(t, change)); err == nil || !reflect.DeepEqual(disk.State(), before) {
			t.Errorf("%s: %v", change, err)
		}
	}
	for _, change := range []string{`{"failed":true}`, `{"slots":[{"name":"Slot 01","fault":true},{"name":"no such"}]}`} {
		if err := shelf.Apply(parse(t, change)); err == nil || shelf.State().Shelf.Slots[0].Fault {
			t.Errorf("%s: %v", change, err)
		}
	}
	change := `{"failed":true,"power":"standby","attributes":[{"id":5,"value":1,"worst":1,"threshold":10,"raw":999},{"id":10,"value":100}],"statistics":[{"page":1,"offset":16,"value":5}]}`
	if err := disk.Apply(parse(t, change)); err != nil {
		t.Fatal(err)
	}
	s := disk.State().Disk
	if !s.Failed || s.Power != Standby || len(s.Attributes) != 5 || s.Attributes[0].Raw != 999 || s.Attributes[4].ID != 10 || s.Statistics[0].Value != 5 || len(s.Statistics) != 4 {
		t.Errorf("%+v", s)
	}
	if before.Disk.Attributes[0].Raw != 8 {
		t.Error("a state that was handed out changes")
	}
}

func parse(t *testing.T, s string) (c Change) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestValidate(t *testing.T) {
	for want, spoil := range map[string]func(*Disk){
		"name": func(d *Disk) { d.Name = "a,b" }, "logical block": func(d *Disk) { d.Block = 520 }, "physical block": func(d *Disk) { d.PhysicalBlock = 256 },
		"size": func(d *Disk) { d.Size++ }, "NAA": func(d *Disk) { d.WWN = 1 }, "characters": func(d *Disk) { d.Serial = strings.Repeat("x", 21) },
		"attributes": func(d *Disk) { d.Attributes = make([]Attribute, 31) }, "power": func(d *Disk) { d.Power = "off" },
		"statistic": func(d *Disk) { d.Statistics = []Statistic{{Page: 1, Offset: 512}} },
	} {
		d := testDisk()
		spoil(&d)
		if err := (Spec{Disks: []Disk{d}}).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := (Spec{Disks: []Disk{testDisk(), testDisk()}}).Validate(); err == nil {
		t.Error("two disks of one name")
	}
}
