package lvm

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// TestWithout: the text is what lvm2 2.03.16 has of a group of which a is on its way
// from pv0 to pv1, b has arrived, and c and the thin pool p with x have not begun to.
func TestWithout(t *testing.T) {
	b, err := os.ReadFile("testdata/moving.meta")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	const old = "2Ua5Al-dIgn-hfUv-gEyo-B79M-xf09-vVIdt1"
	g := &Group{Name: "t", Seq: 19, LVs: []LV{{Name: "pvmove0", MovesFrom: old}, {Name: "pvmove0_mimage_0", Parent: "pvmove0"}, {Name: "pvmove0_mimage_1", Parent: "pvmove0"}}}
	lost := []string{"a", "c", "p", "x", "lvol0_pmspare", "p_tmeta", "p_tdata"}
	got, err := without(text, g, lost, old)
	if err != nil {
		t.Fatal(err)
	}
	all, err := blocks(strings.Split(got, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, s := range all {
		left = append(left, s.path)
	}
	want := []string{"t", "t/physical_volumes", "t/physical_volumes/pv1", "t/logical_volumes", "t/logical_volumes/b", "t/logical_volumes/b/segment1"}
	if !slices.Equal(left, want) {
		t.Errorf("left are %q", left)
	}
	_, theirs, _ := strings.Cut(text, "\n\t\tb {\n")
	theirs, _, _ = strings.Cut(theirs, "\n\t\tc {\n")
	if !strings.Contains(got, theirs) {
		t.Error("b is not what it was")
	}
	for what, c := range map[string]struct {
		text string
		seq  uint64
		lost []string
		pv   string
	}{
		"an older text":              {text, 18, lost, old},
		"a volume that is not there": {text, 19, append(slices.Clone(lost), "y"), old},
		"another drive":              {text, 19, lost, strings.Replace(old, "2", "3", 1)},
		"a pool without its data":    {text, 19, lost[:5], old},
		"a volume still on the old":  {text, 19, lost[1:], old},
		"a text that is cut off":     {text[:len(text)/2], 19, lost, old},
		"one that closes too much":   {text + "}\n", 19, lost, old},
	} {
		if out, err := without(c.text, &Group{Name: "t", Seq: c.seq, LVs: g.LVs}, c.lost, c.pv); !errors.Is(err, drivebay.ErrRefused) || out != "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestWithoutTarget: without the drive that a moves to, a is where it was, and b is
// lost, which had arrived. The same of a thin pool, in a text of its own.
func TestWithoutTarget(t *testing.T) {
	const old, other = "2Ua5Al-dIgn-hfUv-gEyo-B79M-xf09-vVIdt1", "roD9QC-E2t8-oBsd-0Yqg-dKx3-xbdR-0zQPAO"
	for file, c := range map[string]struct {
		seq  uint64
		want []string // in this order
	}{
		"moving.meta":      {19, []string{`"READ", "WRITE", "VISIBLE"]`, `"pv0", 0`, `"pv0", 56`, "c {", `"pv0", 40`, "p_tdata {"}},
		"moving-pool.meta": {25, []string{"a {", `"pv0", 0`, `"pv0", 56`, "p_tmeta {", `"READ", "WRITE"]`, `"pv0", 80`, "p_tdata {", `"READ", "WRITE"]`, `"pv0", 64`}},
	} {
		b, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		g := &Group{Name: "t", Seq: c.seq, LVs: []LV{{Name: "pvmove0", MovesFrom: old}, {Name: "pvmove0_mimage_0", Parent: "pvmove0"}, {Name: "pvmove0_mimage_1", Parent: "pvmove0"}}}
		got, err := without(string(b), g, []string{"b"}, other)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(got, "logical_volumes {")
		for _, want := range c.want {
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Errorf("%s: no %s in %s", file, want, rest)
			}
			rest = after
		}
		if strings.Contains(got, "LOCKED") || strings.Contains(got, "pvmove") || strings.Contains(got, other) || len(strings.Split(got, "\n")) < 100 {
			t.Errorf("%s: %s", file, got)
		}
		before, leg, _ := strings.Cut(string(b), "pvmove0_mimage_0 {")
		short := before + "pvmove0_mimage_0 {" + strings.Replace(leg, "\t\textent_count = ", "\t\textent_count = 0", 1) + "\n"
		short = strings.Replace(short, "extent_count = 032", "extent_count = 31", 1)
		short = strings.Replace(short, "extent_count = 01\t", "extent_count = 0\t", 1)
		if out, err := without(short, g, []string{"b"}, other); !errors.Is(err, drivebay.ErrRefused) || out != "" {
			t.Errorf("%s: what is not all there is taken: %v", file, err)
		}
	}
}

func TestLost(t *testing.T) {
	g := &Group{LVs: []LV{
		{Name: "moves", Segments: []Segment{{On: []string{"pvmove0"}}}},
		{Name: "pvmove0", MovesFrom: "old", Segments: []Segment{{On: []string{"pvmove0_mimage_0", "pvmove0_mimage_1"}}}},
		{Name: "pvmove0_mimage_0", Parent: "pvmove0", Extents: []Allocation{{PV: "old"}}},
		{Name: "pvmove0_mimage_1", Parent: "pvmove0", Extents: []Allocation{{PV: "new"}}},
		{Name: "arrived", Extents: []Allocation{{PV: "new"}}, Segments: []Segment{{On: []string{"/dev/sdb"}}}},
		{Name: "waits", Extents: []Allocation{{PV: "old"}}},
		{Name: "both", Extents: []Allocation{{PV: "old"}, {PV: "new"}}},
		{Name: "pool", Segments: []Segment{{On: []string{"pool_tdata"}}}},
		{Name: "pool_tdata", Parent: "pool", Extents: []Allocation{{PV: "old"}}},
		{Name: "pool_tmeta", Parent: "pool", Extents: []Allocation{{PV: "new"}}},
		{Name: "thin", Pool: "pool"},
	}}
	if got, want := g.LostWith("old"), []string{"moves", "waits", "both", "pool", "pool_tdata", "pool_tmeta", "thin"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got, want := g.LostWith("new"), []string{"arrived", "both", "pool", "pool_tdata", "pool_tmeta", "thin"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := g.LostWith("elsewhere"); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
