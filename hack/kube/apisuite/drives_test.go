//go:build kube

package apisuite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/api/v1alpha1"
)

// drives returns the Drive objects of a node by the id of the drive.
func drives(t *testing.T, a *API, node string) map[string]v1alpha1.Drive {
	t.Helper()
	var list v1alpha1.DriveList
	if err := json.Unmarshal([]byte(a.Kubectl(t, "", "get", "drives", "-l", "drivebay.io/node="+node, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]v1alpha1.Drive{}
	for _, d := range list.Items {
		out[d.Status.ID] = d
	}
	return out
}

// mirrored waits until every drive of a daemon has an object with a status.
func mirrored(t *testing.T, a *API, d *Daemon) {
	t.Helper()
	took := Eventually(t, time.Minute, "every drive has an object", func() string {
		s, have := d.Snapshot(t), drives(t, a, d.Node)
		for _, drive := range s.Drives {
			if o, ok := have[drive.ID]; !ok || o.Status.Health == "" || o.Status.Health != drive.Health.String() || len(o.Status.Capacity.Backings) == 0 && drive.Claim != nil && !drive.Cordoned {
				return fmt.Sprintf("%s: %v, %+v\n%s", drive.ID, ok, o.Status, d.Log())
			}
		}
		if len(have) != len(s.Drives) {
			return fmt.Sprintf("%d objects for %d drives", len(have), len(s.Drives))
		}
		return ""
	})
	t.Logf("%d drives are mirrored after %v", len(drives(t, a, d.Node)), took.Round(time.Millisecond))
}

// quiet waits until the daemon has written nothing for some seconds.
func quiet(t *testing.T, a *API, agent string) {
	t.Helper()
	Eventually(t, 2*time.Minute, "the daemon writes nothing", func() string {
		if w := a.Writes(t, "drives", agent, time.Now().Add(-5*time.Second)); len(w) > 0 {
			return fmt.Sprintf("%d writes, the last: %+v", len(w), w[len(w)-1])
		}
		return ""
	})
}

func TestKubeAPIDrives(t *testing.T) {
	a := Up(t)
	d := a.Daemon(t, "rack24", filepath.Join(a.Root, "examples/rack24.yaml"), a.Kubeconfig)
	mirrored(t, a, d)
	t.Log("\n" + a.Kubectl(t, "", "get", "drives"))
	t.Log("\n" + a.Kubectl(t, "", "get", "drives", "-o", "wide"))
	quiet(t, a, "drivebay/")
	t.Logf("%d writes", len(a.Writes(t, "drives", "drivebay/", time.Time{})))
	since := time.Now()
	time.Sleep(60 * time.Second)
	if w := a.Writes(t, "drives", "drivebay/", since); len(w) > 0 {
		t.Errorf("%d writes in the steady state: %+v", len(w), w)
	}
	since = time.Now()
	d.Stop(t)
	d.Start(t)
	time.Sleep(20 * time.Second)
	if w := a.Writes(t, "drives", "drivebay/", since); len(w) > 0 {
		t.Errorf("%d writes after a restart: %+v", len(w), w)
	}
}

// answerTime is the time within which a person gets the answer to a request.
const answerTime = 2 * time.Second

// answer waits until the daemon has acted on the whole spec of an object, and returns its status.
func answer(t *testing.T, a *API, name string, limit time.Duration) v1alpha1.DriveStatus {
	t.Helper()
	var o v1alpha1.Drive
	took := Eventually(t, 20*time.Second, "the daemon acts on "+name, func() string {
		o = v1alpha1.Drive{}
		if err := json.Unmarshal([]byte(a.Kubectl(t, "", "get", "drive", name, "-o", "json")), &o); err != nil {
			t.Fatal(err)
		}
		if o.Status.ObservedGeneration != o.Generation {
			return fmt.Sprintf("generation %d, observed %d: %+v", o.Generation, o.Status.ObservedGeneration, o.Status.Requests)
		}
		return ""
	})
	if took > limit {
		t.Errorf("%s: the answer took %v", name, took)
	}
	t.Logf("answered after %v", took.Round(time.Millisecond))
	return o.Status
}

// request changes the spec of an object and returns the status with the answer.
func request(t *testing.T, a *API, name, spec string) v1alpha1.DriveStatus {
	t.Helper()
	a.Kubectl(t, "", "patch", "drive", name, "--type", "merge", "-p", `{"spec":`+spec+`}`)
	return answer(t, a, name, answerTime)
}

// applied fails the test unless the spec is applied, or not, for a reason.
func applied(t *testing.T, s v1alpha1.DriveStatus, status, reason string) {
	t.Helper()
	for _, c := range s.Conditions {
		if c.Type == v1alpha1.DriveSpecApplied {
			if string(c.Status) != status || c.Reason != reason || status == "False" && c.Message == "" {
				t.Errorf("SpecApplied: want %s %s: %+v", status, reason, c)
			}
			t.Logf("%s %s %s", c.Status, c.Reason, c.Message)
			return
		}
	}
	t.Errorf("no condition SpecApplied: %+v", s.Conditions)
}

// mixedRack is a rack of which the configuration claims the NVMe drives only.
func mixedRack(t *testing.T, a *API) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.Root, "examples/rack24.yaml"))
	if err != nil || !bytes.Contains(text, []byte("\nclaim: all\n")) {
		t.Fatalf("rack24.yaml claims no drives: %v", err)
	}
	return a.write(t, "mixed.yaml", strings.Replace(string(text), "\nclaim: all\n", "\nclaim: type=nvme\n", 1))
}

// inBay returns the name of the object of the drive in a bay, and the id of the drive.
func inBay(t *testing.T, d *Daemon, bay string) (name, id string) {
	t.Helper()
	for _, drive := range d.Snapshot(t).Drives {
		if drive.Slot.Bay == bay && drive.Status.String() == "ONLINE" {
			return drive.ID + "." + d.Node, drive.ID
		}
	}
	t.Fatalf("no drive in bay %s", bay)
	return "", ""
}

func usage(t *testing.T, d *Daemon, id string) string {
	t.Helper()
	for _, drive := range d.Snapshot(t).Drives {
		if drive.ID == id {
			return drive.Usage.String()
		}
	}
	return ""
}

func TestKubeAPIRequests(t *testing.T) {
	a := Up(t)
	d := a.Daemon(t, "rack24", mixedRack(t, a), a.Kubeconfig)
	mirrored(t, a, d)

	t.Run("claim", func(t *testing.T) {
		name, _ := inBay(t, d, "Slot 08")
		s := request(t, a, name, `{"claim":true}`)
		if applied(t, s, "True", "Applied"); s.ClaimedBy != "operator" {
			t.Errorf("claimed by %q", s.ClaimedBy)
		}
		s = request(t, a, name, `{"claim":false}`)
		if applied(t, s, "True", "Applied"); s.ClaimedBy != "" {
			t.Errorf("claimed by %q", s.ClaimedBy)
		}
	})
	t.Run("refusals", func(t *testing.T) {
		foreign, _ := inBay(t, d, "Slot 21")
		applied(t, request(t, a, foreign, `{"claim":true}`), "False", "Refused")
		configured, id := inBay(t, d, "0")
		applied(t, request(t, a, configured, `{"claim":false}`), "False", "Refused")
		applied(t, request(t, a, configured, `{"claim":null,"approveRemoval":"`+id+`"}`), "False", "InvalidState")
		applied(t, request(t, a, configured, `{"approveRemoval":null}`), "True", "Applied")
		for _, drive := range d.Snapshot(t).Drives {
			if drive.System {
				applied(t, request(t, a, drive.ID+"."+d.Node, `{"locate":true,"release":true}`), "False", "NoBay")
				s := request(t, a, drive.ID+"."+d.Node, `{"locate":null}`)
				applied(t, s, "False", "Refused")
				break
			}
		}
		for field, value := range map[string]string{"approveRemoval": "naa-5000c50400d93da1", "accept": "x"} {
			if out := a.Refused(t, "", "", "patch", "drive", configured, "--type", "merge", "-p", fmt.Sprintf(`{"spec":{%q:%q}}`, field, value)); !strings.Contains(out, "must be the id of this drive") {
				t.Errorf("%s of another drive: %s", field, out)
			}
		}
	})
	t.Run("cordon and locate", func(t *testing.T) {
		name, _ := inBay(t, d, "Slot 09")
		s := request(t, a, name, `{"cordoned":true,"locate":true}`)
		if applied(t, s, "True", "Applied"); !s.Cordoned || !s.Bay.Located {
			t.Errorf("cordoned %v, located %v", s.Cordoned, s.Bay.Located)
		}
		s = request(t, a, name, `{"cordoned":false,"locate":false}`)
		if applied(t, s, "True", "Applied"); s.Cordoned || s.Bay.Located {
			t.Errorf("cordoned %v, located %v", s.Cordoned, s.Bay.Located)
		}
	})
	t.Run("replace", func(t *testing.T) {
		name, id := inBay(t, d, "Slot 10")
		request(t, a, name, `{"claim":true}`)
		s := request(t, a, name, `{"release":true}`)
		applied(t, s, "True", "Applied")
		until := func(usage string) {
			t.Helper()
			Eventually(t, time.Minute, usage, func() string {
				if s := drives(t, a, d.Node)[id].Status; s.Usage != usage {
					return fmt.Sprintf("%s %+v", s.Usage, s.Removal)
				}
				return ""
			})
		}
		until("RELEASED")
		applied(t, request(t, a, name, `{"approveRemoval":"`+id+`"}`), "True", "Applied")
		until("REMOVED")
		Eventually(t, time.Minute, "OFFLINE", func() string {
			if s := drives(t, a, d.Node)[id].Status.State; s != "OFFLINE" {
				return s
			}
			return ""
		})
		d.CLI(t, "sim", "fault", "10", "return")
		Eventually(t, 2*time.Minute, "ONLINE", func() string {
			if s := drives(t, a, d.Node)[id].Status; s.State != "ONLINE" {
				return s.State
			}
			return ""
		})
		if s := drives(t, a, d.Node)[id].Status.Usage; s != "REMOVED" {
			t.Errorf("a drive that is back is %s", s)
		}
		applied(t, request(t, a, name, `{"accept":"`+id+`"}`), "True", "Applied")
		until("IN_USE")
		// A change of another field, and a restart, repeat nothing.
		applied(t, request(t, a, name, `{"cordoned":true}`), "True", "Applied")
		d.Stop(t)
		d.Start(t)
		applied(t, request(t, a, name, `{"cordoned":false}`), "True", "Applied")
		if s := usage(t, d, id); s != "IN_USE" {
			t.Errorf("after a restart the drive is %s", s)
		}
	})
	t.Run("a command on the node counts", func(t *testing.T) {
		name, id := inBay(t, d, "Slot 08")
		request(t, a, name, `{"claim":true,"release":true}`)
		d.CLI(t, "cancel", id)
		d.CLI(t, "unclaim", id)
		d.Stop(t)
		d.Start(t)
		s := request(t, a, name, `{"cordoned":true}`)
		if applied(t, s, "True", "Applied"); s.Usage != "IN_USE" || s.ClaimedBy != "" || usage(t, d, id) != "IN_USE" {
			t.Errorf("%s, claimed by %q", s.Usage, s.ClaimedBy)
		}
	})
	t.Run("keep", func(t *testing.T) {
		name, _ := inBay(t, d, "Slot 12")
		s := request(t, a, name, `{"claim":true,"release":true}`)
		applied(t, s, "True", "Applied")
		s = request(t, a, name, `{"release":false}`)
		if applied(t, s, "True", "Applied"); s.Usage != "IN_USE" {
			t.Errorf("%s", s.Usage)
		}
	})
	t.Run("while the daemon is down", func(t *testing.T) {
		wanted, wantedID := inBay(t, d, "Slot 13")
		begun, begunID := inBay(t, d, "Slot 14")
		restored, restoredID := inBay(t, d, "Slot 15")
		d.Stop(t)
		a.Kubectl(t, "", "patch", "drive", wanted, "--type", "merge", "-p", `{"spec":{"release":true}}`)
		a.Kubectl(t, "", "patch", "drive", begun, "--type", "merge", "-p", `{"spec":{"release":true}}`)
		a.Kubectl(t, "", "patch", "drive", begun, "--type", "merge", "--subresource", "status", "-p", `{"status":{"requests":[{"field":"release","value":"true","state":"Applying"}]}}`)
		a.Kubectl(t, "", "delete", "drive", restored)
		a.Kubectl(t, fmt.Sprintf(`{"apiVersion":"drivebay.io/v1alpha1","kind":"Drive","metadata":{"name":%q,"labels":{"drivebay.io/node":"rack24"}},"spec":{"release":true,"cordoned":true}}`, restored), "create", "-f", "-")
		d.Start(t)
		applied(t, answer(t, a, wanted, answerTime), "True", "Applied")
		applied(t, answer(t, a, begun, answerTime), "False", "Interrupted")
		s := answer(t, a, restored, answerTime)
		if applied(t, s, "False", "SetBeforeFirstStatus"); !s.Cordoned {
			t.Error("a restored cordon was not applied")
		}
		for id, want := range map[string]string{wantedID: "RELEAS", begunID: "IN_USE", restoredID: "IN_USE"} {
			if s := usage(t, d, id); !strings.HasPrefix(s, want) {
				t.Errorf("%s is %s, not %s", id, s, want)
			}
		}
	})
}

func TestKubeAPIObjects(t *testing.T) {
	a := Up(t)
	d := a.Daemon(t, "rack24", mixedRack(t, a), a.Kubeconfig)
	mirrored(t, a, d)
	quiet(t, a, "drivebay/")

	t.Run("a deleted object returns and the drive stays as it is", func(t *testing.T) {
		name, id := inBay(t, d, "0")
		before := drives(t, a, d.Node)[id]
		a.Kubectl(t, "", "delete", "drive", name)
		Eventually(t, 10*time.Second, "the object returns", func() string {
			if o := drives(t, a, d.Node)[id]; o.UID == before.UID || o.Status.ClaimedBy != "configuration" {
				return fmt.Sprintf("%+v", o.Status)
			}
			return ""
		})
	})
	t.Run("a label that is removed returns", func(t *testing.T) {
		name, id := inBay(t, d, "1")
		a.Kubectl(t, "", "label", "drive", name, "drivebay.io/node-")
		Eventually(t, 10*time.Second, "the label returns", func() string {
			if _, ok := drives(t, a, d.Node)[id]; !ok {
				return "no label"
			}
			return ""
		})
	})
	t.Run("a volume takes room", func(t *testing.T) {
		since := time.Now()
		d.CLI(t, "volume", "create", "data-1", "--size", "1TB", "--class", "nvme", "--backing", "lvm")
		took := Eventually(t, 10*time.Second, "less room on one drive", func() string {
			for _, o := range drives(t, a, d.Node) {
				if g := o.Status.Capacity.Group; g != nil && g.Kind == "LVM" && o.Status.Capacity.Free == "2.8 TB" {
					return ""
				}
			}
			return "none"
		})
		time.Sleep(5 * time.Second)
		writes := a.Writes(t, "drives", "drivebay/", since)
		t.Logf("shown after %v, %d writes", took.Round(time.Millisecond), len(writes))
		if len(writes) > 2 {
			t.Errorf("%d writes for one change: %+v", len(writes), writes)
		}
	})
	t.Run("a forgotten drive has no object", func(t *testing.T) {
		name, id := inBay(t, d, "Slot 23")
		d.CLI(t, "sim", "fault", "23", "vanish")
		Eventually(t, 30*time.Second, "OFFLINE", func() string {
			if o := drives(t, a, d.Node)[id]; o.Status.State != "OFFLINE" || len(o.Status.Capacity.Backings) > 0 {
				return fmt.Sprintf("%s %+v", o.Status.State, o.Status.Capacity)
			}
			return ""
		})
		d.CLI(t, "forget", id)
		Eventually(t, 10*time.Second, "the object is gone", func() string {
			if out := a.Kubectl(t, "", "get", "drive", name, "--ignore-not-found", "-o", "name"); out != "" {
				return out
			}
			return ""
		})
	})
	t.Run("a drive that fails", func(t *testing.T) {
		name, _ := inBay(t, d, "Slot 13")
		d.CLI(t, "sim", "fault", "13", "reallocate", "n=1400")
		d.CLI(t, "refresh")
		Eventually(t, 30*time.Second, "BAD", func() string {
			if out := a.Kubectl(t, "", "wait", "drive", name, "--for=condition=Healthy=false", "--timeout=30s"); !strings.Contains(out, "condition met") {
				return out
			}
			return ""
		})
		t.Log("\n" + a.Kubectl(t, "", "get", "drive", name, "-o", "yaml"))
	})
	t.Run("a drive that comes and goes", func(t *testing.T) {
		_, id := inBay(t, d, "Slot 12")
		since := time.Now()
		for time.Since(since) < 70*time.Second {
			for _, fault := range []string{"vanish", "return"} {
				d.CLI(t, "sim", "fault", "12", fault)
				time.Sleep(1500 * time.Millisecond)
			}
		}
		writes := 0
		for _, w := range a.Writes(t, "drives", "drivebay/", since) {
			if strings.HasPrefix(w.ObjectRef.Name, id) {
				writes++
			}
		}
		changes := strings.Count(d.CLI(t, "events", "--drive", id), "DriveVanished")
		t.Logf("%d writes while the drive vanished %d times", writes, changes)
		if writes < 3 || writes > 4 || changes < 10 {
			t.Errorf("%d writes in 70 s while the drive vanished %d times: at most 2 a minute", writes, changes)
		}
		Eventually(t, 70*time.Second, "the last state is written", func() string {
			if o := drives(t, a, d.Node)[id]; o.Status.State != "ONLINE" {
				return o.Status.State
			}
			return ""
		})
	})
}

// TestKubeAPIAway: the node works while the API server is away, and the objects follow when it is back.
func TestKubeAPIAway(t *testing.T) {
	a := Up(t)
	d := a.Daemon(t, "rack24", mixedRack(t, a), a.Kubeconfig)
	mirrored(t, a, d)
	name, id := inBay(t, d, "Slot 08")
	other, _ := inBay(t, d, "Slot 09")

	for _, c := range []struct {
		name       string
		away, back func()
	}{
		{"killed", a.Stop, func() { a.Start(t) }},
		{"hangs", func() { a.Freeze(t) }, func() { a.Thaw(t) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.away()
			for _, do := range []string{"claim", "unclaim", "claim"} {
				began := time.Now()
				d.CLI(t, do, id)
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("%s took %v", do, took)
				}
			}
			d.Stop(t)
			d.Start(t) // without the API server
			time.Sleep(25 * time.Second)
			c.back()
			took := Eventually(t, 90*time.Second, "the object follows", func() string {
				if o := drives(t, a, d.Node)[id]; o.Status.ClaimedBy != "operator" {
					return fmt.Sprintf("%q\n%s", o.Status.ClaimedBy, d.Log())
				}
				return ""
			})
			t.Logf("the object follows %v after the API server is back", took.Round(time.Millisecond))
			if lines := strings.Count(d.Log(), "API server"); lines > 8 {
				t.Errorf("%d lines of log about it: %s", lines, d.Log())
			}
			a.Kubectl(t, "", "patch", "drive", other, "--type", "merge", "-p", `{"spec":{"cordoned":true}}`)
			applied(t, answer(t, a, other, 30*time.Second), "True", "Applied") // the daemon may just be waiting to try again
			applied(t, request(t, a, other, `{"cordoned":null}`), "True", "Applied")
			applied(t, request(t, a, name, `{"claim":false}`), "True", "Applied")
			applied(t, request(t, a, name, `{"claim":null}`), "True", "Applied")
		})
	}
}

// TestKubeAPIOlderCRD: a daemon that is newer than the CRD says so once, keeps trying with growing waits, and goes on when
// the CRD is updated.
func TestKubeAPIOlderCRD(t *testing.T) {
	a := Up(t)
	a.Kubectl(t, "", "patch", "crd", "drives.drivebay.io", "--type", "json", "-p", `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/refusals"}]`)
	Eventually(t, time.Minute, "the API server uses the older schema", func() string {
		_, err := a.kubectl(t.Context(), `{"apiVersion":"drivebay.io/v1alpha1","kind":"Drive","metadata":{"name":"x"},"status":{"refusals":[]}}`, "create", "--dry-run=server", "--validate=strict", "-f", "-")
		if err == nil {
			return "it knows the field"
		}
		return ""
	})
	d := a.Daemon(t, "rack24", mixedRack(t, a), a.Kubeconfig)
	Eventually(t, time.Minute, "an object is refused", func() string {
		if strings.Contains(d.Log(), "refuses the object of a drive") {
			return ""
		}
		return "none is"
	})
	time.Sleep(15 * time.Second)
	if log := d.Log(); strings.Count(log, "refuses the object of a drive") != 1 || !strings.Contains(log, "field not declared in schema") {
		t.Errorf("%s", log)
	}
	if w := a.Writes(t, "drives", "drivebay/", time.Time{}); len(w) > 24*8 {
		t.Errorf("%d requests in 15 s", len(w))
	}
	a.Kubectl(t, "", "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(a.Root, "deploy/chart/drivebay/crds"))
	mirrored(t, a, d)
}
