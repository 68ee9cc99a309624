//go:build kube

package apisuite

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/csi/csitest"
	"github.com/drivebay/drivebay/internal/hostsim"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestKubeDriveIsGone follows docs/kubernetes.md, "A pod whose drive is gone for good": without its drive a volume is not
// staged and not made again. A pod gets an empty volume only with a new claim, and the old volume can be deleted once it is
// forgotten.
func TestKubeDriveIsGone(t *testing.T) {
	a := Up(t)
	n := newNode(t, a, "node-1", 2)
	c, _ := newController(t, a.Config())
	ready(t, c, "node-1")
	all := volumesOf(t, a)
	path := func(v drivebay.Volume) string { return kubelet + "/plugins/" + v.ID }
	stage := func(v drivebay.Volume) error {
		if err := (csitest.Simulated{Machine: n.sim, Root: kubelet}).MakeFolder(path(v)); err != nil {
			t.Fatal(err)
		}
		return n.engine.StageVolume(t.Context(), drivebay.StageRequest{Volume: v.ID, Path: path(v), Access: drivebay.AccessWriter})
	}
	old, err := create(t, c, requestFor("pvc-1", gib))
	if err == nil {
		err = stage(old)
	}
	if err != nil {
		t.Fatal(err)
	}
	drive := old.Location.Drives[0]
	d, _ := n.drives.Snapshot().Get(drive)
	made := n.calls.creations()
	pull(t, n, drive)

	// The volume is MISSING, and its pod ends but does not start again.
	n.object(t, all, "pvc-1", "is MISSING", func(o *v1alpha1.Volume) bool {
		return o.Status.OperationalStatus == "MISSING" && o.Status.Phase == v1alpha1.VolumeMade && len(o.Status.Findings) > 0
	})
	if out := a.Kubectl(t, "", "get", "volumes.drivebay.io", old.ID); !strings.Contains(out, "MISSING") {
		t.Error(out)
	}
	if err := n.engine.UnstageVolume(t.Context(), old.ID, path(old)); err != nil {
		t.Errorf("the pod does not end: %v", err)
	}
	if err := stage(old); err == nil {
		t.Error("a volume without its drive is staged")
	} else {
		t.Logf("the pod waits: %v", err)
	}

	// The provisioner repeats its request, and the node starts again: nothing is made in place of the volume.
	if v, err := c.CreateVolume(t.Context(), requestFor("pvc-1", gib)); err == nil && v.Location.Partition != old.Location.Partition {
		t.Errorf("a request for the claim makes %+v", v)
	}
	time.Sleep(2 * time.Second) // so that a wrong request reaches the engine
	if n.calls.creations() != made {
		t.Error("the engine was asked to make the volume again")
	}
	n.restart(t, a)
	n.object(t, all, "pvc-1", "is still MISSING", func(o *v1alpha1.Volume) bool { return o.Status.OperationalStatus == "MISSING" })
	time.Sleep(2 * time.Second)
	if err := stage(old); err == nil || n.calls.creations() != 0 {
		t.Errorf("after a restart, a volume without its drive is staged (%v), or made again %d times", err, n.calls.creations())
	}

	// The claim is deleted: the next claim has a volume on another drive, and the old volume waits.
	lines := guide(t, a, "A pod whose drive is gone for good", map[string]string{"NAMESPACE": "default", "PV": "pvc-1", "CLAIM": "data-web-0", "POD": "web-0", "VOLUME": old.ID, "DRIVE": drive})
	a.Kubectl(t, appOf(old), "apply", "-f", "-")
	until, forget := lines[:len(lines)-1], lines[len(lines)-1]
	for _, line := range until {
		a.shell(t, line)
	}
	for _, what := range []string{"pvc/data-web-0", "pod/web-0"} {
		if out, err := a.kubectl(t.Context(), "", "get", what, "--output", "jsonpath={.metadata.deletionTimestamp}"); err == nil && out == "" {
			t.Errorf("%s is not deleted", what)
		}
	}
	if out := a.Kubectl(t, "", "get", "pv", "pvc-1", "--output", "jsonpath={.spec.persistentVolumeReclaimPolicy} {.spec.csi.volumeHandle}"); out != "Retain "+old.ID {
		t.Error(out)
	}
	short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err = c.DeleteVolume(short, old.ID)
	if !errors.Is(err, drivebay.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deleted without its drive: %v", err)
	}
	t.Logf("the deletion waits: %v", err)
	n.object(t, all, "pvc-1", "waits for its drive", func(o *v1alpha1.Volume) bool {
		return o.Status.Phase == v1alpha1.VolumeReleasing && o.Status.Error != nil && o.Status.Error.Code == "Unavailable"
	})
	fresh, err := create(t, c, requestFor("pvc-2", gib))
	if err == nil {
		err = stage(fresh)
	}
	if err != nil || fresh.ID == old.ID || slices.Contains(fresh.Location.Drives, drive) {
		t.Fatalf("the next claim: %+v, %v", fresh, err)
	}

	// Forgotten, the old volume is deleted.
	if !strings.Contains(forget, `"forget"`) {
		t.Fatalf("the guide ends with %q", forget)
	}
	a.shell(t, forget)
	if err := persist(t, func(ctx context.Context) error { return c.DeleteVolume(ctx, old.ID) }); err != nil {
		t.Errorf("forgotten, it is not deleted: %v", err)
	}
	eventually(t, "the object is gone", func() bool {
		_, err := all.Get(t.Context(), old.ID)
		return apierrors.IsNotFound(err)
	})

	// The drive is back after all: what is on it is shown, and the new volume stays as it is.
	inject(t, n, hostsim.Fault{Drive: d.Serial, Fault: "return"})
	o := n.object(t, all, "pvc-1", "is shown again", func(o *v1alpha1.Volume) bool { return o.Status.Phase != "" })
	if o.Status.Location.Partition != old.Location.Partition || o.Spec.Release != "" {
		t.Errorf("the drive is back: %+v, %+v", o.Spec, o.Status)
	}
	t.Logf("the drive is back: %s %s %+v", o.Status.Phase, o.Status.OperationalStatus, o.Status.Findings)
	n.object(t, all, "pvc-2", "is unchanged", func(o *v1alpha1.Volume) bool {
		return o.Status.Location.Partition == fresh.Location.Partition && isPhase(v1alpha1.VolumeMade)(o)
	})
	if err := n.engine.DeleteVolume(t.Context(), old.ID); err != nil {
		t.Errorf("delete what is back: %v", err)
	}
	eventually(t, "its object is gone", func() bool {
		_, err := all.Get(t.Context(), old.ID)
		return apierrors.IsNotFound(err)
	})
}

// appOf returns the objects of a pod of a StatefulSet with a volume, as the API server of a cluster has them.
func appOf(v drivebay.Volume) string {
	return `{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default","namespace":"default"}},
{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"` + v.Name + `"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"persistentVolumeReclaimPolicy":"Delete",
 "claimRef":{"namespace":"default","name":"data-web-0"},"csi":{"driver":"drivebay.io","volumeHandle":"` + v.ID + `"}}},
{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data-web-0","namespace":"default"},"spec":{"accessModes":["ReadWriteOnce"],"volumeName":"` + v.Name + `","resources":{"requests":{"storage":"1Gi"}}}},
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"default"},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"web","image":"web"}],
 "volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data-web-0"}}]}}]}`
}

// guide returns the commands of a section of docs/kubernetes.md, with values in place of the words in capitals.
func guide(t *testing.T, a *API, title string, values map[string]string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.Root, "docs/kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## "+title+"\n")
	if !found {
		t.Fatalf("docs/kubernetes.md has no section %q", title)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for i, block := range strings.Split(section, "```") {
		commands, is := strings.CutPrefix(block, "sh\n")
		if i%2 == 0 || !is {
			continue
		}
		for line := range strings.Lines(commands) {
			lines = append(lines, regexp.MustCompile(`\b[A-Z]{2,}\b`).ReplaceAllStringFunc(strings.TrimSpace(line), func(word string) string {
				if values[word] == "" {
					t.Fatalf("%s: the test has no value for %s", strings.TrimSpace(line), word)
				}
				return values[word]
			}))
		}
	}
	return lines
}

// shell runs a command of a reader with kubectl, as the administrator.
func (a *API) shell(t *testing.T, line string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", `kubectl() { "$HYPER" kubectl "$@"; }`+"\n"+line)
	cmd.Env = append(os.Environ(), "HOME="+a.dir, "HYPER="+a.hyper, "KUBECONFIG="+a.Kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", line, err, out)
	}
}
