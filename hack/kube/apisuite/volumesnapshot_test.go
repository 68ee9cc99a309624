//go:build kube

package apisuite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/csi"
	"github.com/drivebay/drivebay/hack/kube/cluster"
)

// TestKubeVolumeSnapshots follows docs/kubernetes.md, "Snapshots and clones", with the snapshot-controller of external-snapshotter
// and the sidecars of the chart: csi-provisioner and csi-snapshotter have its arguments and the rights of its controller. The
// nodes are simulated machines with LVM; the test is the scheduler, which chooses their nodes.
func TestKubeVolumeSnapshots(t *testing.T) {
	a := Up(t)
	if err := cluster.BuildSnapshots(t.Context(), a.Root); err != nil {
		t.Fatal(err)
	}
	a.Kubectl(t, "", "apply", "--server-side", "--kustomize", filepath.Join(a.Root, ".cache/kube/snapshots"))
	a.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
	files := a.guideFiles(t, "Snapshots and clones")
	a.installWith(t, files["values.yaml"])
	a.Kubectl(t, "", "delete", "validatingadmissionpolicybinding", "drivebay-volumes", "drivebay-leases") // the nodes of this test are no pods
	nodes := []*node{newNode(t, a, "node-1", 4), newNode(t, a, "node-2", 4)}
	for _, n := range nodes {
		a.Kubectl(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":%[1]q,"labels":{%[2]q:%[1]q}}},
{"apiVersion":"storage.k8s.io/v1","kind":"CSINode","metadata":{"name":%[1]q},"spec":{"drivers":[{"name":"drivebay.io","nodeID":%[1]q,"topologyKeys":[%[2]q]}]}}]}`, n.name, csi.TopologyKey), "apply", "-f", "-")
	}
	c, _ := newController(t, a.Config())
	ready(t, c, "node-1", "node-2")
	a.runSnapshots(t, strings.TrimPrefix(serve(t, csi.New(nil, csi.Options{Version: "test", Cluster: c})), "unix://"))

	one := nodes[0]
	a.claimOn(t, "data", "drivebay-thin", "node-1")
	a.bound(t, "data")
	a.write(t, "snapshot.yaml", files["snapshot.yaml"])
	guide := guide(t, a, "Snapshots and clones", nil)[1:] // the first one is Helm's
	for _, line := range guide {
		a.shell(t, "cd "+a.dir+"\n"+line)
	}
	for _, name := range []string{"data-restored", "data-clone"} {
		a.scheduled(t, name, "node-1")
		a.bound(t, name)
	}
	snapshot := a.Kubectl(t, "", "get", "volumesnapshotcontents", "-o", "jsonpath={.items[0].status.snapshotHandle}")
	data, restored, clone := a.handle(t, "data"), a.handle(t, "data-restored"), a.handle(t, "data-clone")
	for id, source := range map[string]drivebay.Source{restored: {Snapshot: snapshot}, clone: {Volume: data}} {
		if v, ok := one.engine.Volumes().Get(id); !ok || v.Source != source {
			t.Errorf("%s: %+v, want a copy of %+v", id, v, source)
		}
	}

	t.Run("elsewhere", func(t *testing.T) {
		a.Kubectl(t, claimText("elsewhere", "drivebay-thin", `,"dataSource":{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"data-monday"}`), "apply", "-f", "-")
		a.scheduled(t, "elsewhere", "node-2")
		Eventually(t, time.Minute, "an event says that the node cannot have a copy", func() string {
			text := a.Kubectl(t, "", "get", "events", "--field-selector", "involvedObject.name=elsewhere", "-o", "jsonpath={.items[*].message}")
			if !strings.Contains(text, "ResourceExhausted") {
				return text
			}
			return ""
		})
		Eventually(t, time.Minute, "the scheduler is asked for another node", func() string {
			return a.Kubectl(t, "", "get", "persistentvolumeclaim", "elsewhere", "-o", `jsonpath={.metadata.annotations.volume\.kubernetes\.io/selected-node}`)
		})
		a.scheduled(t, "elsewhere", "node-1")
		a.bound(t, "elsewhere")
	})
	t.Run("partition", func(t *testing.T) {
		a.claimOn(t, "plain", "drivebay", "node-2")
		a.bound(t, "plain")
		a.snapshotOf(t, "plain", `{"persistentVolumeClaimName":"plain"}`)
		Eventually(t, time.Minute, "the snapshot says which class has snapshots", func() string {
			text := a.Kubectl(t, "", "get", "volumesnapshot", "plain", "-o", "jsonpath={.status.error.message}")
			if !strings.Contains(text, "drivebay.io/backing: thin") {
				return "error: " + text
			}
			return ""
		})
	})
	t.Run("made on the node", func(t *testing.T) {
		s, err := one.engine.CreateSnapshot(t.Context(), "by-hand", data)
		if err != nil {
			t.Fatal(err)
		}
		a.Kubectl(t, fmt.Sprintf(`{"apiVersion":"snapshot.storage.k8s.io/v1","kind":"VolumeSnapshotContent","metadata":{"name":"by-hand"},"spec":{"driver":"drivebay.io","deletionPolicy":"Delete",
"source":{"snapshotHandle":%q},"volumeSnapshotRef":{"name":"by-hand","namespace":"default"}}}`, s.ID), "apply", "-f", "-")
		a.snapshotOf(t, "by-hand", `{"volumeSnapshotContentName":"by-hand"}`)
		a.Kubectl(t, "", "wait", "volumesnapshot/by-hand", "--for=jsonpath={.status.readyToUse}=true", "--timeout=60s")
		if size := a.Kubectl(t, "", "get", "volumesnapshot", "by-hand", "-o", "jsonpath={.status.restoreSize}"); size != "1Gi" {
			t.Errorf("its size is %s", size)
		}
	})
	t.Run("rights", func(t *testing.T) {
		for _, program := range []string{"csi-provisioner", "csi-snapshotter"} {
			text, err := os.ReadFile(a.file(controllerPod + "-" + program + ".log"))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, "forbidden") && !strings.Contains(line, "groupsnapshot") { // drivebay has no groups of volumes
					t.Errorf("%s: %s", program, line)
				}
			}
		}
	})
	t.Run("deleted", func(t *testing.T) {
		a.Kubectl(t, "", "delete", "persistentvolumeclaim", "data", "--timeout=60s") // a snapshot outlives its source
		Eventually(t, time.Minute, "the source is gone", func() string { return left(nodes, func(v string) bool { return v == data }) })
		a.Kubectl(t, "", "delete", "volumesnapshot", "--all", "--timeout=60s")
		Eventually(t, time.Minute, "no snapshot is left", func() string {
			if n := len(one.engine.Volumes().Snapshots); n > 0 {
				return fmt.Sprint(n)
			}
			return a.Kubectl(t, "", "get", "volumesnapshotcontents", "-o", "name")
		})
		a.Kubectl(t, "", "delete", "persistentvolumeclaim", "--all", "--timeout=60s")
		Eventually(t, time.Minute, "no volume is left", func() string { return left(nodes, func(string) bool { return true }) })
	})
}

// left returns the volumes of nodes for whose ids is holds.
func left(nodes []*node, is func(id string) bool) string {
	var out []string
	for _, n := range nodes {
		for _, v := range n.engine.Volumes().Volumes {
			if is(v.ID) {
				out = append(out, v.ID)
			}
		}
	}
	return strings.Join(out, ", ")
}

// runSnapshots runs what handles claims and snapshots in a cluster. The sidecars call a socket.
func (a *API) runSnapshots(t *testing.T, socket string) {
	t.Helper()
	const binder = "persistentvolume-binder-controller,persistentvolume-protection-controller,persistentvolumeclaim-protection-controller"
	a.start(t, "kube-controller-manager", "--kubeconfig", a.Kubeconfig, "--controllers", binder, "--leader-elect=false", "--secure-port=0")
	a.startProgram(t, filepath.Join(a.Root, ".cache/kube/bin/snapshot-controller"), a.file("snapshot-controller.log"), "--kubeconfig", a.Kubeconfig)
	a.controllerPod(t)
	t.Setenv("POD_NAME", controllerPod)
	t.Setenv("NAMESPACE", chartNamespace)
	for container, program := range map[string]string{"provisioner": "csi-provisioner", "snapshotter": "csi-snapshotter"} {
		args := a.containerArgs(t, container)
		i := slices.Index(args, "--csi-address=/csi/csi.sock")
		if i < 0 {
			t.Fatalf("%s: %q", container, args)
		}
		args[i] = "--csi-address=" + socket
		a.inPod(t, controllerPod, chartNamespace, "drivebay-controller", program, args...)
	}
}

// claimText is a claim. more is put into its spec.
func claimText(name, class, more string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":%q},"spec":{"storageClassName":%q,"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}%s}}`, name, class, more)
}

// claimOn makes a claim for a pod on a node.
func (a *API) claimOn(t *testing.T, name, class, node string) {
	t.Helper()
	a.Kubectl(t, claimText(name, class, ""), "apply", "-f", "-")
	a.scheduled(t, name, node)
}

// scheduled does what the scheduler does for a pod that uses a claim.
func (a *API) scheduled(t *testing.T, claim, node string) {
	t.Helper()
	a.Kubectl(t, "", "annotate", "persistentvolumeclaim", claim, "volume.kubernetes.io/selected-node="+node)
}

// bound waits until a claim has its volume.
func (a *API) bound(t *testing.T, claim string) {
	t.Helper()
	took := Eventually(t, time.Minute, "claim "+claim+" is bound", func() string {
		if phase := a.Kubectl(t, "", "get", "persistentvolumeclaim", claim, "-o", "jsonpath={.status.phase}"); phase != "Bound" {
			return phase + ": " + a.Kubectl(t, "", "get", "events", "--field-selector", "involvedObject.name="+claim, "-o", "jsonpath={.items[*].message}")
		}
		return ""
	})
	t.Logf("claim %s was bound after %.1f s", claim, took.Seconds())
}

// handle returns the id of the volume of a claim.
func (a *API) handle(t *testing.T, claim string) string {
	t.Helper()
	name := a.Kubectl(t, "", "get", "persistentvolumeclaim", claim, "-o", "jsonpath={.spec.volumeName}")
	return a.Kubectl(t, "", "get", "persistentvolume", name, "-o", "jsonpath={.spec.csi.volumeHandle}")
}

// snapshotOf makes a VolumeSnapshot.
func (a *API) snapshotOf(t *testing.T, name, source string) {
	t.Helper()
	a.Kubectl(t, fmt.Sprintf(`{"apiVersion":"snapshot.storage.k8s.io/v1","kind":"VolumeSnapshot","metadata":{"name":%q},"spec":{"volumeSnapshotClassName":"drivebay","source":%s}}`, name, source), "apply", "-f", "-")
}

// guideFiles returns the files of a section of docs/kubernetes.md: the blocks of YAML whose first line is a name.
func (a *API) guideFiles(t *testing.T, title string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.Root, "docs/kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## "+title+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	files := map[string]string{}
	for _, block := range strings.Split(section, "```yaml\n# ")[1:] {
		name, content, _ := strings.Cut(block, "\n")
		files[name], _, _ = strings.Cut(content, "```")
	}
	return files
}
