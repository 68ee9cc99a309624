//go:build kube

package apisuite

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/kube/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// eventsOn returns the Events of a daemon about an object.
func eventsOn(t *testing.T, a *API, kind, name string) (out []client.Event) {
	t.Helper()
	var list struct{ Items []client.Event }
	if err := json.Unmarshal([]byte(a.Kubectl(t, "", "get", "events.events.k8s.io", "--all-namespaces", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Regarding.Kind == kind && e.Regarding.Name == name {
			out = append(out, e)
		}
	}
	return out
}

// publish stages and publishes a volume for a pod, as the kubelet does.
func publish(t *testing.T, socket, id, name string, pod drivebay.Pod) {
	t.Helper()
	conn, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	n, staging := csi.NewNodeClient(conn), kubelet+"/plugins/kubernetes.io/csi/drivebay.io/"+id+"/globalmount"
	how := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}}
	if _, err := n.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging, VolumeCapability: how}); err != nil {
		t.Fatal(err)
	}
	about := map[string]string{"csi.storage.k8s.io/pod.namespace": pod.Namespace, "csi.storage.k8s.io/pod.name": pod.Name, "csi.storage.k8s.io/pod.uid": pod.UID}
	if _, err := n.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: staging, VolumeCapability: how, VolumeContext: about,
		TargetPath: kubelet + "/pods/" + pod.UID + "/volumes/kubernetes.io~csi/" + name + "/mount"}); err != nil {
		t.Fatal(err)
	}
}

// TestKubeEvents: the events of a machine are shown on the Drive, the Node, the Volume, its claim and its pod, with the rights of
// the chart; a drive that flaps makes few; neither a steady node nor a restart makes any.
func TestKubeEvents(t *testing.T) {
	a := Up(t)
	a.Install(t)
	own := a.Node(t, "rack24")
	Eventually(t, 30*time.Second, "the policy is in force", func() string {
		out, err := a.kubectl(t.Context(), eventOn("Node", "node2", "rack24"), "--kubeconfig", own, "create", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), "may not write Events about") {
			return fmt.Sprint(out, err)
		}
		return ""
	})
	socket := "unix://" + filepath.Join(t.TempDir(), "csi.sock")
	d := a.Daemon(t, "rack24", filepath.Join(a.Root, "examples/rack24.yaml"), own, "--claim", "all", "--kubernetes-namespace", "drivebay", "--csi-endpoint", socket)
	mirrored(t, a, d)
	start := time.Now().Add(-time.Hour)
	if w := a.Writes(t, "events", "drivebay/", start); len(w) > 0 {
		t.Errorf("the first start makes %d Events: %+v: %s", len(w), w[0], a.Kubectl(t, "", "get", "events", "--all-namespaces"))
	}
	cordoned := d.Snapshot(t).Drives[3].ID
	d.CLI(t, "cordon", cordoned)
	Eventually(t, 20*time.Second, "the cordon is an Event", func() string {
		if all := eventsOn(t, a, "Drive", cordoned+".rack24"); len(all) != 1 || all[0].Reason != "Cordon" || all[0].Type != "Normal" {
			return fmt.Sprintf("%+v", all)
		}
		return ""
	})
	d.Stop(t)
	d.Start(t)
	mirrored(t, a, d)
	time.Sleep(3 * time.Second)
	if w := a.Writes(t, "events", "drivebay/", start); len(w) != 1 {
		t.Errorf("the restart makes Events: %+v", w)
	}

	const name = "pvc-5b1d8e0c-0000-4000-8000-000000000001"
	id := drivebay.VolumeID(name)
	d.CLI(t, "volume", "create", name, "--size", "1GiB")
	a.Kubectl(t, `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data-web-0","namespace":"default"},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"drivebay","volumeName":"`+name+`","resources":{"requests":{"storage":"1Gi"}}}}`,
		"create", "-f", "-")
	claim := a.Kubectl(t, "", "get", "pvc", "data-web-0", "-o", "jsonpath={.metadata.uid}")
	a.Kubectl(t, `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"`+name+`"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"storageClassName":"drivebay","csi":{"driver":"drivebay.io","volumeHandle":"`+id+`"},"claimRef":{"kind":"PersistentVolumeClaim","apiVersion":"v1","namespace":"default","name":"data-web-0","uid":"`+claim+`"}}}`,
		"create", "-f", "-")
	a.Kubectl(t, "", "create", "serviceaccount", "default")
	a.Kubectl(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0"},"spec":{"nodeName":"rack24","automountServiceAccountToken":false,"containers":[{"name":"web","image":"web"}]}}`, "create", "-f", "-")
	pod := drivebay.Pod{Namespace: "default", Name: "web-0", UID: a.Kubectl(t, "", "get", "pod", "web-0", "-o", "jsonpath={.metadata.uid}")}
	publish(t, socket, id, name, pod)

	var set drivebay.VolumeSet
	if err := json.Unmarshal([]byte(d.CLI(t, "volumes", "-o", "json")), &set); err != nil {
		t.Fatal(err)
	}
	drive := set.Volumes[0].Location.Drives[0]
	device, _ := d.Snapshot(t).Get(drive)
	serial, object := device.Serial, drive+".rack24"
	pulled := time.Now()
	d.CLI(t, "sim", "fault", serial, "vanish")
	for _, want := range []struct{ kind, name, reason string }{
		{"Drive", object, "DriveVanished"}, {"Node", "rack24", "DriveVanished"},
		{"Volume", id, "VolumeAbnormal"}, {"PersistentVolumeClaim", "data-web-0", "VolumeAbnormal"}, {"Pod", "web-0", "VolumeAbnormal"},
	} {
		took := Eventually(t, time.Minute, want.reason+" on "+want.kind, func() string {
			all := eventsOn(t, a, want.kind, want.name)
			for _, e := range all {
				if e.Reason == want.reason && e.Type == "Warning" && e.Note != "" && e.Regarding.UID != "" && e.ReportingInstance == "rack24" {
					return ""
				}
			}
			return fmt.Sprintf("%+v\n%s", all, d.Log())
		})
		t.Logf("%s on %s after %v", want.reason, want.kind, took.Round(time.Millisecond))
	}
	// kubectl describe shows an Event only if it has the UID of the object.
	for _, what := range [][]string{{"drive", object}, {"node", "rack24"}, {"volumes.drivebay.io", id}, {"pvc", "data-web-0"}, {"pod", "web-0"}} {
		if out := a.Kubectl(t, "", "describe", what[0], what[1]); !strings.Contains(out, "drivebay.io/node") {
			t.Errorf("kubectl describe %s shows no Event: %s", what[0], out)
		}
	}

	for range 12 { // flapping
		d.CLI(t, "sim", "fault", serial, "return")
		Eventually(t, 20*time.Second, "the drive is back", func() string { return present(t, d, drive, true) })
		d.CLI(t, "sim", "fault", serial, "vanish")
		Eventually(t, 20*time.Second, "the drive is gone", func() string { return present(t, d, drive, false) })
	}
	d.CLI(t, "sim", "fault", serial, "return")
	Eventually(t, 5*time.Minute, "all Events are written", func() string { return silent(t, a, 65*time.Second) })
	minutes := time.Since(pulled).Minutes()
	writes := a.Writes(t, "events", "drivebay/", start)
	reasons := map[string]int{}
	for _, kind := range []struct{ kind, name string }{{"Drive", object}, {"Node", "rack24"}, {"Volume", id}, {"PersistentVolumeClaim", "data-web-0"}, {"Pod", "web-0"}} {
		for _, e := range eventsOn(t, a, kind.kind, kind.name) {
			reasons[kind.kind+" "+e.Reason]++
			if e.Series != nil {
				t.Logf("%s %s %q has happened %d times", kind.kind, e.Reason, e.Note, e.Series.Count)
			}
		}
	}
	t.Logf("%d writes in %.1f min: %v", len(writes), minutes, reasons)
	for what, n := range reasons {
		if float64(n) > 2*(minutes+1) {
			t.Errorf("%s: %d Events in %.1f min", what, n, minutes)
		}
	}
	for _, w := range writes {
		if w.ResponseStatus.Code >= 300 {
			t.Errorf("refused: %+v", w)
		}
	}

	for what, c := range map[string]struct{ event, why string }{
		"about another node":       {eventOn("Node", "node2", "rack24"), "may not write Events about the Node"},
		"about a foreign drive":    {eventOn("Drive", "naa-1.node2", "rack24"), "may not write Events about the Drive"},
		"about a secret":           {eventOn("Secret", "x", "rack24"), "may not write Events about the Secret"},
		"in the name of another":   {eventOn("Node", "rack24", "node2"), "may write Events of its node only"},
		"by the API without rules": {strings.NewReplacer("events.k8s.io/v1", "v1", "regarding", "involvedObject", "note", "message", "reportingController", "reportingComponent").Replace(eventOn("Node", "node2", "rack24")), "is forbidden"},
	} {
		if c.why == "is forbidden" { // sidecars of the pod may write them
			a.Kubectl(t, "", "delete", "--ignore-not-found", "clusterrolebinding", "drivebay-provisioner", "drivebay-health-monitor")
			Eventually(t, 10*time.Second, "the right is gone", func() string {
				if out, err := a.kubectl(t.Context(), c.event, "--kubeconfig", own, "create", "--dry-run=server", "-f", "-"); err == nil {
					return out
				}
				return ""
			})
		}
		if out := a.Refused(t, own, c.event, "create", "-f", "-"); !strings.Contains(out, c.why) {
			t.Errorf("an Event %s: %s", what, out)
		}
	}
}

// silent waits until no Event was written for some time.
func silent(t *testing.T, a *API, d time.Duration) string {
	t.Helper()
	if w := a.Writes(t, "events", "drivebay/", time.Now().Add(-d)); len(w) > 0 {
		return fmt.Sprintf("%d writes, the last: %+v", len(w), w[len(w)-1])
	}
	return ""
}

func present(t *testing.T, d *Daemon, id string, want bool) string {
	t.Helper()
	got, ok := d.Snapshot(t).Get(id)
	if ok && (got.Status == drivebay.StatusOnline) == want {
		return ""
	}
	return fmt.Sprint(ok, got.Status)
}

// eventOn returns an Event in the name of a node.
func eventOn(kind, name, node string) string {
	return fmt.Sprintf(`{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"x.1","namespace":"default"},"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"drivebay.io/node","reportingInstance":%q,`+
		`"action":"Report","reason":"X","regarding":{"kind":%q,"name":%q},"note":"x","type":"Normal"}`, node, kind, name)
}
