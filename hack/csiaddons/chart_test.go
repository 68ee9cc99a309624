package csiaddons

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The Helm chart runs the sidecar with these arguments and rights, which hack/chart renders.
const (
	chart            = "../chart/testdata/addons.yaml"
	namespace        = "drivebay"
	secretsNamespace = "shop"
)

// right is a rule of a role, and the namespace that it counts in, or none for all.
type right struct {
	Namespace                                  string
	APIGroups, Resources, ResourceNames, Verbs []string
}

// sidecarOf returns the arguments of the sidecar in the chart, and the rights of the account of its pod.
func sidecarOf(t *testing.T) (args []string, rights []right) {
	t.Helper()
	text, err := os.ReadFile(chart)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "\n---\n") {
		var o struct {
			Kind     string
			Metadata struct{ Namespace string }
			Rules    []right
			Spec     struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Name string
							Args []string
						}
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatal(err)
		}
		if o.Kind == "Role" || o.Kind == "ClusterRole" {
			for _, r := range o.Rules {
				r.Namespace = o.Metadata.Namespace
				rights = append(rights, r)
			}
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			if c.Name == "csi-addons" {
				args = c.Args
			}
		}
	}
	if len(args) < 5 || len(rights) < 5 {
		t.Fatalf("%s: %d arguments, %d rights", chart, len(args), len(rights))
	}
	return args, rights
}

// allows reports whether rights permit a request, as the RBAC authorizer of the API server decides.
func allows(rights []right, method, path string, watch bool) bool {
	words := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	switch {
	case words[0] == "api" && len(words) > 2:
		words = words[2:]
	case words[0] == "apis" && len(words) > 3:
		group, words = words[1], words[3:]
	default:
		return true // discovery, which every account may do
	}
	in := ""
	if words[0] == "namespaces" && len(words) > 2 {
		in, words = words[1], words[2:]
	}
	resource, name := words[0], ""
	if len(words) > 1 {
		name = words[1]
	}
	if len(words) > 2 {
		resource += "/" + words[2]
	}
	verb := map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}[method]
	switch {
	case watch:
		verb = "watch"
	case verb == "get" && name == "":
		verb = "list"
	}
	return slices.ContainsFunc(rights, func(r right) bool {
		return (r.Namespace == "" || r.Namespace == in) && slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb) &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
	})
}

func TestAllows(t *testing.T) {
	rights := []right{
		{Namespace: "a", APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"one"}, Verbs: []string{"get"}},
		{APIGroups: []string{"apps"}, Resources: []string{"daemonsets/finalizers"}, Verbs: []string{"update", "watch"}},
	}
	for request, want := range map[string]bool{
		"GET /api/v1/namespaces/a/secrets/one":                      true,
		"GET /api/v1/namespaces/a/secrets/two":                      false,
		"GET /api/v1/namespaces/b/secrets/one":                      false,
		"GET /api/v1/namespaces/a/secrets":                          false,
		"PUT /api/v1/namespaces/a/secrets/one":                      false,
		"PUT /apis/apps/v1/namespaces/x/daemonsets/d/finalizers":    true,
		"PUT /apis/apps/v1/namespaces/x/daemonsets/d":               false,
		"PUT /apis/batch/v1/namespaces/x/daemonsets/d/finalizers":   false,
		"DELETE /apis/apps/v1/namespaces/x/daemonsets/d/finalizers": false,
		"GET /apis/apps/v1":                                         true,
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := allows(rights, method, path, false); got != want {
			t.Errorf("%s: %v", request, got)
		}
	}
}
