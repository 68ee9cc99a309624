package render

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/condition"
)

// shelf is a handful of volumes on the drives of rack, judged by the real rules.
func shelf() *drivebay.VolumeSet {
	drives := rack()
	at := map[string]drivebay.Drive{}
	for _, d := range drives {
		at[d.Name] = d
	}
	set := &drivebay.VolumeSet{Seq: 1, At: now, Drives: &drivebay.Snapshot{Drives: drives, Complete: true}, Snapshots: []drivebay.VolumeSnapshot{
		{ID: "snapaaaaaaaaaaaaaaaaaaaaaa", Name: "monday", Source: "cccccccccccccccccccccccccc", Size: 3 << 29, Created: now.Add(-26 * time.Hour)},
		{ID: "snapbbbbbbbbbbbbbbbbbbbbbb", Name: "of nobody", Source: "zzzz", Size: 1 << 30},
	}}
	for _, f := range []drivebay.Facts{
		{Volume: drivebay.Volume{ID: "aaaaaaaaaaaaaaaaaaaaaaaaaa", Name: "data-10", Size: 10 << 30, Mode: drivebay.ModeFS, FSType: "ext4", FSUUID: "0c5e-77", Node: "rack",
			Parameters: map[string]string{"drivebay.io/wipe": "zero", "drivebay.io/backing": "mirror"}, Created: now.Add(-80 * time.Hour),
			Location:  drivebay.Location{Kind: drivebay.LocationMirror, Drives: []string{at["nvme0n1"].ID, at["sda"].ID}, VG: "drivebay-1", LV: "drivebay-aaaa"},
			CSIStatus: drivebay.CSIPublished, Usage: drivebay.VolumeInUse,
			Publications: []drivebay.Publication{{Path: "/staging/1", Staging: true}, {Path: "/pods/\x1b[2J1", ReadOnly: true}}},
			Drives: []drivebay.Drive{at["nvme0n1"], at["sda"]}, Complete: true,
			LV: &drivebay.LVFacts{SyncPercent: ptr(100.0)}, IO: &drivebay.IOFacts{Await: 3 * time.Millisecond},
			FS: &drivebay.FSFacts{Bytes: ptr(uint64(10 << 30)), Free: ptr(uint64(3 << 29)), Inodes: ptr(uint64(1000)), FreeInodes: ptr(uint64(10)), Scrub: &drivebay.Scrub{At: now.Add(-5 * time.Hour)}}},
		{Volume: drivebay.Volume{ID: "bbbbbbbbbbbbbbbbbbbbbbbbbb", Name: "data-9", Size: 1 << 40, Mode: drivebay.ModeRawPart, Node: "rack",
			Location:  drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{at["sdb"].ID}, Partition: "6a5f-01"},
			CSIStatus: drivebay.CSICreated, Usage: drivebay.VolumeInUse}, Drives: []drivebay.Drive{at["sdb"]}, Complete: true},
		{Volume: drivebay.Volume{ID: "cccccccccccccccccccccccccc", Name: "scratch", Size: 3 << 29, Mode: drivebay.ModeFS, FSType: "xfs", Node: "rack",
			Location:  drivebay.Location{Kind: drivebay.LocationThin, Drives: []string{at["nvme0n1"].ID}, VG: "drivebay-2", LV: "drivebay-cccc", Pool: "drivebay-pool"},
			CSIStatus: drivebay.CSIResizing, Usage: drivebay.VolumeInUse, Source: drivebay.Source{Volume: "bbbb"}}, Drives: []drivebay.Drive{at["nvme0n1"]}, Complete: true,
			LV: &drivebay.LVFacts{DataPercent: ptr(50.0), MetadataPercent: ptr(5.25)}},
		{Volume: drivebay.Volume{ID: "dddddddddddddddddddddddddd", Name: "lost", Size: 1 << 20, Mode: drivebay.ModeFS, FSType: "ext4", Node: "rack",
			Location:  drivebay.Location{Kind: drivebay.LocationDrive, Drives: []string{"naa-that-went-away"}},
			CSIStatus: drivebay.CSIFailed, Usage: drivebay.VolumeInUse,
			Failure: &drivebay.Failure[drivebay.CSIStatus]{Before: drivebay.CSIRemoving, Cause: "wipe: input/output error", Tries: 3, Retry: drivebay.RetryTimed, Since: now.Add(-time.Hour), Next: now.Add(time.Minute)}},
			Drives: []drivebay.Drive{}, Complete: true, IO: &drivebay.IOFacts{Frozen: 12 * time.Second, Errors: 4, ReadError: "timed out"},
			FS: &drivebay.FSFacts{Errors: 2, ReadOnly: true, Scrub: &drivebay.Scrub{At: now, Corrupt: 2, Text: "bad magic"}}},
	} {
		f.Volume.Health = condition.HealthOf(f)
		f.Volume.OperationalStatus = condition.OperationalStatusOf(f)
		v := &drivebay.VolumeView{Volume: f.Volume, Condition: condition.Of(f), Facts: &f}
		if f.Volume.CSIStatus == drivebay.CSIResizing {
			v.Work = "expand"
		}
		set.Volumes = append(set.Volumes, v)
	}
	return set
}

func TestVolumeGoldens(t *testing.T) {
	set := shelf()
	by := map[string]*drivebay.VolumeView{}
	for _, v := range set.Volumes {
		by[v.Name] = v
	}
	set.Volumes = OrderVolumes(set.Volumes)
	s, free := Style{Width: 100, Now: now}, Style{Now: now}
	bare := *by["data-9"]
	bare.Facts = nil
	for name, got := range map[string]string{
		"volumes":             Volumes(set, free, Layout{}),
		"volumes-color":       Volumes(set, Style{Color: true, Now: now}, Layout{}),
		"volumes-narrow":      Volumes(set, Style{Width: 80, Now: now}, Layout{}),
		"volumes-wide":        Volumes(set, s, Layout{Wide: true}),
		"volumes-none":        Volumes(&drivebay.VolumeSet{}, s, Layout{}),
		"volume-mirror":       Volume(by["data-10"], nil, s),
		"volume-thin":         Volume(by["scratch"], set.Snapshots[:1], s),
		"volume-lost":         Volume(by["lost"], nil, s),
		"volume-no-facts":     Volume(&bare, nil, s),
		"explain-volume":      ExplainVolume(by["data-10"], s),
		"explain-volume-thin": ExplainVolume(by["scratch"], s),
		"explain-volume-lost": ExplainVolume(by["lost"], free),
		"snapshots":           Snapshots(set.Snapshots, shelf(), s),
		"snapshots-none":      Snapshots(nil, set, s),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, got) })
	}
}

func TestNothingAboutVolumesEscapes(t *testing.T) {
	set := shelf()
	for _, v := range set.Volumes {
		v.Name, v.Node, v.Work = "n\x1b[2J\n", "\x1b[2J", "\x1b[2J"
		for _, text := range []string{Volume(v, set.Snapshots, Style{Now: now}), ExplainVolume(v, Style{Now: now})} {
			if strings.ContainsRune(text, '\x1b') {
				t.Errorf("a terminal would obey this: %q", text)
			}
		}
	}
	if text := Volumes(set, Style{Now: now}, Layout{Wide: true}); strings.ContainsRune(text, '\x1b') {
		t.Errorf("a terminal would obey this: %q", text)
	}
}

func TestVolumesFitTheScreen(t *testing.T) {
	set := shelf()
	for width := 60; width < 200; width += 7 {
		for line := range strings.Lines(Volumes(set, Style{Width: width}, Layout{})) {
			if strings.HasPrefix(line, "4 volumes") {
				continue // the sum is broken by the screen
			}
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
	}
}

// TestFoundVolumes: a volume on a drive that is not claimed is shown with the commands that
// take it in.
func TestFoundVolumes(t *testing.T) {
	found := []drivebay.FoundVolume{{ID: "abc", Name: "data\x1b[2J", Kind: drivebay.LocationLVM, Drives: []string{"d1", "d2"}, Size: 1 << 30}}
	text := Volumes(&drivebay.VolumeSet{Found: found}, Style{}, Layout{})
	for _, want := range []string{"no volumes\n", "volume abc", "1 GiB", "`drivebay claim d1 d2`", "`drivebay volume adopt abc`"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("a name reaches the terminal as it is: %q", text)
	}
}

func TestBinary(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 10 << 30: "10 GiB", 3 << 29: "1.5 GiB", 1<<40 - 1: "1 TiB", 1<<64 - 1: "16 EiB", 4000787030016: "3.6 TiB"} {
		if got := Binary(n); got != want {
			t.Errorf("Binary(%d) = %q, want %q", n, got, want)
		}
	}
}
