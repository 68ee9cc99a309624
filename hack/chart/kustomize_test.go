package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// build builds a directory as `kubectl apply --kustomize` does.
func build(t *testing.T, dir string) []any {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(text))
}

// TestKustomizeBase: the base has the objects of every manifest, unchanged.
func TestKustomizeBase(t *testing.T) {
	var want []string
	for _, name := range manifests(t) {
		for _, o := range decode(t, string(read(t, root+"deploy/manifests/"+name))) {
			want = append(want, encode(t, o))
		}
	}
	var got []string
	for _, o := range build(t, root+"deploy/manifests") {
		got = append(got, encode(t, o))
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 10 || !slices.Equal(got, want) {
		t.Errorf("the base has %d objects that are not the %d of the manifests", len(got), len(want))
	}
}

// TestKustomizeOverlay builds the overlay of docs/kubernetes.md: it sets images, and the policies still know the account.
func TestKustomizeOverlay(t *testing.T) {
	page := string(read(t, root+"docs/kubernetes.md"))
	found := regexp.MustCompile("(?s)```yaml\n(# kustomization.yaml\n.*?)```").FindStringSubmatch(page)
	if found == nil {
		t.Fatal("docs/kubernetes.md has no kustomization.yaml")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Abs(root + "deploy/manifests")
	if err == nil {
		base, err = filepath.Rel(dir, base)
	}
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(found[1], "deploy/manifests") != 1 {
		t.Fatalf("the overlay has not the base:\n%s", found[1])
	}
	text := regexp.MustCompile(`[^\s\[,]*deploy/manifests[^\s\],]*`).ReplaceAllLiteralString(found[1], base)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects := build(t, dir)
	// Kustomize changes no expressions: in another namespace the policy would not know the account, and allow everything.
	account := find[corev1.ServiceAccount](objects)[0]
	for _, p := range find[admissionv1.ValidatingAdmissionPolicy](objects) {
		if !strings.Contains(p.Spec.MatchConditions[0].Expression, `"system:serviceaccount:`+account.Namespace+":"+account.Name) { // of the node, or with a suffix of the controller
			t.Errorf("%s does not know the accounts %s... in %s: %v", p.Name, account.Name, account.Namespace, p.Spec.MatchConditions)
		}
	}
	set := find[appsv1.DaemonSet](objects)[0]
	have := map[string]string{}
	for _, c := range set.Spec.Template.Spec.Containers {
		have[c.Name] = c.Image
	}
	if have["drivebay"] != "registry.example/drivebay:v1.0.0" || !strings.Contains(have["provisioner"], "/csi-provisioner@sha256:") || !strings.HasSuffix(have["registrar"], ":v2.17.0") {
		t.Errorf("images: %v", have)
	}
}
