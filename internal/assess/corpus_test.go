package assess

import (
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

// limits are the shares of drives that pass their own test and are not worn, and that may be flagged.
var limits = map[drivebay.Type]float64{drivebay.TypeHDD: 0.16, drivebay.TypeSSD: 0.03, drivebay.TypeNVMe: 0.02}

// slack is what half a fleet may lie above by chance.
const slack = 0.011

var fleetOnce []Verdict

// fleet judges the fleet, once for all tests.
func fleet(t *testing.T) []Verdict {
	t.Helper()
	if fleetOnce == nil {
		start := time.Now()
		fleetOnce = collect(t, filepath.Join(corpus(t), "fleet-x.jsonl.gz"))
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
		if want := fmt.Sprintf("fleet-x.jsonl.gz:%d", i+1); filepath.Base(v.File) != want {
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
	for _, c := range classes {
		for _, ours := range verdictsAgainst(c.name) {
			if n := table.Class(c.name, ours); n > 0 {
				t.Errorf("%s: %d drives with %q are %v", name, n, c.name, ours)
			}
		}
	}
	for kind, limit := range limits {
		flagged, total, _ := table.Flagged(kind, drivebay.VerdictPassed)
		if share := float64(flagged) / float64(total); share > limit+slack {
			t.Errorf("%s: %v: %d of %d flagged, %.2f %%, want at most %.2f %%", name, kind, flagged, total, 100*share, 100*(limit+slack))
		}
	}
}

// verdictsAgainst are the verdicts that no drive with a class of evidence may have.
func verdictsAgainst(class string) []drivebay.Health {
	if class == nothingCritical {
		return []drivebay.Health{drivebay.HealthSuspect, drivebay.HealthBad, drivebay.HealthUnknown}
	}
	return []drivebay.Health{drivebay.HealthGood}
}

// TestClasses wants every class of evidence to have drives: a class that finds none proves nothing.
func TestClasses(t *testing.T) {
	var table Table
	for _, v := range fleet(t) {
		table.Add(v)
	}
	for _, c := range classes {
		n := 0
		for _, ours := range verdicts {
			n += table.Class(c.name, ours)
		}
		if least := map[bool]int{true: 6000, false: 40}[c.name == nothingCritical]; n < least {
			t.Errorf("%d drives with %q, want %d at least", n, c.name, least)
		}
	}
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
