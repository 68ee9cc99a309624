package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../../"
	chartDir  = root + "deploy/chart/drivebay"
	namespace = "drivebay"
)

// rendered is what the chart writes for some values: the objects as one stream, the notes apart.
type rendered struct{ objects, notes string }

// install is the release of a chart that is not installed yet.
var install = chartutil.ReleaseOptions{Name: "drivebay", Namespace: namespace, Revision: 1, IsInstall: true}

// render renders the chart as `helm install drivebay` does in an empty cluster.
func render(values string) (rendered, error) {
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return rendered{}, err
	}
	return renderRelease(given, install)
}

func renderRelease(given map[string]any, release chartutil.ReleaseOptions) (rendered, error) {
	c, err := loader.Load(chartDir)
	if err != nil {
		return rendered{}, err
	}
	all, err := chartutil.ToRenderValues(c, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return rendered{}, err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return rendered{}, err
	}
	return join(files), nil
}

// join puts the files of the chart in the order of their names.
func join(files map[string]string) (out rendered) {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text := strings.TrimSpace(files[name])
		switch {
		case strings.HasSuffix(name, "NOTES.txt"):
			out.notes = text + "\n"
		case text != "" && filepath.Ext(name) == ".yaml":
			out.objects += "---\n" + strings.TrimPrefix(text, "---\n") + "\n"
		}
	}
	return out
}

// manifest is the chart with its default values, for kubectl, the namespace that Helm creates, and its CRDs.
func manifest() (string, error) {
	r, err := render("")
	if err != nil {
		return "", err
	}
	c, err := loader.Load(chartDir)
	if err != nil {
		return "", err
	}
	head := fmt.Sprintf(`# drivebay in Kubernetes, rendered from deploy/chart/drivebay with its default values by `+"`make generate`"+`.
# docs/kubernetes.md describes it.
---
apiVersion: v1
kind: Namespace
metadata:
  name: %s
  labels:
    pod-security.kubernetes.io/enforce: privileged
`, namespace)
	// Labels of Helm's would be false here.
	return head + crds(c) + strings.ReplaceAll(r.objects, "managed-by: Helm", "managed-by: kubectl"), nil
}

// crds returns the CRDs of the chart, which Helm does not render.
func crds(c *chart.Chart) (out string) {
	for _, crd := range c.CRDObjects() {
		out += "---\n" + strings.TrimPrefix(strings.TrimSpace(string(crd.File.Data)), "---\n") + "\n"
	}
	return out
}

// kustomization is the base of Kustomize over the files of deploy/manifests.
func kustomization(files []string) string {
	text := `# A base for Kustomize, written by ` + "`make generate`" + `. docs/kubernetes.md shows an overlay.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
`
	for _, file := range files {
		text += "- " + file + "\n"
	}
	return text
}
