package metrics

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const deploy = "../../deploy/"

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// exported is the name of every family with its labels.
func exported() map[string][]string {
	out := map[string][]string{"drivebay_build_info": {"version", "commit", "goversion"}}
	for _, m := range snapshotMetrics {
		out["drivebay_"+m.name] = m.labels
	}
	for _, m := range setMetrics {
		out["drivebay_"+m.name] = m.labels
	}
	for _, m := range volumeMetrics {
		out["drivebay_volume_"+m.name] = append([]string{"volume"}, m.labels...)
	}
	for _, m := range noticeMetrics {
		out["drivebay_"+m.name] = m.labels
	}
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		out["drivebay_"+rpcName+part] = append([]string{"le"}, rpcLabels...)
	}
	for _, m := range driveMetrics() {
		out["drivebay_drive_"+m.name] = append([]string{"drive"}, m.labels...)
	}
	return out
}

var (
	metricName = regexp.MustCompile(`\b(?:drivebay|kubelet|csi_node|kube)_[a-z0-9_]+`)
	selector   = regexp.MustCompile(`((?:drivebay|kubelet|csi_node|kube)_[a-z0-9_]+)\{([^}]*)\}`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
	labelName  = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"`)
)

// known checks that an expression asks for nothing that is not served.
func known(t *testing.T, where, expr string) {
	t.Helper()
	served := exported()
	maps.Copy(served, foreign)
	for _, name := range metricName.FindAllString(quoted.ReplaceAllString(expr, `""`), -1) {
		if _, ok := served[name]; !ok {
			t.Errorf("%s: %s is not served", where, name)
		}
	}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		for _, l := range labelName.FindAllStringSubmatch(s[2], -1) {
			if l[1] != "instance" && l[1] != "job" && !slices.Contains(served[s[1]], l[1]) {
				t.Errorf("%s: %s has no label %s", where, s[1], l[1])
			}
		}
	}
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// ruleFiles have the alerts on the metrics of the daemon, and on those of the kubelet.
var ruleFiles = []string{"drivebay", "kubernetes"}

func rules(t *testing.T) (out []rule) {
	t.Helper()
	for _, name := range ruleFiles {
		var file struct {
			Groups []struct {
				Rules []rule `yaml:"rules"`
			} `yaml:"groups"`
		}
		if err := yaml.Unmarshal(read(t, deploy+"prometheus/"+name+".rules.yaml"), &file); err != nil {
			t.Fatal(err)
		}
		if len(file.Groups) == 0 {
			t.Fatalf("%s has no rules", name)
		}
		for _, g := range file.Groups {
			out = append(out, g.Rules...)
		}
	}
	return out
}

// foreign are the metrics of other programs that the alerts use, with their labels: of Prometheus, of the kubelet of
// Kubernetes 1.36.3 (pkg/kubelet/metrics/collectors/volume_stats.go) and 1.37.1 (volumehealth/metrics.go), and
// of kube-state-metrics v2 (docs/metrics/storage).
var foreign = map[string][]string{
	"up": {},
	"kubelet_volume_stats_health_status_abnormal": {"namespace", "persistentvolumeclaim"},
	"csi_node_storage_health_status":              {"driver_name", "status", "reason"},
	"kube_persistentvolumeclaim_info":             {"namespace", "persistentvolumeclaim", "volumename"},
	"kube_persistentvolume_info":                  {"persistentvolume", "csi_driver"},
}

// runbooks is the page that all alerts link. docs/alerts.md says how to replace it with a copy.
const runbooks = "https://github.com/drivebay/drivebay/blob/main/docs/alerts.md"

func TestRulesUseWhatIsServed(t *testing.T) {
	for _, r := range rules(t) {
		known(t, r.Alert, r.Expr)
		for name := range r.Annotations {
			if !slices.Contains([]string{"summary", "action", "runbook_url"}, name) {
				t.Errorf("%s: annotation %s", r.Alert, name)
			}
		}
		if r.Annotations["runbook_url"] != runbooks+"#"+strings.ToLower(r.Alert) || r.Annotations["action"] == "" {
			t.Errorf("%s: runbook %q, action %q", r.Alert, r.Annotations["runbook_url"], r.Annotations["action"])
		}
		if strings.HasPrefix(r.Alert, "Drive") && !strings.HasPrefix(r.Alert, "Drives") && !strings.HasPrefix(r.Alert, "Drivebay") {
			for _, label := range []string{"instance", "server", "bay", "serial"} {
				if !strings.Contains(r.Annotations["summary"], "$labels."+label) {
					t.Errorf("%s: the summary does not name the %s", r.Alert, label)
				}
			}
		}
	}
}

// TestAlertsPage holds docs/alerts.md and the rules together.
func TestAlertsPage(t *testing.T) {
	page := string(read(t, "../../docs/alerts.md"))
	if !strings.Contains(page, "s#"+runbooks+"#") {
		t.Error("docs/alerts.md does not say how to replace the address of the runbooks")
	}
	heads := regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(page, -1)
	described := map[string]bool{}
	for _, h := range heads {
		described[h[1]] = true
	}
	for _, r := range rules(t) {
		after := r.For
		if after == "" {
			after = "at once"
		}
		row := "| [" + r.Alert + "](#" + strings.ToLower(r.Alert) + ") | " + r.Labels["severity"] + " | " + after + " |"
		if !described[r.Alert] || !strings.Contains(page, row) {
			t.Errorf("docs/alerts.md lacks a section %s or the row %s", r.Alert, row)
		}
		delete(described, r.Alert)
	}
	for name := range described {
		t.Errorf("docs/alerts.md describes %s, which is no rule", name)
	}
}

// TestRulesAreTested: each alert has a case where it fires and one where not.
func TestRulesAreTested(t *testing.T) {
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, name := range ruleFiles {
		var file struct {
			Tests []struct {
				Cases []struct {
					Alert string `yaml:"alertname"`
					Want  []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			} `yaml:"tests"`
		}
		if err := yaml.Unmarshal(read(t, deploy+"prometheus/"+name+".rules.test.yaml"), &file); err != nil {
			t.Fatal(err)
		}
		for _, test := range file.Tests {
			for _, c := range test.Cases {
				if len(c.Want) > 0 {
					fires[c.Alert] = true
				} else {
					quiet[c.Alert] = true
				}
			}
		}
	}
	for _, r := range rules(t) {
		if !fires[r.Alert] || !quiet[r.Alert] {
			t.Errorf("%s: fires in a test: %v, stays quiet in one: %v", r.Alert, fires[r.Alert], quiet[r.Alert])
		}
	}
}

func TestPromtoolRules(t *testing.T) {
	tool := promtool(t)
	for _, name := range ruleFiles {
		for _, args := range [][]string{{"check", "rules", name + ".rules.yaml"}, {"test", "rules", name + ".rules.test.yaml"}} {
			cmd := exec.Command(tool, args...)
			cmd.Dir = filepath.FromSlash(deploy + "prometheus")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		}
	}
}

func TestDashboard(t *testing.T) {
	var board struct {
		UID    string `json:"uid"`
		Title  string `json:"title"`
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
		Templating struct {
			List []struct {
				Name       string `json:"name"`
				Definition string `json:"definition"`
			} `json:"list"`
		} `json:"templating"`
	}
	raw := read(t, deploy+"grafana/drivebay.json")
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	if board.UID == "" || board.Title == "" || len(board.Panels) < 10 {
		t.Errorf("dashboard %q %q with %d panels", board.UID, board.Title, len(board.Panels))
	}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || len(p.Targets) == 0 {
			t.Errorf("panel %q: id %d, %d queries", p.Title, p.ID, len(p.Targets))
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			known(t, "panel "+p.Title, target.Expr)
		}
	}
	variables := map[string]bool{}
	for _, v := range board.Templating.List {
		variables[v.Name] = true
		known(t, "variable "+v.Name, v.Definition)
	}
	for _, use := range regexp.MustCompile(`\$\{?([a-z]+)\}?`).FindAllStringSubmatch(string(raw), -1) {
		if !variables[use[1]] {
			t.Errorf("variable %s is used and not defined: %v", use[1], slices.Collect(maps.Keys(variables)))
		}
	}
}

// TestDashboardQueriesParse has promtool read every query as the rule of a file.
func TestDashboardQueriesParse(t *testing.T) {
	tool := promtool(t)
	var board struct {
		Panels []struct {
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(read(t, deploy+"grafana/drivebay.json"), &board); err != nil {
		t.Fatal(err)
	}
	type record struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var records []record
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			records = append(records, record{fmt.Sprint("x:y", len(records)), target.Expr})
		}
	}
	body, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "board", "rules": records}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "board.yaml")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
