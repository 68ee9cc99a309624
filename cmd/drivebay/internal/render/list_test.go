package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// bigRack returns 100 drives with long and wide names, and a volume on every second one.
func bigRack() ([]drivebay.Drive, *drivebay.VolumeSet) {
	drives, set := []drivebay.Drive{}, &drivebay.VolumeSet{Seq: 1}
	for i := range 100 {
		d := drivebay.Drive{ID: fmt.Sprintf("naa-50000000000000%02d", i), Name: fmt.Sprintf("sd%c%c", 'a'+i/26, 'a'+i%26), Type: drivebay.TypeHDD, Status: drivebay.StatusOnline,
			Identity: drivebay.Identity{Model: "SAMSUNG MZQL23T8HCLS-00A07 with a name that has no end", Serial: fmt.Sprintf("S64HNE0T%06d", i), Size: 4e12},
			Slot:     drivebay.Slot{Enclosure: "front", Bay: fmt.Sprintf("Slot %02d", i)}, Health: drivebay.Health(1 + i%3), Uses: []drivebay.Use{{Kind: "mount", What: "/srv/foreign"}}}
		if d.Health != drivebay.HealthGood {
			d.Findings = []drivebay.Finding{{Severity: d.Health, Text: "Reallocated_Sector_Ct 1400, +24 in 7 days, and 12 sectors that wait to be read"}}
		}
		drives = append(drives, d)
		if i%2 == 0 {
			set.Volumes = append(set.Volumes, &drivebay.VolumeView{Volume: drivebay.Volume{ID: fmt.Sprintf("%026d", i), Name: fmt.Sprintf("データ-kubernetes-dynamic-pvc-%02d", i),
				Health: d.Health, Location: drivebay.Location{Drives: []string{d.ID}}}, Space: &drivebay.Space{Used: uint64(i) << 30, Free: 1 << 30}})
		}
	}
	set.Drives = &drivebay.Snapshot{Drives: drives}
	return drives, set
}

// joined returns the texts of a column of a table, those of one row without the breaks.
func joined(text string) string { return strings.Join(strings.Fields(text), "") }

// TestNarrowKeepsWhatMatters: at every width no line is longer than the screen, and the health, the
// bay and what depends on a drive are shown.
func TestNarrowKeepsWhatMatters(t *testing.T) {
	drives, set := bigRack()
	for width := 60; width <= 240; width += 10 {
		s := Style{Width: width}
		list, volumes := Drives(drives, set, s, Layout{}), Volumes(set, s, Layout{})
		for line := range strings.Lines(list + volumes) {
			if n := columnsOf(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
		for _, head := range []string{"BAY", "HEALTH", "VOLUMES", "USE"} {
			if !strings.Contains(strings.SplitN(list, "\n", 2)[0], head) {
				t.Errorf("width %d: no column %s", width, head)
			}
		}
		for i := range drives {
			if !strings.Contains(joined(list), joined(drives[i].Slot.Bay)) {
				t.Errorf("width %d: %s is not shown", width, drives[i].Slot.Bay)
			}
		}
		if got, want := strings.Count(list, "foreign"), len(drives); got != want {
			t.Errorf("width %d: %d uses of %d are shown", width, got, want)
		}
		for i := 0; i < 100; i += 2 { // the end of a name that is broken
			if !strings.Contains(list, fmt.Sprintf("%02d", i)) {
				t.Errorf("width %d: volume %02d is not shown", width, i)
			}
		}
	}
}

func TestLayout(t *testing.T) {
	drives, set := bigRack()
	l := Layout{Columns: []string{"health", "days-left", "volumes"}, Sort: "-health", Bare: true}
	text := Drives(SortDrives(drives, set, l), set, Style{Width: 60}, l)
	first, _, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, "BAD      -  データ") || strings.Contains(text, "drives:") {
		t.Errorf("got %q ... %q", first, text[len(text)-60:])
	}
	all := Volumes(&drivebay.VolumeSet{Volumes: SortVolumes(set, Layout{Sort: "-used"}), Drives: set.Drives}, Style{}, Layout{Columns: []string{"name", "used", "free"}})
	if lines := strings.Split(all, "\n"); !strings.Contains(lines[1], "98  98 GiB  1 GiB") || !strings.Contains(lines[0], "NAME") {
		t.Errorf("not sorted by used: %q", lines[:2])
	}
	if got := SortDrives(drives, nil, Layout{Sort: "-bay"}); got[0].Slot.Bay != "Slot 99" || got[99].Slot.Bay != "Slot 00" {
		t.Errorf("sorted by bay: %s ... %s", got[0].Slot.Bay, got[99].Slot.Bay)
	}
	if text := Drives(nil, nil, Style{}, Layout{Bare: true}) + Volumes(&drivebay.VolumeSet{}, Style{}, Layout{Bare: true}); text != "" {
		t.Errorf("empty lists without heads print %q", text)
	}
	if text := Drives(drives[:1], nil, Style{}, Layout{}); strings.Contains(text, "VOLUMES") {
		t.Errorf("volumes that are not known are shown:\n%s", text)
	}
	if text := Drives(drives[:1], nil, Style{}, Layout{Columns: []string{"volumes"}}); !strings.Contains(text, "?") {
		t.Errorf("volumes that are not known are shown as none:\n%s", text)
	}
	for _, columns := range [][]string{DriveColumns(), VolumeColumns()} {
		sorted := slices.Clone(columns)
		slices.Sort(sorted)
		if len(slices.Compact(sorted)) != len(columns) {
			t.Errorf("a name is used twice: %q", columns)
		}
	}
}

func TestLines(t *testing.T) {
	for _, tc := range []struct {
		text  string
		width int
		want  []string
	}{
		{"one two", 0, []string{"one two"}},
		{"one two", 7, []string{"one two"}},
		{"one two", 6, []string{"one", "two"}},
		{"", 3, []string{""}},
		{"pvc-0123456789", 6, []string{"pvc-", "012345", "6789"}},
		{"a bcdefgh i", 4, []string{"a", "bcde", "fgh", "i"}},
		{"データベース", 5, []string{"デー", "タベ", "ース"}},
		{"é́́́ab", 2, []string{"é́́́a", "b"}},
	} {
		if got := lines(tc.text, tc.width); !slices.Equal(got, tc.want) {
			t.Errorf("lines(%q, %d) = %q, want %q", tc.text, tc.width, got, tc.want)
		}
	}
	for text, want := range map[string]int{"abc": 3, "데이터": 6, "e\u0301": 1, "🖴": 1, "💾": 2} {
		if got := columnsOf(text); got != want {
			t.Errorf("columnsOf(%q) = %d, want %d", text, got, want)
		}
	}
	if got, want := Wrap("one two three\n  four five six\n", Style{Width: 11}), "one two\n  three\n  four\n    five\n    six\n"; got != want {
		t.Errorf("Wrap: %q, want %q", got, want)
	}
	if got := words("run `drivebay drive show x` or `a b` now", 24); !slices.Equal(got, []word{{"", "run"}, {" ", "`drivebay drive show x`"}, {" ", "or"}, {" ", "`a b`"}, {" ", "now"}}) {
		t.Errorf("words: %q", got)
	}
	if got := cut("データベース", 5); got != "デー…" {
		t.Errorf("cut: %q", got)
	}
}

// TestGapsStay: what several spaces keep apart stays apart in a line that is broken elsewhere.
func TestGapsStay(t *testing.T) {
	got := Wrap("  volume data-1  GOOD  1 GiB   on a drive\n", Style{Width: 30})
	if want := "  volume data-1  GOOD  1 GiB\n    on a drive\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
