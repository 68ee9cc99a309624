//go:build kube

package apisuite

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
)

// TestKubeVolumePolicy: a daemon with the rights of the chart shows its volumes and its Lease. Another node writes nothing of
// it, and only the controller requests something of a volume.
func TestKubeVolumePolicy(t *testing.T) {
	a := Up(t)
	a.Install(t)
	a.Kubectl(t, "", "--namespace", "drivebay", "create", "serviceaccount", "drivebay-controller")
	own, foreign := a.Node(t, "rack24"), a.Node(t, "node2")
	object := func(node, name, spec string) string {
		return `{"apiVersion":"drivebay.io/v1alpha1","kind":"Volume","metadata":{"name":"` + drivebay.VolumeID(name) + `"},"spec":{"node":"` + node + `","name":"` + name + `","size":{"required":1}` + spec + `}}`
	}
	Eventually(t, 30*time.Second, "the policy is in force", func() string {
		if out, err := a.kubectl(t.Context(), object("rack24", "x", ""), "--kubeconfig", foreign, "create", "--dry-run=server", "-f", "-"); err == nil || !strings.Contains(err.Error(), "may not write a Volume") {
			return out
		}
		return ""
	})
	d := a.Daemon(t, "rack24", a.Root+"/examples/rack24.yaml", own, "--claim", "all", "--kubernetes-namespace", "drivebay")
	Eventually(t, 60*time.Second, "a volume is made on the node", func() string {
		out, err := d.cli(t, "volume", "create", "own", "--size", "1GiB")
		if err != nil {
			return out
		}
		return ""
	})
	all := volumesOf(t, a)
	id := drivebay.VolumeID("own")
	Eventually(t, 30*time.Second, "the volume is shown", func() string {
		o, err := all.Get(t.Context(), id)
		if err != nil {
			return err.Error() + d.Log()
		}
		if o.Status.Phase != v1alpha1.VolumeMade {
			return string(o.Status.Phase)
		}
		return ""
	})
	Eventually(t, 30*time.Second, "the node has a Lease", func() string {
		out, err := a.kubectl(t.Context(), "", "--namespace", "drivebay", "get", "lease", "drivebay-node-rack24", "-o", "yaml")
		if err != nil || !strings.Contains(out, `"mirrored":true`) {
			return out + d.Log()
		}
		return ""
	})

	made, err := all.Get(t.Context(), id)
	if err != nil || len(made.Status.Location.Drives) == 0 {
		t.Fatalf("%v: %+v", err, made)
	}
	drive := made.Status.Location.Drives[0] // the schema refuses another one, before the policy
	snapshot := func(node, spec string) string {
		return `{"apiVersion":"drivebay.io/v1alpha1","kind":"Snapshot","metadata":{"name":"` + drivebay.SnapshotID("s") + `"},"spec":{"node":"` + node + `","name":"s","volume":"` + id + `"` + spec + `}}`
	}
	a.Kubectl(t, snapshot("rack24", ""), "--kubeconfig", own, "create", "--dry-run=server", "-f", "-")
	status := `{"apiVersion":"drivebay.io/v1alpha1","kind":"Volume","metadata":{"name":"` + id + `"},"status":{"health":"BAD"}}`
	apply := []string{"apply", "--server-side", "--force-conflicts", "--field-manager", "drivebay-node", "-f", "-"}
	for what, c := range map[string]struct {
		kubeconfig, stdin string
		args              []string
		why               string
	}{
		"another node makes one":         {foreign, object("rack24", "x", ""), []string{"create", "-f", "-"}, "may not write a Volume"},
		"another node writes the status": {foreign, status, append(apply, "--subresource", "status"), "may not write a Volume"},
		"another node deletes":           {foreign, "", []string{"delete", "volumes.drivebay.io", id}, "may not write a Volume"},
		"another node takes the lease":   {foreign, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"drivebay-node-rack24","namespace":"drivebay"},"spec":{"holderIdentity":"node2"}}`, []string{"replace", "-f", "-"}, "may write the Lease of its node only"},
		"the node releases":              {own, "", []string{"patch", "volumes.drivebay.io", id, "--type=merge", "-p", `{"spec":{"release":"Delete"}}`}, "written by the controller only"},
		"the node requests":              {own, object("rack24", "x", `,"attempt":1`), []string{"create", "-f", "-"}, "requests nothing"},
		"a person releases":              {"", "", []string{"patch", "volumes.drivebay.io", id, "--type=merge", "-p", `{"spec":{"release":"Delete"}}`}, "written by the controller only"},
		"another node makes a snapshot":  {foreign, snapshot("rack24", ""), []string{"create", "-f", "-"}, "may not write a Snapshot"},
		"the node requests a snapshot":   {own, snapshot("rack24", `,"attempt":1`), []string{"create", "-f", "-"}, "requests nothing"},
		"a node wishes":                  {own, "", []string{"patch", "volumes.drivebay.io", id, "--type=merge", "-p", `{"spec":{"heal":"1"}}`}, "written by the controller only"},
		"a node releases from a drive":   {own, "", []string{"patch", "volumes.drivebay.io", id, "--type=merge", "-p", `{"spec":{"releaseFrom":"` + drive + `"}}`}, "written by the controller only"},
		"a node forgets":                 {own, "", []string{"patch", "volumes.drivebay.io", id, "--type=merge", "-p", `{"spec":{"forget":"` + drive + `"}}`}, "written by the controller only"},
		"a node makes one forgotten":     {own, strings.Replace(object("rack24", "x", ""), `"size"`, `"forget":"x","size"`, 1), []string{"create", "-f", "-"}, "requests nothing"},
		"a node gives a task":            {own, "", []string{"patch", "volumes.drivebay.io", id, "--type=merge", "-p", `{"spec":{"task":{"request":"1","do":"Promote","force":true,"until":"2030-01-01T00:00:00Z"}}}`}, "written by the controller only"},
		"a person gives a task":          {"", "", []string{"patch", "volumes.drivebay.io", id, "--type=merge", "-p", `{"spec":{"task":{"request":"1","do":"Promote","force":true,"until":"2030-01-01T00:00:00Z"}}}`}, "written by the controller only"},
		"a node makes one with a task":   {own, strings.Replace(object("rack24", "x", ""), `"size"`, `"task":{"request":"1","do":"Promote","until":"2030-01-01T00:00:00Z"},"size"`, 1), []string{"create", "-f", "-"}, "requests nothing"},
		"a node makes one released":      {own, strings.Replace(object("rack24", "x", ""), `"size"`, `"releaseFrom":"x","size"`, 1), []string{"create", "-f", "-"}, "requests nothing"},
		"a person wishes and requests":   {"", "", []string{"patch", "volumes.drivebay.io", id, "--type=merge", "-p", `{"spec":{"heal":"1","attempt":1}}`}, "written by the controller only"},
		"a person wishes and grows":      {"", "", []string{"patch", "volumes.drivebay.io", id, "--type=merge", "-p", `{"spec":{"heal":"1","size":{"required":5368709120}}}`}, "written by the controller only"},
		"a person makes a snapshot":      {"", snapshot("rack24", `,"attempt":1`), []string{"create", "-f", "-"}, "a Snapshot is made by its node or by the controller only"},
		"a backup is restored":           {"", object("rack24", "x", `,"attempt":1`), []string{"create", "-f", "-"}, "by its node or by the controller only"},
	} {
		if out := a.Refused(t, c.kubeconfig, c.stdin, c.args...); !strings.Contains(out, c.why) {
			t.Errorf("%s: %s", what, out)
		}
	}

	// A person may request a repair, which deletes no data.
	a.Kubectl(t, "", "patch", "volumes.drivebay.io", id, "--type=merge", "-p", `{"spec":{"heal":"1"}}`)
	Eventually(t, 30*time.Second, "the repair has an answer", func() string {
		o, err := all.Get(t.Context(), id)
		if err != nil {
			return err.Error()
		}
		if o.Status.Healing == nil || o.Status.Healing.Request != "1" {
			return string(o.Status.Phase)
		}
		return ""
	})

	// A person may delete the object, which deletes no data.
	a.Kubectl(t, "", "delete", "volumes.drivebay.io", id)
	Eventually(t, 30*time.Second, "the volume is shown again", func() string {
		if _, err := all.Get(t.Context(), id); err != nil {
			return err.Error()
		}
		return ""
	})
	if out := d.CLI(t, "volumes"); !strings.Contains(out, "own") {
		t.Errorf("the volume is gone: %s", out)
	}
}
