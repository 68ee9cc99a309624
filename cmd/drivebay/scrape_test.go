package main

import (
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unscraped are the metrics of alerts that a simulated machine does not have within a minute, and why.
var unscraped = map[string]string{
	"drivebay_drive_wear_forecast_seconds": "needs days of history",
}

// TestScrape: the daemon exports every metric that the alerts and the dashboard use, once the machine has what they show:
// a drive that replaced another, a finding, a self-test, and volumes that are published, checked and degraded.
func TestScrape(t *testing.T) {
	t.Chdir("../..")
	socket := "unix://" + filepath.Join(shortDir(t), "csi.sock")
	r := serve(t, "--sim", "examples/rack24.yaml", "--csi-endpoint", socket, "--listen", "127.0.0.1:0")
	r.env["CSI_ENDPOINT"] = socket
	address := regexp.MustCompile(`metrics\s+(http://\S+)`).FindStringSubmatch(r.out.String())
	if address == nil {
		t.Fatalf("no address of metrics:\n%s", r.out.String())
	}
	const capability = `{"mount":{"fs_type":"ext4"},"access_mode":{"mode":"SINGLE_NODE_WRITER"}}`
	for _, backing := range []string{"partition", "thin"} {
		r.until(t, "csi", "CreateVolume", `{"name":"`+backing+`","capacity_range":{"required_bytes":1073741824},"volume_capabilities":[`+capability+`],"parameters":{"drivebay.io/backing":"`+backing+`"}}`)
		out, _, _ := call(t, r.env, "volumes", "-o", `jsonpath={range .volumes[?(@.name=="`+backing+`")]}{.id}{end}`)
		id := strings.TrimSpace(out)
		if id == "" {
			t.Fatalf("%s has no id: %s", backing, out)
		}
		staging := "/var/lib/kubelet/plugins/kubernetes.io/csi/drivebay.io/" + backing + "/globalmount"
		r.until(t, "csi", "NodeStageVolume", `{"volume_id":"`+id+`","staging_target_path":"`+staging+`","volume_capability":`+capability+`}`)
		r.until(t, "csi", "NodePublishVolume", `{"volume_id":"`+id+`","staging_target_path":"`+staging+`","target_path":"/var/lib/kubelet/pods/`+backing+`/volumes/kubernetes.io~csi/v/mount","volume_capability":`+capability+`}`)
	}
	r.until(t, "scrub", "partition")
	r.until(t, "release", "ZL2A0013")
	r.until(t, "approve", "ZL2A0013", "--yes")
	r.until(t, "sim", "fault", "12", "replace")
	r.until(t, "sim", "fault", "9", "selftest-fail")
	r.until(t, "selftest", "nvme3n1", "short")
	drive, _, _ := call(t, r.env, "volumes", "-o", `jsonpath={range .volumes[?(@.name=="partition")]}{.location.drives[0]}{end}`)
	serial, errs, _ := call(t, r.env, "drive", "show", strings.TrimSpace(drive), "-o", "jsonpath={.serial}")
	if serial = strings.TrimSpace(serial); serial == "" {
		t.Fatalf("the drive %q has no serial number: %s", drive, errs)
	}
	r.until(t, "sim", "fault", serial, "fail")

	used := map[string]bool{}
	for _, file := range []string{"deploy/prometheus/drivebay.rules.yaml", "deploy/prometheus/kubernetes.rules.yaml", "deploy/grafana/drivebay.json"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bdrivebay_[a-z0-9_]+`).FindAllString(string(text), -1) {
			used[name] = true
		}
	}
	if len(used) < 30 {
		t.Errorf("%d metrics are used", len(used))
	}
	missing := map[string]bool{}
	eventually(t, patience, func() bool {
		page := get(t, address[1])
		clear(missing)
		for name := range used {
			if unscraped[name] == "" && !regexp.MustCompile(`(?m)^`+name+`[ {]`).MatchString(page) {
				missing[name] = true
			}
		}
		return len(missing) == 0
	}, func() string { return "not exported: " + strings.Join(slices.Sorted(maps.Keys(missing)), ", ") })
	for name := range unscraped {
		if !used[name] {
			t.Errorf("%s is not used", name)
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", url, resp.Status, err)
	}
	return string(body)
}

// until runs a command until it succeeds.
func (r *running) until(t *testing.T, args ...string) {
	t.Helper()
	var out, errs string
	eventually(t, patience, func() bool {
		var code int
		out, errs, code = call(t, r.env, args...)
		return code == exitOK
	}, func() string { return strings.Join(args, " ") + ": " + out + errs })
}
