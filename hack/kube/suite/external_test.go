//go:build kube

package suite

import (
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The specs that run: a capability that the driver does not claim any more must not look green.
const (
	allSpecs   = 76
	quickSpecs = 45
)

// TestKubeExternalStorage runs Kubernetes' own tests of external storage drivers: claims, filesystems, block devices, expansion, fsGroup,
// several pods, topology, access modes, capacity. With -short those that Kubernetes does not call slow or of a feature.
func TestKubeExternalStorage(t *testing.T) {
	skip, least := `\[Disruptive\]|\[Serial\]|\[Feature:Windows\]`, allSpecs
	if testing.Short() {
		skip, least = skip+`|\[Slow\]|\[Feature:`, quickSpecs
	}
	report := filepath.Join(t.TempDir(), "report.xml")
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	out, err := lab.Run(ctx, fmt.Sprintf(`ginkgo --procs 4 --no-color --timeout 20m --focus 'External.Storage' --skip '%s' --output-dir %s --junit-report %s %s -- \
		-kubeconfig "$KUBECONFIG" -provider local -storage.testdriver %s -num-nodes 1 -minStartupPods 0 -disable-log-dump`,
		skip, filepath.Dir(report), filepath.Base(report), filepath.Join(root, ".cache/kube/bin/e2e.test"), filepath.Join(root, "hack/kube/suite/external.yaml")))
	log := filepath.Join(root, ".cache/kube/logs/external.log")
	if err := os.WriteFile(log, []byte(out), 0o644); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Errorf("ginkgo: %v: see %s", err, log)
	}
	passed := 0
	for _, s := range specs(t, report) {
		switch s.Status {
		case "passed":
			passed++
		case "skipped":
		default:
			t.Errorf("%s: %s", s.Status, s.Name)
		}
	}
	t.Logf("%d specs passed in %.0f s", passed, time.Since(began).Seconds())
	if passed < least {
		t.Errorf("%d specs passed, at least %d must", passed, least)
	}
}

// spec is one test in the report of ginkgo.
type spec struct {
	Name   string `xml:"name,attr"`
	Status string `xml:"status,attr"`
}

func specs(t *testing.T, report string) (all []spec) {
	t.Helper()
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var junit struct {
		Suites []struct {
			Cases []spec `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &junit); err != nil {
		t.Fatal(err)
	}
	for _, s := range junit.Suites {
		for _, c := range s.Cases {
			if strings.HasPrefix(c.Name, "[It]") {
				all = append(all, c)
			}
		}
	}
	return all
}
