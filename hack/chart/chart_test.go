package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the rendered charts of testdata")

// sets are the values that the chart is rendered with; each has a file in testdata.
var sets = map[string]string{
	"default": "",
	"single":  "singleNode: true\nstorageClasses: {drivebay: {default: true}, drivebay-mirror: null, big: {backing: drive, class: hdd, wipe: zero, fsType: xfs, reclaimPolicy: Retain}}\n",
	"images": "images:\n  drivebay: {repository: registry.example/drivebay, tag: v1.0.0}\n  provisioner: {repository: registry.example/csi-provisioner, digest: 'sha256:" +
		strings.Repeat("0a", 32) + "'}\nimagePullSecrets: [{name: registry}]\nkubeletDir: /var/lib/k0s/kubelet\n",
	"addons": "csiAddons: {enabled: true, secrets: {shop: [passphrase]}}\npriorityClassName: drivebay\npriorityClass: {create: true}\n" +
		"snapshotClasses: {drivebay: {deletionPolicy: Delete, default: true}, drivebay-keep: {deletionPolicy: Retain}}\nkubeletDir: /var/lib/k0s/kubelet\n",
	"metrics": "metrics: {enabled: true, tlsSecret: drivebay-tls, tokenSecret: drivebay-token, podMonitor: {enabled: true, labels: {release: prometheus}}, " +
		"rules: {enabled: true, labels: {release: prometheus}, runbook: 'https://runbooks.example/alerts.html'}, dashboard: {enabled: true}}\n",
	"small": "metrics: {enabled: true, port: 10800, insecure: true, podMonitor: {enabled: true}}\nhealthMonitor: {enabled: false}\nobjects: {enabled: false}\nconfig: {claim: 'type=nvme,size>=1TB', healing: {policy: safe}, poll: {evidence: 5m}}\nnodeSelector: {drives: \"yes\"}\n",
	"controller": "controller: {enabled: true, replicas: 2, page: true}\ncsiAddons: {enabled: true, secrets: {shop: [replication]}}\nsnapshotClasses: {drivebay: {deletionPolicy: Delete}}\n" +
		"storageClasses: {drivebay-encrypted: {backing: lvm, class: any, wipe: discard, fsType: ext4, reclaimPolicy: Delete, secret: {name: '${pvc.name}', namespace: '${pvc.namespace}'}}}\n",
}

func renderSet(t *testing.T, values string) rendered {
	t.Helper()
	r, err := render(values)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLint: Helm has nothing to say about the chart but that it has no icon.
func TestLint(t *testing.T) {
	for name, values := range sets {
		var given map[string]any
		if err := yaml.Unmarshal([]byte(values), &given); err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.All(chartDir, given, namespace, true).Messages {
			if m.Severity > support.InfoSev || !strings.Contains(m.Err.Error(), "icon is recommended") {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

// copies are the files that the chart ships: Helm reads none outside of its directory.
var copies = map[string]string{
	"drivebay.rules.yaml":   "deploy/prometheus/drivebay.rules.yaml",
	"kubernetes.rules.yaml": "deploy/prometheus/kubernetes.rules.yaml",
	"drivebay.json":         "deploy/grafana/drivebay.json",
}

// TestGolden compares what the chart renders with testdata, its copies with their sources, and the manifests with
// deploy/manifests.
func TestGolden(t *testing.T) {
	for name, source := range copies {
		golden(t, chartDir+"/files/"+name, string(read(t, root+source)))
	}
	plain, err := manifest()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, root+"deploy/manifests/drivebay.yaml", plain)
	golden(t, root+"deploy/manifests/kustomization.yaml", kustomization(manifests(t)))
	for name, values := range sets {
		r := renderSet(t, values)
		golden(t, filepath.Join("testdata", name+".yaml"), withoutCopies(t, r.objects))
		golden(t, filepath.Join("testdata", name+".notes.txt"), r.notes)
	}
}

// golden compares a file with the text that it must have, or writes it.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(read(t, file)) != text {
		t.Errorf("%s is not what the chart renders: run `make generate`", file)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// manifests returns the names of the manifests in deploy/manifests.
func manifests(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(root + "deploy/manifests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := filepath.Base(file); name != "kustomization.yaml" {
			names = append(names, name)
		}
	}
	return names
}

// withoutCopies puts the name of a file in place of its text, which is not reviewed twice.
func withoutCopies(t *testing.T, objects string) string {
	for name, source := range copies {
		text := strings.ReplaceAll(strings.TrimSuffix(string(read(t, chartDir+"/files/"+name)), "\n"), runbooks, testRunbooks)
		for _, indent := range []string{"  ", "    "} {
			objects = strings.Replace(objects, indent+strings.ReplaceAll(text, "\n", "\n"+indent)+"\n", indent+"# "+source+"\n", 1)
		}
	}
	return objects
}

const (
	runbooks     = "https://github.com/drivebay/drivebay/blob/main/docs/alerts.md"
	testRunbooks = "https://runbooks.example/alerts.html"
)

// TestSchemaRefuses: values that are misspelled or of another type do not render.
func TestSchemaRefuses(t *testing.T) {
	for _, row := range [][2]string{
		{"singelNode: true", "singelNode"},
		{"singleNode: 'yes'", "singleNode"},
		{"images: {drivebay: {repository: ''}}", "repository"},
		{"images: {drivebay: {digest: 'sha256:12'}}", "digest"},
		{"images: {attacher: {repository: x}}", "attacher"},
		{"imagePullPolicy: Sometimes", "imagePullPolicy"},
		{"objects: {enabled: 1}", "enabled"},
		{"config: {kubernetes: {enabled: true}}", "kubernetes"},
		{"config: {csiEndpoint: unix:///x}", "csiEndpoint"},
		{"config: {stateDir: /x}", "stateDir"},
		{"config: {loop: 1}", "loop"},
		{"healthMonitor: {interval: 5}", "interval"},
		{"capacityPollInterval: soon", "capacityPollInterval"},
		{"storageClasses: {a: {backing: raid5, class: any, wipe: zero, fsType: ext4, reclaimPolicy: Delete}}", "backing"},
		{"storageClasses: {a: {backing: lvm}}", "fsType"},
		{"storageClasses: {drivebay: {allowVolumeExpansion: true}}", "allowVolumeExpansion"},
		{"storageClasses: {drivebay: {secret: {name: key}}}", "namespace"},
		{"storageClasses: {drivebay: {secret: {name: key, namespace: storage}}}", "needs controller.enabled"},
		{"kubeletDir: var/lib/kubelet", "kubeletDir"},
		{"resources: {sidecars: {}}", "sidecars"},
		{"tolerations: {}", "tolerations"},
		{"csiAddons: {port: 70000}", "port"},
		{"csiAddons: {port: 9808}", "port"},
		{"csiAddons: {enabled: true, port: 10748}\nmetrics: {enabled: true, insecure: true}", "same port"},
		{"csiAddons: {volumeCondition: true}", "volumeCondition"},
		{"csiAddons: {secrets: {shop: []}}", "secrets"},
		{"csiAddons: {secrets: {shop: ['*']}}", "secrets"},
		{"csiAddons: {secrets: [shop]}", "secrets"},
		{"metrics: {enabled: true}", "tlsSecret"},
		{"metrics: {enabled: true, tlsSecret: a}", "tokenSecret"},
		{"metrics: {enabled: true, insecure: 'true'}", "insecure"},
		{"metrics: {podMonitor: {enabled: true}}", "enabled"},
		{"metrics: {enabled: true, insecure: true, podMonitor: {interval: 30}}", "interval"},
		{"metrics: {port: 0}", "port"},
		{"metrics: {rules: {runbook: 'https://x/#a'}}", "runbook"},
		{"metrics: {dashboard: {labels: {grafana_dashboard: 1}}}", "grafana_dashboard"},
		{"snapshotClasses: {a: {}}", "deletionPolicy"},
		{"snapshotClasses: {a: {deletionPolicy: Keep}}", "deletionPolicy"},
		{"snapshotClasses: {A_b: {deletionPolicy: Delete}}", "A_b"},
		{"priorityClass: {create: true}", "priorityClassName"},
		{"priorityClass: {value: 2000000000}", "value"},
		{"images: {csiAddons: {digest: 'sha512:00'}}", "digest"},
		{"images: {drivebay: {repository: 'x y'}}", "repository"},
		{"images: {drivebay: {tag: 'b: c'}}", "tag"},
		{"images: {drivebay: {tag: ' #x'}}", "tag"},
		{"priorityClassName: 'a b: c'", "priorityClassName"},
		{"replication: {enabled: true, secret: 'a: b'}", "secret"},
		{"replication: {enabled: true, secret: 'x, y'}", "secret"},
		{"metrics: {podMonitor: {labels: {'a b': c}}}", "a b"},
		{"metrics: {rules: {labels: {a: 'c: d'}}}", "labels"},
		{"resources: {controller: {limit: {}}}", "limit"},
	} {
		if _, err := render(row[0]); err == nil || !strings.Contains(err.Error(), row[1]) {
			t.Errorf("%s: %v", row[0], err)
		}
	}
}

// TestNamesLikeOtherTypes: a name that YAML takes for a number, a truth value or nothing stays a name.
func TestNamesLikeOtherTypes(t *testing.T) {
	for _, name := range []string{"1", "1e3", "true", "null", "10.0"} {
		for _, values := range []string{
			"metrics: {enabled: true, tlsSecret: %[1]q, tokenSecret: %[1]q, serverName: %[1]q, podMonitor: {enabled: true}}",
			"replication: {enabled: true, secret: %[1]q}",
			"storageClasses: {%[1]q: {backing: lvm, class: any, wipe: none, fsType: ext4, reclaimPolicy: Delete}}",
			"controller: {enabled: true}\nsnapshotClasses: {%[1]q: {deletionPolicy: Delete}}",
			"priorityClassName: %[1]q\npriorityClass: {create: true}",
			"imagePullSecrets: [{name: %[1]q}]",
		} {
			values = fmt.Sprintf(values, name)
			r, err := render(values)
			if err != nil {
				t.Errorf("%s: %v", values, err)
				continue
			}
			if decode(t, r.objects); !strings.Contains(r.objects, strconv.Quote(name)) {
				t.Errorf("%s: the name is not rendered as a text", values)
			}
		}
	}
}

// kinds are the types that the objects are decoded into: an unknown field is an error.
var kinds = map[string]func() any{
	"monitoring.coreos.com/v1 PodMonitor":            func() any { return &monitoringv1.PodMonitor{} },
	"monitoring.coreos.com/v1 PrometheusRule":        func() any { return &monitoringv1.PrometheusRule{} },
	"networking.k8s.io/v1 NetworkPolicy":             func() any { return &networkingv1.NetworkPolicy{} },
	"scheduling.k8s.io/v1 PriorityClass":             func() any { return &schedulingv1.PriorityClass{} },
	"snapshot.storage.k8s.io/v1 VolumeSnapshot":      func() any { return &snapshotv1.VolumeSnapshot{} },
	"snapshot.storage.k8s.io/v1 VolumeSnapshotClass": func() any { return &snapshotv1.VolumeSnapshotClass{} },
	"v1 Namespace":                                    func() any { return &corev1.Namespace{} },
	"v1 ServiceAccount":                               func() any { return &corev1.ServiceAccount{} },
	"v1 ConfigMap":                                    func() any { return &corev1.ConfigMap{} },
	"v1 PersistentVolumeClaim":                        func() any { return &corev1.PersistentVolumeClaim{} },
	"apps/v1 DaemonSet":                               func() any { return &appsv1.DaemonSet{} },
	"storage.k8s.io/v1 CSIDriver":                     func() any { return &storagev1.CSIDriver{} },
	"storage.k8s.io/v1 StorageClass":                  func() any { return &storagev1.StorageClass{} },
	"apps/v1 Deployment":                              func() any { return &appsv1.Deployment{} },
	"policy/v1 PodDisruptionBudget":                   func() any { return &policyv1.PodDisruptionBudget{} },
	"rbac.authorization.k8s.io/v1 Role":               func() any { return &rbacv1.Role{} },
	"rbac.authorization.k8s.io/v1 RoleBinding":        func() any { return &rbacv1.RoleBinding{} },
	"rbac.authorization.k8s.io/v1 ClusterRole":        func() any { return &rbacv1.ClusterRole{} },
	"rbac.authorization.k8s.io/v1 ClusterRoleBinding": func() any { return &rbacv1.ClusterRoleBinding{} },

	"apiextensions.k8s.io/v1 CustomResourceDefinition":                 func() any { return &apiextensionsv1.CustomResourceDefinition{} },
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":        func() any { return &admissionv1.ValidatingAdmissionPolicy{} },
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": func() any { return &admissionv1.ValidatingAdmissionPolicyBinding{} },
}

var separator = regexp.MustCompile(`(?m)^---\n`)

// decode decodes a stream of objects strictly, and refuses two of one kind and name.
func decode(t *testing.T, stream string) (objects []any) {
	t.Helper()
	names := map[string]bool{}
	for _, text := range separator.Split(stream, -1) {
		var head struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if head.Kind == "" && len(objects) == 0 {
			continue // the comment above the first object
		}
		id := head.APIVersion + " " + head.Kind
		if kinds[id] == nil {
			t.Fatalf("there is no type for %q in\n%s", id, text)
		}
		object := kinds[id]()
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			t.Errorf("%s %s: %v", id, head.Metadata.Name, err)
		}
		if name := id + " " + head.Metadata.Namespace + "/" + head.Metadata.Name; names[name] || head.Metadata.Name == "" {
			t.Errorf("%s is there twice, or has no name", name)
		} else {
			names[name] = true
		}
		objects = append(objects, object)
	}
	return objects
}

// find returns the objects of one type.
func find[T any](objects []any) (out []*T) {
	for _, o := range objects {
		if x, ok := o.(*T); ok {
			out = append(out, x)
		}
	}
	return out
}

// eachSet decodes the chart with each set of values, and the manifest.
func eachSet(t *testing.T, check func(t *testing.T, name string, objects []any)) {
	for name, values := range sets {
		t.Run(name, func(t *testing.T) { check(t, name, decode(t, renderSet(t, values).objects)) })
	}
	plain, err := manifest()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("manifest", func(t *testing.T) { check(t, "manifest", decode(t, plain)) })
}

// TestRights: no role has a wildcard, Secrets are read by name only, each role is bound, what is bound is there, and no policy
// refuses the Lease that a role permits.
func TestRights(t *testing.T) {
	eachSet(t, func(t *testing.T, name string, objects []any) {
		rules, bound := map[string][]rbacv1.PolicyRule{}, map[string]bool{}
		for _, r := range find[rbacv1.ClusterRole](objects) {
			rules["ClusterRole "+r.Name] = r.Rules
		}
		for _, r := range find[rbacv1.Role](objects) {
			rules["Role "+r.Namespace+"/"+r.Name] = r.Rules
		}
		subjects := []rbacv1.Subject{}
		for _, b := range find[rbacv1.ClusterRoleBinding](objects) {
			bound[b.RoleRef.Kind+" "+b.RoleRef.Name] = true
			subjects = append(subjects, b.Subjects...)
		}
		for _, b := range find[rbacv1.RoleBinding](objects) {
			bound[b.RoleRef.Kind+" "+b.Namespace+"/"+b.RoleRef.Name] = true
			subjects = append(subjects, b.Subjects...)
		}
		if len(rules) < 2 || len(rules) != len(bound) {
			t.Errorf("%d roles, %d bound", len(rules), len(bound))
		}
		for role, list := range rules {
			if !bound[role] {
				t.Errorf("%s is not bound", role)
			}
			for _, r := range list {
				all := slices.Concat(r.APIGroups, r.Resources, r.Verbs)
				named := strings.HasPrefix(role, "Role ") && len(r.ResourceNames) > 0 && slices.Equal(r.Verbs, []string{"get"})
				if slices.Contains(all, "*") || slices.Contains(all, "secrets") && !named || len(r.NonResourceURLs) > 0 {
					t.Errorf("%s: %v", role, r)
				}
				for _, lease := range r.ResourceNames {
					if slices.Contains(r.Resources, "leases") && !strings.Contains(leasePolicy(objects), strconv.Quote(lease)) {
						t.Errorf("%s permits the Lease %s, and the policy of Leases refuses it", role, lease)
					}
				}
			}
		}
		accounts := map[string]bool{find[appsv1.DaemonSet](objects)[0].Spec.Template.Spec.ServiceAccountName: true}
		for _, d := range find[appsv1.Deployment](objects) {
			accounts[d.Spec.Template.Spec.ServiceAccountName] = true
		}
		for _, a := range find[corev1.ServiceAccount](objects) {
			if !accounts[a.Name] {
				t.Errorf("no pod has the account %s", a.Name)
			}
		}
		for _, s := range subjects {
			if s.Kind != "ServiceAccount" || !accounts[s.Name] || s.Namespace != find[corev1.ServiceAccount](objects)[0].Namespace {
				t.Errorf("%v is not the account of a pod", s)
			}
		}
	})
}

// leasePolicy is the condition under which the account of the DaemonSet may write a Lease.
func leasePolicy(objects []any) string {
	for _, p := range find[admissionv1.ValidatingAdmissionPolicy](objects) {
		if p.Name == "drivebay-leases" {
			return p.Spec.Validations[0].Expression
		}
	}
	return ""
}

// TestPod: each mount has its volume, each sidecar has no rights on the node, and only those that need the
// API have a token.
func TestPod(t *testing.T) {
	eachSet(t, func(t *testing.T, name string, objects []any) {
		withToken := []string{"provisioner", "health-monitor", "resizer", "csi-addons"}
		if name != "small" {
			withToken = append(withToken, "drivebay")
		}
		set := find[appsv1.DaemonSet](objects)[0]
		volumes := map[string]bool{}
		for _, v := range set.Spec.Template.Spec.Volumes {
			volumes[v.Name] = true
		}
		for k, v := range set.Spec.Selector.MatchLabels {
			if set.Spec.Template.Labels[k] != v {
				t.Errorf("the pod has not the label %s=%s", k, v)
			}
		}
		for _, c := range set.Spec.Template.Spec.Containers {
			token := false
			for _, m := range c.VolumeMounts {
				token = token || m.Name == "token"
				if !volumes[m.Name] {
					t.Errorf("%s mounts %s, which is no volume", c.Name, m.Name)
				}
			}
			if token != slices.Contains(withToken, c.Name) {
				t.Errorf("%s: token %v", c.Name, token)
			}
			s := c.SecurityContext
			if c.Name == "drivebay" {
				if s.Privileged == nil || !*s.Privileged {
					t.Error("drivebay is not privileged")
				}
			} else if s.Privileged != nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || len(s.Capabilities.Drop) != 1 || s.Capabilities.Add != nil {
				t.Errorf("%s: %v", c.Name, s)
			}
			if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
				t.Errorf("%s has no limit of memory or no request of processors", c.Name)
			}
		}
	})
}

// TestExpansion: claims can be expanded if and only if there is a resizer, and then one pod in the cluster.
func TestExpansion(t *testing.T) {
	eachSet(t, func(t *testing.T, name string, objects []any) {
		pod := find[appsv1.DaemonSet](objects)[0].Spec.Template.Spec
		resizer := slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool { return strings.Contains(c.Image, "resizer") })
		if resizer != (name == "single") {
			t.Errorf("resizer: %v", resizer)
		}
		central := false
		for _, d := range find[appsv1.Deployment](objects) {
			central = slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return strings.Contains(c.Image, "resizer") })
		}
		alone := pod.Affinity != nil && len(pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 1
		if alone != resizer {
			t.Errorf("one pod in the cluster: %v, resizer: %v", alone, resizer)
		}
		classes := find[storagev1.StorageClass](objects)
		if len(classes) < 3 {
			t.Errorf("%d classes", len(classes))
		}
		for _, c := range classes {
			if *c.AllowVolumeExpansion != (resizer || central) || *c.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
				t.Errorf("class %s: expansion %v, binding %s", c.Name, *c.AllowVolumeExpansion, *c.VolumeBindingMode)
			}
		}
	})
}

// TestControllerPage: the page is served and Drives are read only if the values say so, and only the container that serves it
// has its socket.
func TestControllerPage(t *testing.T) {
	for _, on := range []bool{false, true} {
		objects := decode(t, renderSet(t, fmt.Sprintf("controller: {enabled: true, page: %v}\n", on)).objects)
		reads := false
		for _, r := range find[rbacv1.ClusterRole](objects) {
			if r.Name != "drivebay-controller" {
				continue
			}
			for _, rule := range r.Rules {
				if slices.Contains(rule.Resources, "drives") {
					reads = true
					if !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) {
						t.Errorf("the controller may do with Drives: %v", rule.Verbs)
					}
				}
			}
		}
		if reads != on {
			t.Errorf("page %v: the controller reads Drives: %v", on, reads)
		}
		for _, c := range find[appsv1.Deployment](objects)[0].Spec.Template.Spec.Containers {
			has := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "page" })
			if want := on && c.Name == "drivebay"; has != want || slices.Contains(c.Args, "--kubernetes-page") != want {
				t.Errorf("page %v: %s %v %v", on, c.Name, c.Args, c.VolumeMounts)
			}
		}
	}
}

// TestController: with the controller, the pods of the nodes serve no controller service and have no sidecar that calls one;
// the sidecars of the controller have no election of their own and no rights on the node.
func TestController(t *testing.T) {
	eachSet(t, func(t *testing.T, name string, objects []any) {
		all := find[appsv1.Deployment](objects)
		node := find[appsv1.DaemonSet](objects)[0].Spec.Template.Spec
		if name != "controller" {
			if len(all) > 0 {
				t.Error("there is a controller")
			}
			return
		}
		for _, c := range node.Containers {
			if c.Name == "drivebay" && !slices.Contains(c.Args, "--role=node") || c.Name == "provisioner" || c.Name == "health-monitor" || c.Name == "resizer" {
				t.Errorf("the pod of a node has %s %v", c.Name, c.Args)
			}
		}
		pod := all[0].Spec.Template
		for k, v := range all[0].Spec.Selector.MatchLabels {
			if pod.Labels[k] != v || find[policyv1.PodDisruptionBudget](objects)[0].Spec.Selector.MatchLabels[k] != v {
				t.Errorf("the pod or its budget has not the label %s=%s", k, v)
			}
		}
		if s := find[appsv1.DaemonSet](objects)[0].Spec.Selector.MatchLabels; pod.Labels["app.kubernetes.io/name"] == s["app.kubernetes.io/name"] {
			t.Error("the DaemonSet selects the pods of the controller")
		}
		var names []string
		for _, c := range pod.Spec.Containers {
			names = append(names, c.Name)
			if s := c.SecurityContext; s.Privileged != nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || len(s.Capabilities.Drop) != 1 || s.Capabilities.Add != nil {
				t.Errorf("%s: %v", c.Name, s)
			}
			if slices.Contains(c.Args, "--leader-election") || slices.Contains(c.Args, "--leader-election=true") || slices.Contains(c.Args, "--node-deployment=true") {
				t.Errorf("%s: %v", c.Name, c.Args)
			}
		}
		if want := []string{"drivebay", "provisioner", "resizer", "snapshotter", "health-monitor", "csi-addons"}; !slices.Equal(names, want) {
			t.Errorf("containers %v", names)
		}
	})
	for _, values := range []string{"controller: {enabled: true}\nsingleNode: true\n", "controller: {enabled: true}\nobjects: {enabled: false}\n"} {
		if _, err := render(values); err == nil {
			t.Errorf("%q is rendered", values)
		}
	}
}

// TestReplicationSecret: the daemon reads the secret of replicated volumes from a Secret, which only root can read.
func TestReplicationSecret(t *testing.T) {
	for values, want := range map[string]bool{"replication: {enabled: true}\n": false, "replication: {secret: r}\n": false, "replication: {enabled: true, secret: r}\n": true} {
		all := decode(t, renderSet(t, values).objects)
		pod := find[appsv1.DaemonSet](all)[0].Spec.Template.Spec
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "replication" })
		configured := strings.Contains(fmt.Sprint(find[corev1.ConfigMap](all)[0].Data), "secretFile: /etc/drivebay-replication/replicationSecret")
		if (i >= 0) != want || configured != want {
			t.Errorf("%q: volume %d, configured %v", values, i, configured)
		}
		if want {
			if s := pod.Volumes[i].Secret; s.SecretName != "r" || *s.DefaultMode != 0o400 || !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.Name == "replication" && m.ReadOnly && m.MountPath == "/etc/drivebay-replication"
			}) {
				t.Errorf("%+v, %+v", s, pod.Containers[0].VolumeMounts)
			}
		}
	}
}

// TestReplicationNetwork: DRBD answers in the network namespace of the node only. Without replication the pods have one of their own.
func TestReplicationNetwork(t *testing.T) {
	for values, want := range map[string]bool{"": false, "replication: {enabled: true}\n": true} {
		pod := find[appsv1.DaemonSet](decode(t, renderSet(t, values).objects))[0].Spec.Template.Spec
		if pod.HostNetwork != want || (pod.DNSPolicy == corev1.DNSClusterFirstWithHostNet) != want {
			t.Errorf("%q: host network %v, DNS %q", values, pod.HostNetwork, pod.DNSPolicy)
		}
	}
}
