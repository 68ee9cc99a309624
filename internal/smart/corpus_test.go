package smart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// corpus is a folder of recorded real drives, which are not ours to keep here.
func corpus(t *testing.T, folder string) []string {
	t.Helper()
	root, told := os.LookupEnv("DRIVEBAY_CORPUS")
	if !told {
		root = "../../../shared/corpus"
	}
	files, err := filepath.Glob(filepath.Join(root, folder))
	if err == nil && len(files) > 0 {
		return files
	}
	if os.Getenv("CI") != "" && told {
		t.Fatalf("no files %s in DRIVEBAY_CORPUS %s", folder, root)
	}
	t.Skipf("no recorded drives at %s/%s: set DRIVEBAY_CORPUS to their folder", root, folder)
	return nil
}

// TestRealPages decodes 15 recorded drives; their attributes were counted by hand.
func TestRealPages(t *testing.T) {
	want := map[string]struct {
		attributes int
		medium     drivebay.Type
		counts     map[uint8]uint64
	}{
		"FUJITSU_MHY2120BH--0084000D":    {21, hdd, map[uint8]uint64{5: 0, 9: 2208, 194: 28, 196: 0, 240: 0}}, // 203 and 240 stand behind gaps
		"FUJITSU_MHY2120BH--0085000B":    {14, hdd, map[uint8]uint64{5: 0, 9: 2161}},
		"FUJITSU_MHZ2160BH_G1--0084000A": {21, hdd, map[uint8]uint64{5: 0, 9: 929}},
		"GIGABYTE_GP-GSTFS31100TNTD":     {11, ssd, map[uint8]uint64{9: 19774, 170: 430, 194: 33, 241: 15089}},
		"IBM_IC25N020ATCS04-0":           {18, hdd, map[uint8]uint64{5: 22, 3: 1, 194: 35}},
		"INTEL_SSDSA2CW120G3--4PC10302":  {19, ssd, map[uint8]uint64{9: 45, 241: 820}},
		"INTEL_SSDSA2MH080G1GC--045C882": {12, ssd, map[uint8]uint64{9: 2309, 225: 25105}},
		"MCCOE64GEMPP--2.9.09":           {16, ssd, map[uint8]uint64{9: 1, 232: 3451}},
		"Maxtor_96147H8--BAC51KJ0":       {30, hdd, map[uint8]uint64{5: 69, 9: 2016, 197: 2}},
		"Patriot_Burst_240GB":            {11, ssd, map[uint8]uint64{170: 629, 173: 115}},
		"SAMSUNG_HS122JC":                {14, hdd, map[uint8]uint64{5: 0, 9: 3533}},
		"SAMSUNG_MP0804H--UE100-14":      {21, hdd, map[uint8]uint64{9: 4645, 194: 48}},
		"ST320410A--3.39":                {15, hdd, map[uint8]uint64{5: 5, 7: 1, 199: 177}},
		"ST9100821AS--3.CME":             {24, hdd, map[uint8]uint64{9: 4377, 190: 34, 194: 34, 196: 2097}},
		"WDC_WD5000AAKS--00TMA0-12.01C0": {17, hdd, map[uint8]uint64{5: 63, 9: 14992, 197: 529}},
	}
	seen := 0
	for _, file := range corpus(t, "ata-raw/*.bin") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := ReadBlocks(b)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		base := strings.TrimSuffix(filepath.Base(file), ".bin")
		if len(ev.Problems) > 0 || ev.Verdict != drivebay.VerdictPassed || ev.Identity.Serial == "" || ev.Identity.Size < 16<<30 {
			t.Errorf("%s: %+v %v %v", base, ev.Identity, ev.Verdict, ev.Problems)
		}
		for name, w := range want {
			if !strings.HasPrefix(base, name) {
				continue
			}
			seen++
			if len(ev.ATA.Attributes) != w.attributes || ev.Type != w.medium {
				t.Errorf("%s: %d attributes on %v, want %d on %v", base, len(ev.ATA.Attributes), ev.Type, w.attributes, w.medium)
			}
			for id, n := range w.counts {
				if i := slices.IndexFunc(ev.ATA.Attributes, func(a drivebay.Attribute) bool { return a.ID == id }); i < 0 || ev.ATA.Attributes[i].Count != n {
					t.Errorf("%s: attribute %d: index %d in %+v, want %d", base, id, i, ev.ATA.Attributes, n)
				}
			}
		}
	}
	if seen != len(want) {
		t.Errorf("%d of %d recordings were there", seen, len(want))
	}
}

// judged are the attributes on which a verdict may stand.
var judged = []uint8{1, 5, 9, 10, 12, 177, 184, 187, 188, 190, 194, 196, 197, 198, 199, 202, 231, 232, 233, 241, 242}

// TestNamesAgree holds our names and counts against what smartctl made of the
// same raw values. For families in its database ours are the same; for drives
// that it does not know ours may be better, but never claim another meaning for
// what both know.
func TestNamesAgree(t *testing.T) {
	compared := 0
	for _, file := range corpus(t, "smartctl/*.json") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Model    string `json:"model_name"`
			Family   string `json:"model_family"`
			Firmware string `json:"firmware_version"`
			Rate     *int   `json:"rotation_rate"`
			Smart    struct {
				Table []struct {
					ID   uint8
					Name string
					Raw  struct {
						Value  uint64
						String string
					}
				}
			} `json:"ata_smart_attributes"`
		}
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		medium := drivebay.TypeUnknown
		if doc.Rate != nil {
			medium = map[bool]drivebay.Type{true: ssd, false: hdd}[*doc.Rate == 0]
		}
		for _, row := range doc.Smart.Table {
			a := []drivebay.Attribute{{ID: row.ID, Raw: row.Raw.Value & (1<<48 - 1)}}
			name(a, drivebay.Identity{Model: doc.Model, Firmware: doc.Firmware}, medium)
			if !slices.Contains(judged, row.ID) {
				continue
			}
			compared++
			if doc.Family != "" && a[0].Name != row.Name {
				t.Errorf("%s (%s), %d: %s, smartctl says %s", doc.Model, doc.Family, row.ID, a[0].Name, row.Name)
			}
			if (row.ID == 190 || row.ID == 194) && a[0].Text != row.Raw.String {
				t.Errorf("%s, %d: %012X is %q, smartctl says %q", doc.Model, row.ID, a[0].Raw, a[0].Text, row.Raw.String)
			}
			if n, ok := leading(row.Raw.String); ok && n != a[0].Count && !(a[0].Text == strconv.FormatUint(a[0].Count, 10)+"/"+strconv.FormatUint(row.Raw.Value&0xFFFFFFFF, 10)) && row.ID != 188 {
				t.Errorf("%s, %d: %d (%s), smartctl says %s", doc.Model, row.ID, a[0].Count, a[0].Text, row.Raw.String)
			}
		}
	}
	if compared < 300 {
		t.Errorf("only %d attributes were compared", compared)
	}
}

func leading(s string) (uint64, bool) {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(s)
	}
	n, err := strconv.ParseUint(s[:end], 10, 64)
	return n, err == nil
}
