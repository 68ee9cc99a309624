//go:build !race

// These tests have one goroutine, and walk the recorded fleet: under the race detector they took a minute.

package assess

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
	"github.com/drivebay/drivebay/internal/smart"
)

// eachATADrive calls a function for every ATA drive of the recorded fleet.
func eachATADrive(t *testing.T, each func(health.Input)) {
	t.Helper()
	f, err := os.Open(filepath.Join(corpus(t), "fleet-x.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		in, err := decoders[smartctlDocument](lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if in.Evidence.ATA != nil {
			each(in)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestNames judges every drive of the fleet twice: with the names of its document and with those that
// the daemon gives the same attributes. The verdicts are the same.
func TestNames(t *testing.T) {
	th, differ, wears := health.Default(), 0, map[string]int{}
	eachATADrive(t, func(in health.Input) {
		its := health.Assess(in, th)
		used, _ := health.Used(in)
		smart.Rename(in.Evidence.ATA.Attributes, in.Evidence.Identity, in.Evidence.Type)
		ours := health.Assess(in, th)
		if after, _ := health.Used(in); after != used {
			wears[fmt.Sprintf("%s %s: %d %% used by the names of the document, %d %% by ours", in.Evidence.Identity.Model, in.Evidence.Identity.Firmware, used, after)]++
		}
		if drivebay.WorstOf(its) != drivebay.WorstOf(ours) {
			differ++
			t.Errorf("%s %s: by the names of the document %v %v, by ours %v %v", in.Evidence.Identity.Model, in.Evidence.Identity.Firmware,
				drivebay.WorstOf(its), texts(its), drivebay.WorstOf(ours), texts(ours))
		}
	})
	for text, n := range wears {
		t.Errorf("%d times: %s", n, text)
	}
	t.Logf("%d verdicts and %d wears differ", differ, len(wears))
}

func texts(found []drivebay.Finding) (out []string) {
	for _, f := range found {
		out = append(out, f.Code+": "+f.Text)
	}
	return out
}
