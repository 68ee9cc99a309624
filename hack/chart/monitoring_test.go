package main

import (
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// TestLabelsOfValues: a label of the values takes the place of the chart's own of that name.
func TestLabelsOfValues(t *testing.T) {
	const own = "{app.kubernetes.io/instance: prometheus, team: storage}"
	objects := decode(t, renderSet(t, "metrics: {enabled: true, insecure: true, podMonitor: {enabled: true, labels: "+own+"}, rules: {enabled: true, labels: "+own+"}, dashboard: {enabled: true, labels: "+own+"}}").objects)
	var all []map[string]string
	for _, o := range find[monitoringv1.PodMonitor](objects) {
		all = append(all, o.Labels)
	}
	for _, o := range find[monitoringv1.PrometheusRule](objects) {
		all = append(all, o.Labels)
	}
	for _, o := range find[corev1.ConfigMap](objects) {
		if o.Name == "drivebay-dashboard" {
			all = append(all, o.Labels)
		}
	}
	for _, l := range all {
		if l["app.kubernetes.io/instance"] != "prometheus" || l["team"] != "storage" || l["app.kubernetes.io/name"] != "drivebay" {
			t.Errorf("%v", l)
		}
	}
	if len(all) != 4 {
		t.Errorf("%d objects have the labels, want 4", len(all))
	}
}

// TestPodMonitor: the operator finds the pods and their port, scrapes them as the daemon serves, and names job and
// instance as the alerts expect.
func TestPodMonitor(t *testing.T) {
	for name, secure := range map[string]bool{"metrics": true, "small": false} {
		objects := decode(t, renderSet(t, sets[name]).objects)
		set, monitor := find[appsv1.DaemonSet](objects)[0], find[monitoringv1.PodMonitor](objects)[0]
		selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(set.Spec.Template.Labels)) {
			t.Errorf("%s: %v does not select the pods: %v", name, monitor.Spec.Selector, err)
		}
		if set.Spec.Template.Labels[monitor.Spec.JobLabel] != "drivebay" {
			t.Errorf("%s: the label %q gives no job drivebay", name, monitor.Spec.JobLabel)
		}
		end := monitor.Spec.PodMetricsEndpoints[0]
		ports := 0
		for _, c := range set.Spec.Template.Spec.Containers {
			for _, p := range c.Ports {
				if p.Name == *end.Port {
					ports++
				}
			}
		}
		if ports != 1 {
			t.Errorf("%s: %d ports %s", name, ports, *end.Port)
		}
		instance := false
		for _, r := range end.RelabelConfigs {
			instance = instance || r.TargetLabel == "instance" && r.SourceLabels[0] == "__meta_kubernetes_pod_node_name"
		}
		if !instance {
			t.Errorf("%s: the instance is not the node", name)
		}
		if !secure {
			if end.Scheme != nil || end.HTTPConfig.TLSConfig != nil || end.HTTPConfig.Authorization != nil {
				t.Errorf("%s: %v", name, end)
			}
			continue
		}
		secrets := map[string]bool{}
		for _, v := range set.Spec.Template.Spec.Volumes {
			if v.Name == "http" {
				for _, s := range v.Projected.Sources {
					secrets[s.Secret.Name] = true
				}
			}
		}
		tls, authorization := end.HTTPConfig.TLSConfig, end.HTTPConfig.Authorization
		if *end.Scheme != "https" || !secrets[tls.CA.Secret.Name] || *tls.ServerName != "drivebay" || tls.InsecureSkipVerify != nil || !secrets[authorization.Credentials.Name] {
			t.Errorf("%s: %v, %v, %v", name, *end.Scheme, tls, authorization)
		}
	}
}

// TestPrometheusRules: the objects have the rules of the files, with the address of the runbooks of the values.
func TestPrometheusRules(t *testing.T) {
	objects := find[monitoringv1.PrometheusRule](decode(t, renderSet(t, sets["metrics"]).objects))
	for i, name := range []string{"drivebay", "kubernetes"} {
		var want monitoringv1.PrometheusRuleSpec
		if err := yaml.UnmarshalStrict(read(t, root+"deploy/prometheus/"+name+".rules.yaml"), &want); err != nil {
			t.Fatal(err)
		}
		for _, g := range want.Groups {
			for _, r := range g.Rules {
				r.Annotations["runbook_url"] = strings.Replace(r.Annotations["runbook_url"], runbooks, testRunbooks, 1)
			}
		}
		got := objects[i].Spec
		if a, b := encode(t, got), encode(t, want); a != b || len(want.Groups) == 0 {
			t.Errorf("%s:\n%s\nnot\n%s", objects[i].Name, a, b)
		}
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDashboardMap: Grafana's sidecar gets the dashboard unchanged.
func TestDashboardMap(t *testing.T) {
	for _, m := range find[corev1.ConfigMap](decode(t, renderSet(t, sets["metrics"]).objects)) {
		if m.Name != "drivebay-dashboard" {
			continue
		}
		if want := strings.TrimSuffix(string(read(t, root+"deploy/grafana/drivebay.json")), "\n"); strings.TrimSuffix(m.Data["drivebay.json"], "\n") != want || m.Labels["grafana_dashboard"] != "1" {
			t.Errorf("the dashboard differs from its file, or has not the label: %v", m.Labels)
		}
		return
	}
	t.Error("there is no dashboard")
}
