//go:build kube

package apisuite

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/addons"
	"github.com/drivebay/drivebay/hack/kube/cluster"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/replication/parameters"
)

// TestKubeVolumeReplication: VolumeReplications of kubernetes-csi-addons, with its manager and its sidecar, fail a volume over. The
// sidecar has the rights of the controller in the chart. Two nodes of the cluster are the two sites.
func TestKubeVolumeReplication(t *testing.T) {
	const secret = "correct-horse"
	a := Up(t)
	if err := cluster.BuildAddons(t.Context(), a.Root); err != nil {
		t.Fatal(err)
	}
	a.installWith(t, "controller: {enabled: true}\ncsiAddons: {enabled: true, secrets: {drivebay: [replication]}}\n")
	a.Kubectl(t, "", "delete", "validatingadmissionpolicybinding", "drivebay-volumes", "drivebay-leases") // the nodes of this test are no pods
	a.Kubectl(t, "", "apply", "--server-side", "-f", filepath.Join(a.Root, ".cache/kube/csi-addons/crds.yaml"))
	var sides []side
	var sims []*hostsim.Machine
	for i := range 2 {
		name := fmt.Sprint("node-", i+1)
		n := newNodeOn(simOf(t, name, 2), name)
		n.secret = func() (string, error) { return secret, nil }
		n.startEngine(t)
		v, err := n.engine.CreateVolume(t.Context(), requestFor(name, gib))
		if err != nil {
			t.Fatal(err)
		}
		n.startKube(t, a)
		own, peer := fmt.Sprintf("10.0.0.%d:7800", i+1), fmt.Sprintf("10.0.0.%d:7800", 2-i)
		sims, sides = append(sims, n.sim), append(sides, side{n, v.ID, map[string]string{parameters.Local: own, parameters.Peer: peer, parameters.Pair: "shop", parameters.Role: []string{"source", "target"}[i]}})
	}
	hostsim.Join(sims[0], sims[1])
	x, y := sides[0], sides[1]
	r, err := parameters.Parse(y.class) // kubernetes-csi-addons enables only what is to be primary
	if err != nil {
		t.Fatal(err)
	}
	r.Volume, r.Secrets = y.id, drivebay.Secrets{drivebay.SecretReplication: secret}
	if err := y.engine.EnableReplication(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	c, _ := newController(t, a.Config())
	ready(t, c, "node-1", "node-2")
	a.runAddons(t, strings.TrimPrefix(serve(t, addons.New(nil, addons.Options{Name: "drivebay.io", Version: "test", Cluster: c, Log: logger(t)})), "unix://"))

	a.Kubectl(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"replication","namespace":"drivebay"},"stringData":{%q:%q}}`, drivebay.SecretReplication, secret), "apply", "-f", "-")
	for i, s := range sides {
		a.claim(t, s)
		a.replicate(t, s, []string{"primary", "secondary"}[i])
	}
	is := func(s side, state, condition string) string {
		return strings.TrimSpace(a.Kubectl(t, "", "get", "volumereplication", s.name, "-o", `jsonpath={.status.state} {.status.conditions[?(@.type=="`+condition+`")].status}`))
	}
	wait := func(what string, s side, want, condition string) {
		t.Helper()
		took := Eventually(t, 2*time.Minute, what, func() string {
			if got := is(s, want, condition); got != want {
				return got + ": " + a.Kubectl(t, "", "get", "volumereplication", s.name, "-o", "jsonpath={.status.message}")
			}
			return ""
		})
		t.Logf("%s: after %.1f s", what, took.Seconds())
	}
	roles := func(want ...bool) {
		t.Helper()
		for i, s := range sides {
			if v, _ := s.engine.Volumes().Get(s.id); v.Replication == nil || v.Replication.Primary != want[i] {
				t.Errorf("%s: %+v, want primary %v", s.name, v.Replication, want[i])
			}
		}
	}
	wait("promoted", x, "Primary True", "Completed")
	wait("the copy is complete", y, "Secondary False", "Degraded")
	roles(true, false)
	a.replicate(t, x, "secondary")
	wait("demoted", x, "Secondary True", "Completed")
	a.replicate(t, y, "primary")
	wait("failed over", y, "Primary True", "Completed")
	wait("the other side follows", x, "Secondary False", "Degraded")
	roles(false, true)
	if out := a.Kubectl(t, "", "get", "volumes.drivebay.io", "-o", "yaml"); strings.Contains(out, secret) {
		t.Error("an object has the secret")
	}
	a.Kubectl(t, "", "delete", "volumereplication", x.name, y.name, "--timeout=60s")
	for _, s := range sides {
		if v, _ := s.engine.Volumes().Get(s.id); v.Replicates() {
			t.Errorf("%s: it is replicated still: %+v", s.name, v.Replication)
		}
	}
}

// claim makes the claim and the PersistentVolume of a volume, as if they were bound.
func (a *API) claim(t *testing.T, s side) {
	t.Helper()
	a.Kubectl(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":%[1]q},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"claimRef":{"namespace":"default","name":%[1]q},"csi":{"driver":"drivebay.io","volumeHandle":%[2]q}}},
{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":%[1]q,"namespace":"default"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},"volumeName":%[1]q,"storageClassName":""}}]}`, s.name, s.id), "apply", "-f", "-")
	a.Kubectl(t, "", "patch", "persistentvolumeclaim", s.name, "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Bound"}}`)
}

// replicate makes or changes the VolumeReplication of a volume, with a class of its own.
func (a *API) replicate(t *testing.T, s side, state string) {
	t.Helper()
	const prefix = "replication.storage.openshift.io/replication-secret-"
	all := fmt.Sprintf("%q:%q,%q:%q", prefix+"name", "replication", prefix+"namespace", "drivebay")
	for name, value := range s.class {
		all += fmt.Sprintf(",%q:%q", name, value)
	}
	a.Kubectl(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"replication.storage.openshift.io/v1alpha1","kind":"VolumeReplicationClass","metadata":{"name":%[1]q},"spec":{"provisioner":"drivebay.io","parameters":{%[2]s}}},
{"apiVersion":"replication.storage.openshift.io/v1alpha1","kind":"VolumeReplication","metadata":{"name":%[1]q,"namespace":"default"},
 "spec":{"volumeReplicationClass":%[1]q,"replicationState":%[3]q,"autoResync":false,"dataSource":{"kind":"PersistentVolumeClaim","name":%[1]q}}}]}`, s.name, all, state), "apply", "-f", "-")
}

// runAddons runs the manager of kubernetes-csi-addons, and its sidecar in a pod of the controller, which calls a socket.
func (a *API) runAddons(t *testing.T, socket string) {
	t.Helper()
	a.Kubectl(t, `{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"csi-addons-system"}},
{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"manager","namespace":"csi-addons-system"}}]}`, "apply", "-f", "-")
	uid := a.controllerPod(t)
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	a.inPod(t, controllerPod, chartNamespace, "drivebay-controller", "csi-addons-sidecar", "--csi-addons-address="+socket, "--node-id="+controllerPod, "--controller-port="+port,
		"--pod="+controllerPod, "--pod-uid="+uid, "--namespace="+chartNamespace, "--leader-election-namespace="+chartNamespace)
	a.inPod(t, "manager-0", "csi-addons-system", "manager", "csi-addons-manager", "--kubeconfig="+a.Kubeconfig, "--namespace=csi-addons-system", "--health-probe-bind-address=0")
}

// controllerPod is a pod of the controller in the namespace of the chart.
const controllerPod, chartNamespace = "drivebay-controller-0", "drivebay"

// controllerPod makes the object of a pod of the controller with those that own it: no controller of Kubernetes does.
func (a *API) controllerPod(t *testing.T) (uid string) {
	t.Helper()
	a.Kubectl(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"drivebay-controller","namespace":%[2]q,"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"drivebay-controller","uid":"1","controller":true}]},
 "spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"x","image":"x"}]}}}},
{"apiVersion":"v1","kind":"Pod","metadata":{"name":%[1]q,"namespace":%[2]q,"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"drivebay-controller","uid":"2","controller":true}]},
 "spec":{"serviceAccountName":"drivebay-controller","containers":[{"name":"x","image":"x"}]}}]}`, controllerPod, chartNamespace), "apply", "-f", "-")
	a.Kubectl(t, "", "--namespace", chartNamespace, "patch", "pod", controllerPod, "--subresource=status", "--type=merge", "-p", `{"status":{"podIP":"127.0.0.1","podIPs":[{"ip":"127.0.0.1"}]}}`)
	return a.Kubectl(t, "", "--namespace", chartNamespace, "get", "pod", controllerPod, "-o", "jsonpath={.metadata.uid}")
}

// inPod runs a program with the name of a host and the account that a pod has.
func (a *API) inPod(t *testing.T, pod, namespace, account, program string, args ...string) {
	t.Helper()
	name := "account-" + pod + "-" + program
	dir := a.file(name)
	ca, err := os.ReadFile(a.file("certs/apiserver.crt"))
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(a.Kubectl(t, "", "--namespace", namespace, "create", "token", account))
	a.write(t, name+"/ca.crt", string(ca))
	a.write(t, name+"/token", token)
	host, port, err := net.SplitHostPort(strings.TrimPrefix(a.url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	const enter = `hostname "$1" && mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io && cp -r "$2" /run/secrets/kubernetes.io/serviceaccount && export KUBERNETES_SERVICE_HOST="$3" KUBERNETES_SERVICE_PORT="$4" && shift 4 && exec "$@"`
	line := append([]string{"--mount", "--uts", "sh", "-c", enter, "sh", pod, dir, host, port, filepath.Join(a.Root, ".cache/kube/bin", program)}, args...)
	p := a.startProgram(t, "unshare", a.file(pod+"-"+program+".log"), line...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s: %s", program, p.tail())
		}
	})
}
