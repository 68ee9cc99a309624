package main

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestNames: the API server accepts the names, labels and ports of all objects. Their fields are checked by decode.
func TestNames(t *testing.T) {
	eachSet(t, func(t *testing.T, _ string, objects []any) {
		for _, o := range objects {
			meta := o.(metav1.Object)
			wrong := validation.IsDNS1123Subdomain(strings.ReplaceAll(meta.GetName(), ":", "-"))
			if meta.GetNamespace() != "" {
				wrong = append(wrong, validation.IsDNS1123Label(meta.GetNamespace())...)
			}
			for k, v := range meta.GetLabels() {
				wrong = append(wrong, append(validation.IsQualifiedName(k), validation.IsValidLabelValue(v)...)...)
			}
			for k := range meta.GetAnnotations() {
				wrong = append(wrong, validation.IsQualifiedName(strings.ToLower(k))...)
			}
			if len(wrong) > 0 {
				t.Errorf("%T %s: %v", o, meta.GetName(), wrong)
			}
		}
		for _, pod := range pods(objects) {
			checkContainers(t, pod)
		}
	})
}

// checkContainers: the names and ports of the containers of a pod are different, and what the arguments name is in the
// environment.
func checkContainers(t *testing.T, pod []corev1.Container) {
	t.Helper()
	ports, names := map[int32]string{}, map[string]bool{}
	for _, c := range pod {
		if wrong := validation.IsDNS1123Label(c.Name); len(wrong) > 0 || names[c.Name] {
			t.Errorf("container %s: %v", c.Name, wrong)
		}
		names[c.Name] = true
		for _, p := range c.Ports {
			if wrong := validation.IsValidPortName(p.Name); len(wrong) > 0 || ports[p.ContainerPort] != "" {
				t.Errorf("port %s: %v, also %s", p.Name, wrong, ports[p.ContainerPort])
			}
			ports[p.ContainerPort] = p.Name
		}
		known := []string{}
		for _, e := range c.Env {
			known = append(known, e.Name)
		}
		for _, arg := range c.Args {
			if _, variable, found := strings.Cut(arg, "$("); found && !slices.Contains(known, strings.TrimSuffix(variable, ")")) {
				t.Errorf("%s: %s is not in the environment", c.Name, arg)
			}
		}
		checkProbe(t, c, c.ReadinessProbe)
	}
}

// checkProbe: a probe asks a port that the container has.
func checkProbe(t *testing.T, c corev1.Container, probe *corev1.Probe) {
	t.Helper()
	if probe == nil || probe.HTTPGet == nil {
		return
	}
	if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == probe.HTTPGet.Port.StrVal }) {
		t.Errorf("%s: the probe asks %v", c.Name, probe.HTTPGet.Port)
	}
}
