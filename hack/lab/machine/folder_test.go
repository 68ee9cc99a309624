package machine

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// newMachine is one that does not run: a folder and what is put into it.
func newMachine(t *testing.T, s Spec) *Machine {
	t.Helper()
	s, err := s.complete()
	if err != nil {
		t.Fatal(err)
	}
	return &Machine{spec: s, Dir: t.TempDir(), drives: map[string]*drive{}, taken: map[int]string{}}
}

func TestFolder(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	var live, next Machine
	if err := live.makeDir(); err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(tmp, dirPrefix+"dead")
	others := filepath.Join(tmp, "somebody-else's")
	for _, dir := range []string{dead, others} {
		if err := os.MkdirAll(filepath.Join(dir, "folder/below"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := next.makeDir(); err != nil {
		t.Fatal(err)
	}
	if live.Dir == next.Dir || !strings.HasPrefix(next.Dir, tmp) {
		t.Errorf("folders %s and %s", live.Dir, next.Dir)
	}
	for dir, there := range map[string]bool{live.Dir: true, next.Dir: true, others: true, dead: false} {
		if _, err := os.Stat(dir); (err == nil) != there {
			t.Errorf("%s: there is %v, want %v", filepath.Base(dir), err == nil, there)
		}
	}
	for _, m := range []*Machine{&live, &next} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(m.Dir); err == nil {
			t.Errorf("%s is left", m.Dir)
		}
	}
}

// TestFoldersTogether: programs that start at once take none of each other's
// folders for a dead machine's.
func TestFoldersTogether(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	machines := make([]Machine, 50)
	var wg sync.WaitGroup
	for i := range machines {
		wg.Go(func() {
			if err := machines[i].makeDir(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range machines {
		if _, err := os.Stat(machines[i].Dir); err != nil {
			t.Error(err)
		}
		machines[i].lock.Close()
	}
}

func TestDisks(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.img")
	if err := os.WriteFile(own, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, Spec{Drives: []Drive{
		{ID: "blank", Kind: SCSI, Serial: "A", Size: 123 << 20},
		{ID: "own", Kind: SCSI, Serial: "B", File: own},
	}})
	if err := m.makeDisks(); err != nil {
		t.Fatal(err)
	}
	file := m.drives["blank"].File
	st, err := os.Stat(file)
	if err != nil || st.Size() != 123<<20 || filepath.Dir(file) != m.Dir {
		t.Errorf("%s: %v, %v", file, st, err)
	}
	if b, err := os.ReadFile(own); err != nil || string(b) != "content" || m.drives["own"].File != own {
		t.Errorf("%s: %q, %v", m.drives["own"].File, b, err)
	}
	// After a power cut the machine has the disks that it had.
	if err := os.WriteFile(file, []byte("written"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.makeDisks(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "written" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestSlotOfTheCable: the network card has the last slot.
func TestSlotOfTheCable(t *testing.T) {
	for n, fits := range map[int]bool{slots - 1: true, slots: false} {
		m := newMachine(t, Spec{Link: NewLink(), Drives: many(n, NVMe)})
		if err := m.makeDisks(); (err == nil) != fits {
			t.Errorf("%d drives beside it: %v", n, err)
		}
	}
}

func TestSlots(t *testing.T) {
	nvme := func(id string, paths, slot int) Drive {
		return Drive{ID: id, Kind: NVMe, Serial: id, Paths: paths, Slot: slot}
	}
	for name, test := range map[string]struct {
		drives []Drive
		want   map[string][]int
		fails  string
	}{
		"one after the other": {append(many(2, NVMe), many(2, Virtio)...), map[string][]int{"nvme0": {1}, "nvme1": {2}, "virtio0": {3}, "virtio1": {4}}, ""},
		"a chosen one":        {[]Drive{nvme("a", 1, 2), nvme("b", 1, 0), nvme("c", 1, 0)}, map[string][]int{"a": {2}, "b": {1}, "c": {3}}, ""},
		"two beside another":  {[]Drive{nvme("a", 1, 2), nvme("b", 2, 0), nvme("c", 1, 0)}, map[string][]int{"a": {2}, "b": {3, 4}, "c": {1}}, ""},
		"two chosen ones":     {[]Drive{nvme("a", 2, 19)}, map[string][]int{"a": {19, 20}}, ""},
		"no slot needed":      {append(many(1, SCSI), nvme("a", 1, 1)), map[string][]int{"scsi0": nil, "a": {1}}, ""},
		"the last one":        {many(20, NVMe), map[string][]int{"nvme19": {20}}, ""},
		"none left":           {many(21, NVMe), nil, "nvme20"},
		"taken":               {[]Drive{nvme("a", 1, 2), nvme("b", 1, 2)}, nil, "for b"},
		"half taken":          {[]Drive{nvme("a", 1, 3), nvme("b", 2, 2)}, nil, "for b"},
		"a chosen one, later": {[]Drive{nvme("a", 1, 0), nvme("b", 1, 1)}, map[string][]int{"a": {2}, "b": {1}}, ""},
		"half beyond":         {[]Drive{nvme("a", 2, 20)}, nil, "for a"},
		"none for two":        {append(many(19, NVMe), nvme("a", 2, 0)), nil, "for a"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, Spec{Drives: test.drives})
			err := m.makeDisks()
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("error %v, want %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for id, want := range test.want {
				got := m.drives[id].slots
				if len(got) != len(want) {
					t.Errorf("%s is in %v, want %v", id, got, want)
					continue
				}
				for i := range want {
					if got[i] != want[i] || m.taken[want[i]] != id {
						t.Errorf("%s is in %v, want %v; slot %d is %q's", id, got, want, want[i], m.taken[want[i]])
					}
				}
			}
		})
	}
}
