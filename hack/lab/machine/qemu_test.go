package machine

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/hack/lab/image"
)

var testImage = &image.Image{Kernel: "/i/vmlinux", Initrd: "/i/initrd", Root: "/i/root.img", ID: "id"}

// key is the name of the saved machine that a description starts from.
func key(t *testing.T, s Spec) string {
	t.Helper()
	s, err := s.complete()
	if err != nil {
		t.Fatal(err)
	}
	return s.stateKey(testImage, "QEMU 10.2")
}

// TestSavedFor: machines share a saved one when they differ only in what comes
// after its start.
func TestSavedFor(t *testing.T) {
	sata, nvme := many(2, SATA), many(2, NVMe)
	base := Spec{Memory: 512, Drives: append(slices.Clone(sata), nvme...)}
	change := func(f func(*Spec)) Spec {
		s := base
		s.Drives = slices.Clone(base.Drives)
		f(&s)
		return s
	}
	for name, test := range map[string]struct {
		spec Spec
		same bool
	}{
		"itself":            {base, true},
		"no hot drives":     {Spec{Memory: 512, Drives: sata}, true},
		"other hot drives":  {Spec{Memory: 512, Drives: append(many(3, SCSI), sata...)}, true},
		"two paths":         {change(func(s *Spec) { s.Drives[2].Paths = 2 }), true},
		"shares":            {change(func(s *Spec) { s.Shares = map[string]string{"src": "/src"} }), true},
		"link":              {change(func(s *Spec) { s.Link = NewLink() }), true},
		"another file":      {change(func(s *Spec) { s.Drives[0].File = "/elsewhere" }), true},
		"said what it is":   {change(func(s *Spec) { s.CPUs = 2 }), true},
		"memory":            {change(func(s *Spec) { s.Memory = 513 }), false},
		"processors":        {change(func(s *Spec) { s.CPUs = 1 }), false},
		"native slots":      {change(func(s *Spec) { s.NativeSlots = true }), false},
		"fewer SATA drives": {Spec{Memory: 512, Drives: sata[:1]}, false},
		"no SATA drives":    {Spec{Memory: 512, Drives: nvme}, false},
		"a SAS drive":       {change(func(s *Spec) { s.Drives = append(s.Drives, many(1, SAS)...) }), false},
		"cold serial":       {change(func(s *Spec) { s.Drives[0].Serial = "other" }), false},
		"cold size":         {change(func(s *Spec) { s.Drives[0].Size = 5 << 20 }), false},
		"cold model":        {change(func(s *Spec) { s.Drives[1].Model = "other" }), false},
		"cold WWN":          {change(func(s *Spec) { s.Drives[1].WWN = 1 }), false},
		"order of ports":    {change(func(s *Spec) { s.Drives[0], s.Drives[1] = s.Drives[1], s.Drives[0] }), false},
	} {
		if same := key(t, test.spec) == key(t, base); same != test.same {
			t.Errorf("%s: the same saved machine %v, want %v", name, same, test.same)
		}
	}
	s, err := base.complete()
	if err != nil {
		t.Fatal(err)
	}
	other := *testImage
	other.ID = "changed"
	if s.stateKey(&other, "QEMU 10.2") == key(t, base) || s.stateKey(testImage, "QEMU 10.3") == key(t, base) {
		t.Error("another image or another QEMU has the same saved machine")
	}
}

// TestShape: the arguments that a saved machine was saved with are those that it
// is restored with, word for word, wherever its files lie.
func TestShape(t *testing.T) {
	a := newMachine(t, Spec{Drives: append(many(2, SATA), many(2, NVMe)...)})
	b := newMachine(t, Spec{Drives: append(many(2, SATA), many(5, SCSI)...), Shares: map[string]string{"s": "/src"}})
	if a.Dir == b.Dir {
		t.Fatal("both lie in one folder")
	}
	first, second := a.spec.shape(testImage), b.spec.shape(testImage)
	if !slices.Equal(first, second) {
		t.Errorf("shapes differ:\n%v\n%v", first, second)
	}
	if s := strings.Join(first, " "); strings.Contains(s, a.Dir) || !strings.Contains(s, "-m 768 ") || !strings.Contains(s, "-smp 2 ") || !strings.Contains(s, "/i/root.img") {
		t.Errorf("shape %s", s)
	}
	// No two parts may claim the same place or name.
	seen := map[string]bool{}
	for _, arg := range (Spec{Drives: many(1, SAS), NativeSlots: true}).shape(testImage) {
		for _, f := range strings.Split(arg, ",") {
			if strings.HasPrefix(f, "id=") || strings.HasPrefix(f, "addr=") || strings.HasPrefix(f, "chassis=") {
				if seen[f] {
					t.Errorf("%s twice", f)
				}
				seen[f] = true
			}
		}
	}
}

// option finds the arguments of an option.
func option(args []string, name string) []string {
	var out []string
	for i := 0; i+1 < len(args); i++ {
		if args[i] == name {
			out = append(out, args[i+1])
		}
	}
	return out
}

func TestLocal(t *testing.T) {
	m := newMachine(t, Spec{
		Drives: []Drive{{ID: "nv0", Kind: NVMe, Serial: "N"}, {ID: "sa0", Kind: SATA, Serial: "A"}, {ID: "ss0", Kind: SAS, Serial: "S"}, {ID: "sa1", Kind: SATA, Serial: "B"}},
		Shares: map[string]string{"d": "/last", "b": "/with,comma", "a": "/plain", "c": "/third"},
	})
	if err := m.makeDisks(); err != nil {
		t.Fatal(err)
	}
	args := m.local(Drive.cold)
	var ids, buses []string
	for _, text := range option(args, "-device") {
		var d map[string]any
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		ids, buses = append(ids, d["id"].(string)), append(buses, d["bus"].(string))
	}
	if !slices.Equal(ids, []string{"sa0", "ss0", "sa1"}) || !slices.Equal(buses, []string{"ide.0", "sas.0", "ide.1"}) {
		t.Errorf("devices %v on %v", ids, buses)
	}
	if n := len(option(args, "-blockdev")); n != 3 {
		t.Errorf("%d contents", n)
	}
	for id, want := range map[string]bool{"nv0": false, "sa0": true, "ss0": true, "sa1": true} {
		if m.drives[id].plugged != want {
			t.Errorf("%s is plugged in: %v", id, m.drives[id].plugged)
		}
	}
	if fs := option(args, "-fsdev"); len(fs) != 4 || !strings.Contains(fs[0], "id=fs0,path=/plain,") || !strings.Contains(fs[1], "id=fs1,path=/with,,comma,") ||
		!strings.Contains(fs[2], "id=fs2,path=/third,") || !strings.Contains(fs[3], "id=fs3,path=/last,") {
		t.Errorf("shares %v", fs)
	}
	for _, fs := range option(args, "-fsdev") {
		if !strings.Contains(fs, "readonly=on") {
			t.Errorf("the guest may write to %s", fs)
		}
	}
	for _, name := range []string{"console", "qmp", "agent"} {
		if !strings.Contains(strings.Join(args, " "), filepath.Join(m.Dir, name)) {
			t.Errorf("no %s in the machine's folder: %v", name, args)
		}
	}
	// Booted for real, everything is there from the start.
	m = newMachine(t, m.spec)
	if err := m.makeDisks(); err != nil {
		t.Fatal(err)
	}
	if n := len(option(m.local(func(Drive) bool { return true }), "-device")); n != 4 {
		t.Errorf("%d devices", n)
	}
}

func TestRestorable(t *testing.T) {
	if !(Spec{Drives: append(many(2, NVMe), many(1, SATA)...)}).restorable() {
		t.Error("drives of one path keep a machine from being restored")
	}
	s, err := Spec{Drives: []Drive{{ID: "a", Serial: "A", Kind: NVMe, Paths: 2}}}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if s.restorable() {
		t.Error("a drive of two paths does not")
	}
}
