//go:build kube

package apisuite

import (
	"encoding/json"
	"fmt"
	"path/filepath"
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
			if o, ok := have[drive.ID]; !ok || o.Status.Health == "" || o.Status.Health != drive.Health.String() || len(o.Status.Capacity.Backings) == 0 && drive.Claim != nil {
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
}
