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
	g := &Group{Name: "t", Seq: 19}
	lost := []string{"a", "c", "p", "x", "lvol0_pmspare", "p_tmeta", "p_tdata", "pvmove0", "pvmove0_mimage_0", "pvmove0_mimage_1"}
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
		"a pool without its data":    {text, 19, lost[:6], old},
		"a volume still on the old":  {text, 19, lost[1:], old},
		"a text that is cut off":     {text[:len(text)/2], 19, lost, old},
		"one that closes too much":   {text + "}\n", 19, lost, old},
	} {
		if out, err := without(c.text, &Group{Name: "t", Seq: c.seq}, c.lost, c.pv); !errors.Is(err, drivebay.ErrRefused) || out != "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestLost(t *testing.T) {
	g := &Group{LVs: []LV{
		{Name: "moves", Segments: []Segment{{On: []string{"pvmove0"}}}},
		{Name: "pvmove0", MovesFrom: "old", Segments: []Segment{{On: []string{"pvmove0_mimage_0", "pvmove0_mimage_1"}}}},
		{Name: "pvmove0_mimage_0", Parent: "pvmove0", Extents: []Extent{{PV: "old"}}},
		{Name: "pvmove0_mimage_1", Parent: "pvmove0", Extents: []Extent{{PV: "new"}}},
		{Name: "arrived", Extents: []Extent{{PV: "new"}}, Segments: []Segment{{On: []string{"/dev/sdb"}}}},
		{Name: "waits", Extents: []Extent{{PV: "old"}}},
		{Name: "both", Extents: []Extent{{PV: "old"}, {PV: "new"}}},
		{Name: "pool", Segments: []Segment{{On: []string{"pool_tdata"}}}},
		{Name: "pool_tdata", Parent: "pool", Extents: []Extent{{PV: "old"}}},
		{Name: "pool_tmeta", Parent: "pool", Extents: []Extent{{PV: "new"}}},
		{Name: "thin", Pool: "pool"},
	}}
	if got := g.Lost("old"); slices.Contains(got, "arrived") || len(got) != len(g.LVs)-1 {
		t.Errorf("%q", got)
	}
	if got := g.Lost("elsewhere"); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
