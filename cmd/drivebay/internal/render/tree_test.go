package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// grove is the machine of the goldens with a RAID over two drives, an empty bay, and volumes that are found
// and lost.
func grove() (*drivebay.Snapshot, *drivebay.VolumeSet) {
	set := shelf()
	s := *set.Drives
	s.Machine.Name = "rack"
	s.Bays = []drivebay.Bay{{Slot: drivebay.Slot{Enclosure: "0:0:8:0", Bay: "Slot 11"}}, {Slot: drivebay.Slot{Enclosure: "0:0:8:0", Bay: "Slot 10", Lit: true}, Drive: "naa-5000c500a1b2c3d4"}}
	for i := range s.Drives {
		d := &s.Drives[i]
		if d.Name == "sda" || d.Name == "vda" {
			d.Uses = append(d.Uses, drivebay.Use{Kind: "md", Device: "md0", What: "raid1"}, drivebay.Use{Kind: "partition", Device: d.Name + "9", Ours: true})
		}
		if d.Name == "vda" {
			d.Usage, d.Leaving = drivebay.UsageReleasing, &drivebay.Leaving{Why: "it clicks", Progress: &drivebay.Progress{Done: 1, Total: 4}}
		}
	}
	set.Found = []drivebay.FoundVolume{{ID: "found1", Size: 1 << 30, Drives: []string{"path-vda"}}}
	return &s, set
}

func TestTreeGoldens(t *testing.T) {
	s, set := grove()
	for name, got := range map[string]string{
		"tree":         Tree(TreeOf(s, set), Style{Now: now}),
		"tree-60":      Tree(TreeOf(s, set), Style{Width: 60, Now: now}),
		"tree-color":   Tree(TreeOf(s, set), Style{Width: 90, Color: true, Now: now}),
		"tree-unknown": Tree(TreeOf(s, nil), Style{Now: now}),
		"tree-empty":   Tree(TreeOf(&drivebay.Snapshot{}, set), Style{Now: now}),
		"tree-none":    Tree(TreeOf(&drivebay.Snapshot{}, nil), Style{Now: now}),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, got) })
	}
}

func TestTreeFits(t *testing.T) {
	drives, set := bigRack()
	drives[0].Model = "\x1b[2J"
	set.Volumes[0].Publications = []drivebay.Publication{{Path: "/var/lib/kubelet/pods/0f3b/volumes/kubernetes.io~csi/pvc-0/mount"}}
	for width := 60; width < 200; width += 20 {
		text := Tree(TreeOf(&drivebay.Snapshot{Drives: drives}, set), Style{Width: width})
		for line := range strings.Lines(text) {
			if n := columnsOf(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
		for i := range drives {
			if !strings.Contains(text, fmt.Sprintf("bay Slot %02d", i)) {
				t.Errorf("width %d: bay %d is not shown", width, i)
			}
		}
		if got := strings.Count(text, "volume データ"); got != len(set.Volumes) || strings.ContainsRune(text, '\x1b') {
			t.Errorf("width %d: %d volumes", width, got)
		}
	}
}
