package lvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// The reports in testdata were recorded by hack/lab/suite (see record there):
// lvm2 2.03.16 on Debian 12.
func recorded(t testing.TB, name string) *Report {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParseHealthy(t *testing.T) {
	r := recorded(t, "healthy")
	g := r.Group("drivebay-all")
	if g == nil || len(r.Groups) != 1 || len(g.PVs) != 3 || g.ExtentSize != ExtentSize || g.AutoActivation || g.Partial || g.FreeExtents*ExtentSize != g.Free {
		t.Fatalf("the group is %+v", g)
	}
	if key, value, ok := DecodeTag(g.Tags[1]); !ok || key != "name" || value != `a volume, of "ours" #1` {
		t.Errorf("its tag is %q", g.Tags)
	}
	mirror, pool, thin, snap := g.LV("drivebay-mir"), g.LV("drivebay-pool"), g.LV("drivebay-thin"), g.LV("drivebay-snap")
	if mirror.Type != "raid1" || !mirror.Active || !mirror.Sync.Full() || mirror.Size != 40<<20 || len(g.PhysicalVolumesOf("drivebay-mir")) != 2 || mirror.SyncAction != "idle" {
		t.Errorf("the mirror is %+v on %v", mirror, g.PhysicalVolumesOf("drivebay-mir"))
	}
	if pool.Type != "thin-pool" || !pool.ErrorWhenFull || !pool.Data.Known || !pool.Metadata.Known || pool.Data.Full() {
		t.Errorf("the pool is %+v", pool)
	}
	if thin.Type != "thin" || thin.Pool != "drivebay-pool" || thin.ReadOnly || !slices.Equal(g.PhysicalVolumesOf("drivebay-thin"), g.PhysicalVolumesOf("drivebay-pool")) || len(g.PhysicalVolumesOf("drivebay-thin")) != 1 {
		t.Errorf("the thin volume is %+v on %v", thin, g.PhysicalVolumesOf("drivebay-thin"))
	}
	if snap.Origin != "drivebay-thin" || !snap.ReadOnly || snap.Active || snap.Suspended || snap.Data.Known || snap.Major != -1 {
		t.Errorf("the snapshot is %+v", snap)
	}
	if !g.Uses(g.PVs[0].UUID) || g.Uses(g.PVs[2].UUID) {
		t.Error("the wrong drives hold data")
	}
	var given uint64
	for _, lv := range g.LVs {
		for _, e := range lv.Extents {
			given += e.Count
		}
	}
	if given*ExtentSize != g.Size-g.Free {
		t.Errorf("%d extents are accounted for, of %d bytes given", given, g.Size-g.Free)
	}
}

func TestParseFaults(t *testing.T) {
	if meta := recorded(t, "thin-full").Group("drivebay-all").Metadata("drivebay-pool"); meta == nil || meta.Name != "drivebay-pool_tmeta" || meta.Size != 4<<20 {
		t.Errorf("the metadata of the pool are %+v", meta)
	}
	if pool := recorded(t, "thin-full").LV("drivebay-all", "drivebay-pool"); pool.Health != "out_of_data" || !pool.Data.Full() {
		t.Errorf("the full pool is %+v", pool)
	}
	lost := recorded(t, "lost").Group("drivebay-lost")
	mirror := lost.LV("drivebay-mir")
	if missing := lost.Missing(); !lost.Partial || len(missing) != 1 || !slices.Contains(lost.PhysicalVolumesOf("drivebay-mir"), missing[0]) || !mirror.Partial || !mirror.Active {
		t.Errorf("the group with a lost drive: %v missing, mirror %+v", missing, mirror)
	}
	for _, p := range lost.PVs {
		if p.Missing != (p.Device == "") || p.Size == 0 {
			t.Errorf("physical volume %+v", p)
		}
	}
	mended := recorded(t, "repaired").Group("drivebay-lost")
	if mended.Partial || len(mended.Missing()) > 0 || mended.LV("drivebay-mir").Partial || len(mended.PhysicalVolumesOf("drivebay-mir")) != 2 {
		t.Errorf("the repaired group is %+v", mended)
	}
	g := recorded(t, "moving").Group("drivebay-move")
	if under := g.PhysicalVolumesOf("drivebay-vol"); len(under) != 2 {
		t.Errorf("the volume that moves is on %v", under)
	}
	moves := 0
	for _, p := range g.PVs {
		if move := g.Move(p.UUID); move != nil && move.Sync.Known && !move.Sync.Full() {
			moves++
		}
	}
	if moves != 1 {
		t.Errorf("%d moves are under way", moves)
	}
}

// TestParseDamaged: two drives with a group each (of "damaged-copy" with one group on
// both), and the first is damaged: a bit of its label, its mda_header, the text of its
// group. lvm2 2.03.16 exits with 0 each time, and puts "Retrying metadata scan." into its
// standard output where the text is bad. What is on the other drive is read as ever.
func TestParseDamaged(t *testing.T) {
	const first, second = "/dev/loop0", "/dev/loop1"
	for name, listed := range map[string]bool{"damaged-label": false, "damaged-header": true, "damaged-text": true} {
		r := recorded(t, name)
		if pv, g := r.On(second); pv == nil || g == nil || g.Name != "vgb" || pv.NoMetadata || pv.Unreadable(g) {
			t.Errorf("%s: the sound drive is %+v in %+v", name, pv, g)
		}
		if pv, g := r.On(first); (pv != nil) != listed || g != nil || listed && !pv.Unreadable(g) {
			t.Errorf("%s: the damaged drive is %+v in %+v", name, pv, g)
		}
	}
	r := recorded(t, "damaged-copy")
	if pv, g := r.On(first); g == nil || !pv.NoMetadata || pv.Unreadable(g) || len(g.Missing()) > 0 {
		t.Errorf("the drive with a damaged copy is %+v in %+v", pv, g)
	}
	if pv, g := r.On(second); g == nil || pv.NoMetadata {
		t.Errorf("the drive with a good copy is %+v in %+v", pv, g)
	}
}

// TestParseForeignLines: messages around the report and in it are left out, and what is
// cut short is no report.
func TestParseForeignLines(t *testing.T) {
	whole := []byte("  Retrying metadata scan.\n{\n \"report\": [\nWARNING: x\n  {\"pv\": [\n\t\n{\"pv_uuid\":\"p\"}\n]}\nReading VG a without a lock.\n]\n}\nscan done\n")
	if r, err := Parse(whole); err != nil || len(r.Free) != 1 || r.Free[0].UUID != "p" {
		t.Errorf("read as %+v, %v", r, err)
	}
	for _, bad := range []string{string(whole[:60]), "Segmentation fault\n", string(whole) + "{}\n"} {
		if r, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%q is read as %+v", bad, r)
		}
	}
}

// TestParseNoTable: what LVM calls active has a device, and that may have no table. The rows without one are those of TestLabLVMNoTable.
func TestParseNoTable(t *testing.T) {
	for row, active := range map[string]bool{
		`"lv_live_table":"live table present","lv_suspended":"","lv_attr":"-wi-a-----"`:                        true,
		`"lv_live_table":"live table present","lv_suspended":"suspended","lv_attr":"-wi-XX----"`:               true, // LVM was killed before it resumed the volume
		`"lv_live_table":"live table present","lv_suspended":"","lv_attr":"-wi-XX----"`:                        true, // the table is not what the metadata say
		`"lv_live_table":"unknown","lv_suspended":"suspended"`:                                                 true,
		`"lv_live_table":"unknown","lv_suspended":"unknown","lv_device_open":"open"`:                           true,
		`"lv_suspended":"","lv_attr":"-wi-XX----"`:                                                             true, // it was not asked for
		`"lv_live_table":"unknown","lv_suspended":"unknown","lv_device_open":"unknown","lv_attr":"Vwi-XXtz--"`: false,
		`"lv_live_table":"","lv_suspended":"","lv_device_open":"","lv_attr":"-wi-i-----"`:                      false,
	} {
		r, err := Parse([]byte(`{"report":[{"vg":[{"vg_name":"a"}],"lv":[{"lv_uuid":"u","lv_name":"v","lv_active":"active",` + row + `},{"lv_uuid":"w","lv_name":"w","lv_active":"","lv_live_table":"unknown"}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if lv := r.LV("a", "v"); lv.Active != active || lv.NoTable == active {
			t.Errorf("%s: active %v, no table %v", row, lv.Active, lv.NoTable)
		}
		if lv := r.LV("a", "w"); lv.Active || lv.NoTable {
			t.Errorf("inactive: %+v", lv)
		}
	}
}

func TestParseTolerates(t *testing.T) {
	r, err := Parse([]byte(`{"report":[
		{"vg":[{"vg_name":"a","vg_size":4096,"vg_tags":["x","y"],"new_field":{"deep":[1]}}],"later":[],
		 "lv":[{"lv_uuid":"u","lv_name":"[hidden]","lv_size":null,"lv_kernel_major":7}],"pv":[{"pv_uuid":"p","pv_name":"[unknown]"}]},
		{"pv":[{"pv_uuid":"f","pv_name":"/dev/sdz"}]}],"log":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	g := r.Group("a")
	if g.Size != 4096 || !slices.Equal(g.Tags, []string{"x", "y"}) || g.LV("hidden") == nil || g.LVs[0].Major != 7 || !g.PVs[0].Missing || r.Free[0].Device != "/dev/sdz" {
		t.Errorf("read as %+v", r)
	}
	for _, bad := range []string{``, `{}`, `[]`, `{"report":[{"vg":[{"vg_name":"a","vg_size":"4k"}]}]}`, `{"report":[{"vg":[{"vg_name":"a"},{"vg_name":"b"}]}]}`,
		`{"report":[{"lv":[{"lv_name":"x"}]}]}`} {
		if r, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%s is read as %+v", bad, r)
		}
	}
}

// TestParseOddPercent: what is no percentage is unknown, and hides neither its volume nor another group.
func TestParseOddPercent(t *testing.T) {
	for _, odd := range []string{`"NaN"`, `"nan"`, `"100.03"`, `"-1"`, `-1`, `"-1.00"`, `""`, `null`, `"inf"`, `"unknown"`} {
		r, err := Parse(fmt.Appendf(nil, `{"report":[{"vg":[{"vg_name":"a"}],"lv":[{"lv_uuid":"u","lv_name":"x","data_percent":%s,"metadata_percent":%[1]s,"copy_percent":%[1]s}]},{"vg":[{"vg_name":"b"}]}]}`, odd))
		if err != nil {
			t.Errorf("%s: %v", odd, err)
			continue
		}
		if lv := r.LV("a", "x"); lv == nil || lv.Data.Known || lv.Metadata.Known || lv.Sync.Known || r.Group("b") == nil {
			t.Errorf("%s is read as %+v", odd, r)
		}
	}
}

func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("testdata/*.json")
	if err != nil || len(names) == 0 {
		f.Fatal(err, names)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			return
		}
		for _, g := range r.Groups {
			for _, lv := range g.LVs {
				g.PhysicalVolumesOf(lv.Name) // ends, also where volumes are their own parents
				if v := lv.Data.Value; v < 0 || v > 100 {
					t.Errorf("%v %% full", v)
				}
			}
			for _, p := range g.PVs {
				if p.Device == "" && !p.Missing {
					t.Errorf("%+v has no device and is not missing", p)
				}
			}
		}
	})
}

// FuzzPlain: a report that is decoded without encoding/json is valid, and is what encoding/json
// decodes. All recorded reports are decoded so.
func FuzzPlain(f *testing.F) {
	names, err := filepath.Glob("testdata/*.json")
	if err != nil || len(names) == 0 {
		f.Fatal(err, names)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if _, ok := plainReport(string(document(b))); !ok {
			f.Errorf("%s is left to encoding/json", name)
		}
		f.Add(b)
	}
	for _, row := range []string{``, `"a":"b"`, " \"a\" :\t\"b\" ,\n\"a\":\"c,d\"", `"a":"\u0041"`, `"a":"\"","b":"c"`, `"a":"ä"`, "\"a\":\"\xff\"", `"a":1`, `"a":["x","y"]`, `"a":null`, `"a":"x"}`, `"a":"x",`, `"a"`, `,`} {
		f.Add([]byte(`{"report":[{"vg":[{` + row + `}]}]}`))
	}
	for _, text := range []string{``, `{}`, `{"report":[]}`, `{"report":[],"log":[]}`, `{"report":[{"vg":[],"vg":[{}]}]}`, `{"report":[{"VG":[{"a":"b"}]},]}`, `{"report":[{}]}}`, "{\"report\":[{}]}\x00", `{"report":null}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := plainReport(string(b))
		if !ok {
			return
		}
		var want struct{ Report []section }
		if err := json.Unmarshal(b, &want); err != nil || !reflect.DeepEqual(got, want.Report) {
			t.Errorf("%q is read as %v, want %v, %v", b, got, want.Report, err)
		}
	})
}

func FuzzTag(f *testing.F) {
	f.Add("id", "vol-1")
	f.Add("name", "Größe, \x00#@ \"")
	f.Fuzz(func(t *testing.T, key, value string) {
		tag, err := EncodeTag(key, value)
		if err == nil {
			k, v, ok := DecodeTag(tag)
			if !ok || k != key || v != value || checkTag(tag) != nil {
				t.Errorf("%q=%q became %q and that %q=%q", key, value, tag, k, v)
			}
		}
		if k, v, ok := DecodeTag(value); ok {
			if again, err := EncodeTag(k, v); err != nil || again != value {
				t.Errorf("%q is read as %q=%q, which is written %q, %v", value, k, v, again, err)
			}
		}
	})
}

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "drivebay-1", "x.y", "+", "_a"} {
		if err := CheckNames(good, good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "-a", ".", "..", "a b", "ä", "snapshot1", "pvmove0", "a_tdata", "x_rimage_0", "a/b", strings.Repeat("a", 128)} {
		if err := CheckNames("g", bad); !errors.Is(err, drivebay.ErrInvalid) {
			t.Errorf("%q is taken: %v", bad, err)
		}
	}
	if err := CheckNames(strings.Repeat("a-", 30), "b-b-b-b-b-b-b-b-b"); !errors.Is(err, drivebay.ErrInvalid) {
		t.Errorf("a device-mapper name that is too long is taken: %v", err)
	}
	id := "0f3e9f3a-1b1e-4a5e-9d60-1c2d3e4f5a6b"
	g, err1 := GroupName(id)
	v, err2 := VolumeName(id)
	if err := errors.Join(err1, err2, CheckNames(g, v)); err != nil {
		t.Error("two UUIDs do not fit:", err)
	}
	if u := NewPVUUID(); len(u) != 38 || strings.Count(u, "-") != 6 || u == NewPVUUID() {
		t.Errorf("a physical volume's UUID is %s", u)
	}
}

func TestClassify(t *testing.T) {
	for text, kind := range map[string]error{ // as lvm2 2.03.16 says it
		`Volume group "g" has insufficient free space (989 extents): 9999 required.`:                                         ErrNoSpace,
		"Insufficient free space: 11 extents needed, but only 0 available":                                                   ErrNoSpace,
		`Logical Volume "lv1" already exists in volume group "g"`:                                                            ErrExists,
		"A volume group called g already exists.":                                                                            ErrExists,
		"Physical volume '/dev/sda' is already in volume group 'g'":                                                          ErrExists,
		"Volume group \"g\" not found\n  Cannot process volume group g":                                                      drivebay.ErrNotFound,
		`Failed to find logical volume "g/x"`:                                                                                ErrNotFound,
		"Logical volume g/x contains a filesystem in use.":                                                                   drivebay.ErrBusy,
		"WARNING: ext4 signature detected on /dev/sda at offset 1080. Wipe it? [y/n]: [n]\n  Aborted wiping of ext4.":        drivebay.ErrRefused,
		`Can't initialize physical volume "/dev/sda" of volume group "g" without -ff`:                                        ErrForeign,
		"WARNING: Couldn't find device with uuid U.\n  Cannot change VG g while PVs are missing.\n  Cannot process volume g": ErrMissingPV,
		"WARNING: Couldn't find device with uuid U.\n  Failed to find logical volume \"g/x\"":                                ErrNotFound,
		"Cannot use /dev/sda: device is partitioned":                                                                         drivebay.ErrRefused, // lib/cache/lvmcache.c
		"Cannot use /dev/sda: device has a signature":                                                                        drivebay.ErrRefused,
		"Cannot use /dev/sda: device is an md component":                                                                     drivebay.ErrRefused,
		"Cannot use PV /dev/sda in foreign VG g.":                                                                            drivebay.ErrRefused,
		"Cannot use /dev/sda: device is too small (pv_min_size)":                                                             ErrNoSpace,
		"Cannot use /dev/sda: device is not in devices list":                                                                 ErrNotFound,
		"Cannot use device /dev/sda with duplicates.":                                                                        ErrUnknown,
		"Cannot use /dev/sda: device cannot be used":                                                                         ErrUnknown,
		"Can't get lock for g\n  Cannot process volume group g":                                                              drivebay.ErrPending, // another command has it for longer than it waits: vg_read of lib/metadata/metadata.c
		"something new": ErrUnknown,
	} {
		err := classify("lvcreate", &host.ExitError{Argv: []string{"lvm"}, Code: 5, Stderr: "  " + text})
		if e, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, kind) || e.Code != 5 || !strings.Contains(err.Error(), text[len(text)-5:]) {
			t.Errorf("%q is %v, want %v", text, err, kind)
		}
	}
	if err := classify("lvs", context.DeadlineExceeded); !errors.Is(err, drivebay.ErrTimeout) {
		t.Error(err)
	}
}
