//go:build kube

package suite

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// startSet starts a StatefulSet with one pod, which writes 64 MiB and their checksum if its volume is empty.
func startSet(t *testing.T, name string) *set {
	t.Helper()
	kubectl(t, fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s}
spec:
  serviceName: %[1]s
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: c
        image: drivebay.example/busybox:1
        command: [sh, -c, "test -e /data/sum || { dd if=/dev/urandom of=/data/blob bs=1M count=64; sha256sum /data/blob >/data/sum; sync; }; touch /tmp/ready; while :; do sleep 1; done"]
        readinessProbe: {exec: {command: [test, -e, /tmp/ready]}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: drivebay-xfs, resources: {requests: {storage: 1Gi}}}
`, name), "apply", "-f", "-")
	s := &set{T: t, name: name, claim: "data-" + name + "-0", pod: name + "-0"}
	t.Cleanup(func() {
		for _, what := range []string{"statefulset/" + name, "pvc/" + s.claim} {
			if _, err := lab.Kubectl(context.Background(), "", "delete", "--ignore-not-found", "--timeout=60s", what); err != nil {
				t.Error(err)
			}
		}
	})
	s.ready("")
	return s
}

type set struct {
	*testing.T
	name, claim, pod string
}

// ready waits until the pod is ready that took the place of the one with an UID, and returns its UID.
func (s *set) ready(before string) (uid string) {
	s.Helper()
	took := eventually(s.T, 4*time.Minute, func() string {
		out, _ := lab.Kubectl(s.Context(), "", "get", "pod", s.pod, "-o", `jsonpath={.metadata.uid} {.status.conditions[?(@.type=="Ready")].status}`)
		id, is, _ := strings.Cut(strings.TrimSpace(out), " ")
		if uid = id; uid == before || is != "True" {
			return "pod " + s.pod + " is not ready: " + out
		}
		return ""
	})
	s.Logf("%s is ready after %.1f s", s.pod, took.Seconds())
	return uid
}

func (s *set) uid() string {
	s.Helper()
	return kubectl(s.T, "", "get", "pod", s.pod, "-o", "jsonpath={.metadata.uid}")
}

// sum is the checksum of the data, which is compared with what was written.
func (s *set) sum() string {
	s.Helper()
	return kubectl(s.T, "", "exec", s.pod, "--", "sh", "-c", "sha256sum -c /data/sum >/dev/null && cat /data/sum")
}

// volume returns the id of the volume of the claim.
func (s *set) volume() string { s.Helper(); return volumeOf(s.T, s.claim) }

// volumes returns the volumes of the node, each with its first drive. The objects follow a moment later.
func volumes(t *testing.T) map[string]string {
	t.Helper()
	var list struct {
		Volumes []struct {
			ID       string
			Location struct{ Drives []string }
		}
	}
	decode(t, &list, "volumes")
	drives := map[string]string{}
	for _, v := range list.Volumes {
		drives[v.ID] = v.Location.Drives[0]
	}
	return drives
}

// pull takes a drive away: it detaches its loop device. The function puts it back, which the end of the test does too.
func pull(t *testing.T, id string) (putBack func()) {
	t.Helper()
	for _, d := range drives(t) {
		if d.ID != id {
			continue
		}
		run := func(command string, args ...string) {
			t.Helper()
			if out, err := exec.Command(command, args...).CombinedOutput(); err != nil {
				t.Errorf("%s %q: %v: %s", command, args, err, out)
			}
		}
		run("losetup", "--detach", "/dev/"+d.Name)
		putBack = sync.OnceFunc(func() {
			run("losetup", "--partscan", "--direct-io=on", "/dev/"+d.Name, d.Serial)
			run("partx", "--update", "/dev/"+d.Name) // a kernel without CONFIG_EFI_PARTITION has to be told
		})
		t.Cleanup(putBack)
		return putBack
	}
	t.Fatalf("the node has no drive %s", id)
	return nil
}

func objectOf(drive string) string { return drive + ".node1" }

// usage waits until a drive has a usage.
func usage(t *testing.T, drive, want string) {
	t.Helper()
	eventually(t, time.Minute, func() string {
		return kubectlHas(t, want, "get", "drive", objectOf(drive), "-o", "jsonpath={.status.usage}")
	})
}

// TestKubeLeavingDrive runs the commands of docs/kubernetes.md, "A pod on a leaving drive": the volume of a StatefulSet, which
// starts its pod again at once, is moved to another drive with its data, or is let go with the drive.
func TestKubeLeavingDrive(t *testing.T) {
	commands := guide(t, "## A pod on a leaving drive")
	if len(commands) != 6 {
		t.Fatalf("the section has the commands %q", commands)
	}
	s := startSet(t, "db")
	volume, sum, uid := s.volume(), s.sum(), s.uid()
	drive := volumes(t)[volume]
	fill := func(command string) string {
		return strings.NewReplacer("VOLUME", volume, "POD", s.pod, "DRIVE", drive, "CLAIM", s.claim).Replace(command)
	}

	shell(t, "kubectl drivebay release "+objectOf(drive))
	usage(t, drive, "RELEASING")
	shell(t, fill(commands[0]))
	shell(t, fill(commands[1]))
	uid = s.ready(uid)
	if list := volumes(t); list[volume] == drive || s.sum() != sum {
		t.Errorf("the pod started with the volume on %s, and %q; it was on %s, with %q", list[volume], s.sum(), drive, sum)
	}
	usage(t, drive, "RELEASED")
	shell(t, "kubectl drivebay cancel "+objectOf(drive))
	usage(t, drive, "IN_USE")

	// The other way: the application has its data elsewhere.
	drive = volumes(t)[volume]
	shell(t, "kubectl drivebay release "+objectOf(drive))
	usage(t, drive, "RELEASING")
	for _, command := range commands[3:] {
		shell(t, fill(command))
	}
	s.ready(uid)
	fresh := s.volume()
	if fresh == volume || volumes(t)[fresh] == drive || s.sum() == sum {
		t.Errorf("the pod started with volume %s on %s, and %q", fresh, volumes(t)[fresh], s.sum())
	}
	usage(t, drive, "RELEASED")
	shell(t, "kubectl drivebay cancel "+objectOf(drive))
	usage(t, drive, "IN_USE")
}

// TestKubeDriveIsGone runs the commands of docs/kubernetes.md, "A pod whose drive is gone for good": without its drive, the pod
// does not start, and nothing is made in place of its volume. With a new claim it starts, and the old volume is given up.
func TestKubeDriveIsGone(t *testing.T) {
	commands := guide(t, "## A pod whose drive is gone for good")
	if len(commands) != 4 {
		t.Fatalf("the section has the commands %q", commands)
	}
	s := startSet(t, "web")
	volume, sum := s.volume(), s.sum()
	drive := volumes(t)[volume]

	// A drive with an open volume is not pulled from here: a loop device stays until it is closed.
	kubectl(t, "", "scale", "statefulset", s.name, "--replicas=0")
	eventually(t, time.Minute, func() string {
		return kubectlHasNot(t, "path", "get", "volumes.drivebay.io", volume, "-o", "jsonpath={.status.publications}")
	})
	putBack := pull(t, drive)
	kubectl(t, "", "scale", "statefulset", s.name, "--replicas=1")
	eventually(t, time.Minute, func() string {
		return kubectlHas(t, "MISSING", "get", "volumes.drivebay.io", volume, "-o", "jsonpath={.status.operationalStatus}")
	})
	if out := shell(t, "kubectl drivebay explain "+volume); !strings.Contains(out, "MISSING") {
		t.Error(out)
	}
	eventually(t, time.Minute, func() string {
		return kubectlHas(t, "FailedMount", "get", "events", "--field-selector", "involvedObject.name="+s.pod, "-o", "jsonpath={.items[*].reason}")
	})
	waiting := s.uid()

	for i, command := range commands {
		if i == 0 {
			continue // keeps the PersistentVolume, for those who want to
		}
		shell(t, strings.NewReplacer("NAMESPACE", "default", "CLAIM", s.claim, "POD", s.pod, "VOLUME", volume, "DRIVE", drive).Replace(command))
		if strings.Contains(command, "delete pod") {
			s.ready(waiting)
			if fresh := s.volume(); fresh == volume || volumes(t)[fresh] == drive || s.sum() == sum {
				t.Errorf("the pod started with volume %s on %s, and %q", fresh, volumes(t)[fresh], s.sum())
			}
			kubectlEquals(t, "Releasing", "get", "volumes.drivebay.io", volume, "-o", "jsonpath={.status.phase}")
		}
	}
	eventually(t, time.Minute, func() string {
		return kubectlHasNot(t, volume, "get", "volumes.drivebay.io,pv", "-o", "jsonpath={.items[*].metadata.name} {.items[*].spec.csi.volumeHandle}")
	})

	// The drive returns after all: nothing of it was wiped, and it is the operator's to delete.
	putBack()
	eventually(t, time.Minute, func() string {
		if list := volumes(t); list[volume] != drive {
			return fmt.Sprintf("the volume is not shown again: %v", list)
		}
		return ""
	})
	drivebay(t, "volume", "delete", volume, "--yes")
	if list := volumes(t); list[volume] != "" {
		t.Errorf("the volume is still there: %v", list)
	}
}
