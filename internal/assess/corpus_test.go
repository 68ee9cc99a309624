package assess

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
)

// corpus is where the documents of real drives are, which are not ours to copy.
func corpus(t testing.TB) string {
	dir := os.Getenv("DRIVEBAY_CORPUS")
	named := dir != ""
	if !named {
		dir = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	if _, err := os.Stat(dir); err != nil {
		if named {
			t.Fatalf("DRIVEBAY_CORPUS: %v", err)
		}
		t.Skipf("no corpus of real drives at %s (set DRIVEBAY_CORPUS)", dir)
	}
	return dir
}

func collect(t testing.TB, paths ...string) []Verdict {
	t.Helper()
	var out []Verdict
	if err := Files(paths, Options{Thresholds: health.Default()}, func(v Verdict) error {
		out = append(out, v)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// limits are the shares of drives that pass their own test and that we may still
// flag; they leave room below what a user was promised (16, 3 and 2 %).
var limits = map[drivebay.Type]float64{drivebay.TypeHDD: 0.145, drivebay.TypeSSD: 0.024, drivebay.TypeNVMe: 0.016}

// slack is what half a fleet may lie above by chance.
const slack = 0.011

var fleetOnce []Verdict

// fleet judges the fleet, once for all tests.
func fleet(t *testing.T) []Verdict {
	t.Helper()
	if fleetOnce == nil {
		start := time.Now()
		fleetOnce = collect(t, filepath.Join(corpus(t), "fleet.jsonl.gz"))
		t.Logf("%d drives in %v", len(fleetOnce), time.Since(start))
	}
	return fleetOnce
}

func TestFleet(t *testing.T) {
	verdicts := slices.Clone(fleet(t))
	if len(verdicts) != 12155 {
		t.Fatalf("%d verdicts, want 12155", len(verdicts))
	}
	for i, v := range verdicts {
		if want := fmt.Sprintf("fleet.jsonl.gz:%d", i+1); filepath.Base(v.File) != want {
			t.Fatalf("verdict %d is of %s, want %s", i, v.File, want)
		}
	}
	checkFleet(t, "whole", verdicts, 0)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 5 {
		rnd.Shuffle(len(verdicts), func(a, b int) { verdicts[a], verdicts[b] = verdicts[b], verdicts[a] })
		checkFleet(t, fmt.Sprintf("half %d", i), verdicts[:len(verdicts)/2], slack)
		checkFleet(t, fmt.Sprintf("other half %d", i), verdicts[len(verdicts)/2:], slack)
	}
}

func checkFleet(t *testing.T, name string, verdicts []Verdict, slack float64) {
	t.Helper()
	var table Table
	for _, v := range verdicts {
		table.Add(v)
		if v.Own != drivebay.VerdictFailed {
			continue
		}
		if v.Health == drivebay.HealthGood || (v.Type != drivebay.TypeNVMe && v.Health != drivebay.HealthBad) {
			t.Errorf("%s: %s %s fails itself and we say %v", name, v.File, v.Model, v.Health)
		}
	}
	if slack == 0 {
		var b strings.Builder
		if err := table.Write(&b); err != nil {
			t.Fatal(err)
		}
		t.Logf("\n%s", b.String())
	}
	for kind, limit := range limits {
		flagged, total := table.Flagged(kind, drivebay.VerdictPassed)
		if share := float64(flagged) / float64(total); share > limit+slack {
			t.Errorf("%s: %v: %d of %d flagged, %.2f %%, want at most %.2f %%", name, kind, flagged, total, 100*share, 100*(limit+slack))
		}
	}
}

// TestNoEvidenceIsGood reads the documents on its own: a drive that passes, of
// which no count, no attribute and no log says anything, is GOOD.
func TestNoEvidenceIsGood(t *testing.T) {
	path := filepath.Join(corpus(t), "fleet.jsonl.gz")
	verdicts := fleet(t)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(z)
	clean := 0
	for i := range verdicts {
		var d fleetDoc
		if err := dec.Decode(&d); err != nil {
			t.Fatal(err)
		}
		if !d.Status.Passed || d.accused() {
			continue
		}
		clean++
		if verdicts[i].Health != drivebay.HealthGood {
			t.Errorf("%s %s: %v for no reason: %+v", verdicts[i].File, verdicts[i].Model, verdicts[i].Health, verdicts[i].Reasons)
		}
	}
	t.Logf("%d of %d drives pass and are accused by nothing", clean, len(verdicts))
	if clean < len(verdicts)/2 {
		t.Error("that is too few: the test has lost its way")
	}
}

type fleetDoc struct {
	Status struct{ Passed bool } `json:"smart_status"`
	Attrs  struct {
		Table []struct {
			ID   int
			When string `json:"when_failed"`
			Raw  struct{ Value uint64 }
		}
	} `json:"ata_smart_attributes"`
	NVMe *struct {
		Warning int    `json:"critical_warning"`
		Spare   int    `json:"available_spare"`
		Limit   int    `json:"available_spare_threshold"`
		Used    int    `json:"percentage_used"`
		Errors  uint64 `json:"media_errors"`
	} `json:"nvme_smart_health_information_log"`
}

func (d fleetDoc) accused() bool {
	for _, a := range d.Attrs.Table {
		if a.When != "" || (a.Raw.Value > 0 && slices.Contains([]int{5, 10, 184, 187, 188, 196, 197, 198}, a.ID)) {
			return true
		}
	}
	n := d.NVMe
	return n != nil && (n.Warning != 0 || n.Errors > 0 || n.Spare < n.Limit+10 || n.Used >= 90)
}

// TestCorpus judges every document of the other collections.
func TestCorpus(t *testing.T) {
	dir := corpus(t)
	for _, sub := range []string{"smartctl", "ata-raw"} {
		for _, v := range collect(t, filepath.Join(dir, sub)) {
			if v.Err != nil || v.Health == drivebay.HealthUnknown {
				t.Errorf("%s: %v %v %+v", v.File, v.Err, v.Health, v.Reasons)
			} else if v.Health != drivebay.HealthGood {
				t.Logf("%s: %v %+v", filepath.Base(v.File), v.Health, v.Reasons)
			}
		}
	}
}
