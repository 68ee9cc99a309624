package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/api"
)

// rack serves a simulated machine of n SATA drives in bays 0 and up.
func rack(t *testing.T, n int, args ...string) (*running, *api.Client) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rack.yaml")
	write(t, file, fmt.Sprintf("machine: rack\nenclosures:\n  - {name: front, kind: ses, bays: %d}\ndrives:\n  - {bays: 0-%d, enclosure: front, kind: sata-hdd}\n", n, n-1))
	r := serve(t, append([]string{"--sim", file}, args...)...)
	client := api.Dial(r.env["DRIVEBAY_API"])
	t.Cleanup(client.Close)
	eventually(t, patience, func() bool {
		s, err := client.Drives(t.Context())
		return err == nil && len(s.Drives) == n && !slices.ContainsFunc(s.Drives, func(d drivebay.Drive) bool { return d.Health != drivebay.HealthGood })
	}, r.err.String)
	return r, client
}

// fault breaks a drive through the command.
func (r *running) fault(t *testing.T, args ...string) {
	t.Helper()
	if _, errs, code := call(t, r.env, append([]string{"sim", "fault"}, args...)...); code != 0 {
		t.Fatalf("sim fault %v: %s", args, errs)
	}
}

// inBay returns the drives that are, or were last, in a bay.
func inBay(t *testing.T, c *api.Client, bay string) (list []drivebay.Drive) {
	t.Helper()
	s, err := c.Drives(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range s.Drives {
		if d.Slot.Bay == bay {
			list = append(list, d)
		}
	}
	return list
}

func TestPulledAndPutBack(t *testing.T) {
	r, client := rack(t, 4)
	before := inBay(t, client, "Slot 02")[0]
	for range 3 {
		for _, step := range []struct {
			fault string
			want  drivebay.Status
		}{{"vanish", drivebay.StatusOffline}, {"return", drivebay.StatusOnline}} {
			r.fault(t, "2", step.fault)
			eventually(t, patience, func() bool {
				list := inBay(t, client, "Slot 02")
				return len(list) == 1 && list[0].ID == before.ID && list[0].Status == step.want
			}, r.err.String)
		}
	}
	eventually(t, patience, func() bool { return inBay(t, client, "Slot 02")[0].Health == drivebay.HealthGood }, r.err.String)
	out, errs, code := call(t, r.env, "events", "--drive", before.ID)
	if code != 0 || strings.Count(out, "DriveVanished") != 3 || strings.Count(out, "DriveReturned") != 3 {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
	if out, _, _ := call(t, r.env, "drives"); !strings.Contains(out, "4 drives: 4 GOOD") {
		t.Errorf("in the end:\n%s", out)
	}
}

func TestDuplicateSerialIsReportedAndNothingIsMerged(t *testing.T) {
	r, client := rack(t, 4)
	r.fault(t, "3", "duplicate-serial", "of=1")
	var twins []drivebay.Drive
	eventually(t, patience, func() bool {
		twins = nil
		for _, bay := range []string{"Slot 01", "Slot 03"} {
			for _, d := range inBay(t, client, bay) {
				if d.Status == drivebay.StatusOnline && d.IdentityIssue != "" {
					twins = append(twins, d)
				}
			}
		}
		return len(twins) == 2
	}, r.err.String)
	if twins[0].Serial != twins[1].Serial || twins[0].ID == twins[1].ID || twins[0].Name == twins[1].Name {
		t.Errorf("got %+v", twins)
	}
	if out, _, _ := call(t, r.env, "drives"); strings.Count(out, twins[0].Serial) < 2 {
		t.Errorf("the list does not show both:\n%s", out)
	}
	if out, _, _ := call(t, r.env, "events"); !strings.Contains(out, string(drivebay.EventIdentity)) {
		t.Errorf("no event tells of it:\n%s", out)
	}
	if _, errs, code := call(t, r.env, "drive", "show", twins[0].Serial); code != exitFailure || !strings.Contains(errs, twins[0].ID) || !strings.Contains(errs, twins[1].ID) {
		t.Errorf("a serial that two drives have: %d %q", code, errs)
	}
}

// One hung drive of 64: the others are asked as if nothing was, metrics answer
// at once, and the daemon stops in time although the drive never answers.
func TestOneHungDriveOf64(t *testing.T) {
	r, client := rack(t, 64, "--listen", "127.0.0.1:0")
	address := regexp.MustCompile(`http://\S+/metrics`).FindString(r.out.String())
	metrics := func() error { return fetch(t.Context(), address) }
	calm := fastest(t, time.Second, 0, metrics) // on a machine that has other things to do, too
	hung := inBay(t, client, "Slot 07")[0].ID
	r.fault(t, "7", "hang")
	since := time.Now()
	if err := client.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, func() bool {
		s, err := client.Snapshot(t.Context())
		return err == nil && !slices.ContainsFunc(s.Drives, func(d drivebay.Drive) bool {
			return d.ID != hung && (d.Evidence == nil || d.Evidence.At.Before(since))
		})
	}, r.err.String)
	if d, err := client.Drive(t.Context(), hung); err != nil || d.Evidence.At.After(since) {
		t.Errorf("the hung drive answered: %v %v", d, err)
	}

	limit := max(slack*20*time.Millisecond, 2*calm)
	if took := fastest(t, patience, limit, metrics); took > limit {
		t.Errorf("/metrics takes %v, before the drive hung %v", took, calm)
	}
	eventually(t, patience, func() bool {
		d, err := client.Drive(t.Context(), hung)
		return err == nil && d.Health != drivebay.HealthGood
	}, r.err.String)
	if out, errs, code := call(t, r.env, "explain", hung); code != 0 || !strings.Contains(out, "wait") {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
	if code, took := r.end(); code != exitOK || took > 5*time.Second {
		t.Errorf("exit status %d after %v", code, took)
	}
}

func fetch(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && !strings.Contains(string(text), "drivebay_drive_info{") {
		err = fmt.Errorf("no drive in the metrics: %.200s", text)
	}
	return err
}

// fastest is how long something takes when nothing else on this machine is in
// its way: a drive that hangs would be in the way every time. It stops once f took no longer
// than the limit.
func fastest(t *testing.T, most, limit time.Duration, f func() error) time.Duration {
	t.Helper()
	best := time.Hour
	for end := time.Now().Add(most); time.Now().Before(end) && best > limit; {
		start := time.Now()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	return best
}

func TestSimCommands(t *testing.T) {
	r, client := rack(t, 4)
	out, errs, code := call(t, r.env, "sim", "drives", "-o", "json")
	var list []struct{ Bay, Name, Serial string }
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil || len(list) != 4 {
		t.Fatalf("sim drives: %d %v %q", code, err, errs)
	}
	if out, _, code := call(t, r.env, "sim", "faults"); code != 0 || !strings.Contains(out, "duplicate-serial") {
		t.Errorf("sim faults: %d %s", code, out)
	}
	r.fault(t, list[1].Name, "fail")
	if _, errs, code := call(t, r.env, "refresh"); code != 0 {
		t.Errorf("refresh: %s", errs)
	}
	eventually(t, patience, func() bool { return inBay(t, client, "Slot 01")[0].Health == drivebay.HealthBad }, r.err.String)
	if out, _, code := call(t, r.env, "explain", "sdb"); code != 0 || !strings.Contains(out, "what to do:") || !strings.Contains(out, "FAILED") {
		t.Errorf("explain: %d\n%s", code, out)
	}
	if out, _, code := call(t, r.env, "smart", "sdb"); code != 0 || !strings.Contains(out, "Reallocated_Sector_Ct") {
		t.Errorf("smart: %d\n%s", code, out)
	}
	if out, _, code := call(t, r.env, "smart", "--raw", "sdb"); code != 0 || !strings.Contains(out, "ata-identify: 512 bytes") {
		t.Errorf("smart --raw: %d\n%s", code, out)
	}
	for _, on := range []bool{true, false} {
		word := map[bool]string{true: "on", false: "off"}[on]
		if _, errs, code := call(t, r.env, "locate", "3", word); code != 0 {
			t.Errorf("locate %s: %s", word, errs)
		}
		eventually(t, patience, func() bool { return inBay(t, client, "Slot 03")[0].Slot.Lit == on }, r.err.String)
	}
	for args, want := range map[string]string{
		"sim fault 1 nonsense":        "want one of vanish",
		"sim fault 99 vanish":         "bay",
		"sim fault sda wear":          "does not wear",
		"sim fault 0 heat celsius=no": "celsius",
	} {
		if _, errs, code := call(t, r.env, strings.Fields(args)...); code != exitFailure || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %q", args, code, errs)
		}
	}
	if _, _, code := call(t, r.env, "sim", "fault", "1", "heat", "celsius"); code != exitUsage {
		t.Errorf("an argument without a value: %d", code)
	}
	real := serve(t, "--root", recording(t))
	if _, errs, code := call(t, real.env, "sim", "drives"); code != exitFailure || !strings.Contains(errs, "--sim FILE") {
		t.Errorf("sim on a real machine: %d %q", code, errs)
	}
}

// Claims on the simulated rack: the file's own claim holds, what holds data is
// refused with its reason, and the list of programs says the same.
func TestClaims(t *testing.T) {
	t.Chdir("../..")
	r := serve(t, "--sim", "examples/rack24.yaml")
	eventually(t, patience, func() bool {
		out, _, _ := call(t, r.env, "claim")
		return strings.Count(out, "configuration") >= 18 // all of them: unclaim is asked of one
	}, r.err.String)
	out, errs, code := call(t, r.env, "claim", "nvme0n1", "no-such-drive")
	if code == exitOK || out != "" || !strings.Contains(errs, "the machine runs from this drive") || !strings.Contains(errs, "no-such-drive") {
		t.Errorf("a system drive and none: exit %d, printed %q, said %q", code, out, errs)
	}
	if _, errs, code := call(t, r.env, "unclaim", "nvme2n1"); code == exitOK || !strings.Contains(errs, "configuration") {
		t.Errorf("the configuration's claim taken back: exit %d, said %q", code, errs)
	}
	if out, errs, code := call(t, r.env, "claim", "nvme2n1"); code != exitOK || !strings.Contains(out, "claimed") {
		t.Errorf("claimed by hand: exit %d, printed %q, said %q", code, out, errs)
	}
	var rows []struct {
		Name    string
		Claim   *drivebay.Claim
		Against []string
	}
	out, _, _ = call(t, r.env, "claim", "-o", "json")
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 24 {
		t.Fatalf("%d rows, %v: %s", len(rows), err, out)
	}
	for _, row := range rows {
		if (row.Claim == nil) != (len(row.Against) > 0) {
			t.Errorf("%s: claim %v, against it %q", row.Name, row.Claim, row.Against)
		}
		if row.Name == "nvme2n1" && row.Claim.By != drivebay.ClaimedByOperator {
			t.Errorf("%s is claimed by %s", row.Name, row.Claim.By)
		}
	}
}
