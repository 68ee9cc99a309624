//go:build kube

package apisuite

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestKubeAPISchema: the API server refuses objects that are malformed or would be too large.
func TestKubeAPISchema(t *testing.T) {
	a := Up(t)
	const name = "naa-1.node1"
	a.Kubectl(t, `{"apiVersion":"drivebay.io/v1alpha1","kind":"Drive","metadata":{"name":"`+name+`"}}`, "create", "-f", "-")
	a.Kubectl(t, "", "patch", "drive", name, "--type", "merge", "--subresource", "status", "-p", `{"status":{"node":"node1","id":"naa-1","health":"GOOD"}}`)
	many := func(n int, item string) string {
		return "[" + strings.Join(slices.Repeat([]string{item}, n), ",") + "]"
	}
	long := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	for patch, why := range map[string]string{
		`{"spec":{"claim":"yes"}}`:                                                             "must be of type boolean",
		`{"spec":{"approveRemoval":"naa-2"}}`:                                                  "must be the id of this drive",
		`{"spec":{"accept":"naa-10"}}`:                                                         "must be the id of this drive",
		`{"spec":{"approveRemoval":` + long(300) + `}}`:                                        "Too long",
		`{"status":{"health":"FINE"}}`:                                                         "Unsupported value",
		`{"status":{"usage":"GONE"}}`:                                                          "Unsupported value",
		`{"status":{"node":"node2"}}`:                                                          "cannot change",
		`{"status":{"node":null}}`:                                                             "cannot change",
		`{"status":{"id":"naa-2"}}`:                                                            "cannot change",
		`{"status":{"size":` + long(33) + `}}`:                                                 "Too long",
		`{"status":{"identity":{"serial":` + long(129) + `}}}`:                                 "Too long",
		`{"status":{"findings":` + many(33, `{"code":"A","severity":"BAD"}`) + `}}`:            "must have at most 32 items",
		`{"status":{"findings":[{"code":"A","severity":"GOOD"}]}}`:                             "Unsupported value",
		`{"status":{"findings":[{"code":"A","severity":"BAD","text":` + long(513) + `}]}}`:     "Too long",
		`{"status":{"refusals":` + many(17, `"x"`) + `}}`:                                      "must have at most 16 items",
		`{"status":{"percentUsed":256}}`:                                                       "less than or equal to 255",
		`{"status":{"capacity":{"total":-1}}}`:                                                 "greater than or equal to 0",
		`{"status":{"capacity":{"backings":[{"backing":"raid5","largest":1,"available":1}]}}}`: "Unsupported value",
		`{"status":{"requests":[{"field":"format","state":"Applied"}]}}`:                       "Unsupported value",
		`{"status":{"requests":[{"field":"claim","state":"Applied","reason":"not a word"}]}}`:  "should match",
		`{"status":{"conditions":[{"type":"Healthy","status":"Maybe","reason":"x","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`: "Unsupported value",
	} {
		args := []string{"patch", "drive", name, "--type", "merge", "-p", patch}
		if strings.HasPrefix(patch, `{"status"`) {
			args = append(args, "--subresource", "status")
		}
		if out := a.Refused(t, "", "", args...); !strings.Contains(out, why) {
			t.Errorf("%.80s: %.400s", patch, out)
		}
	}
	for file, why := range map[string]string{
		`{"apiVersion":"drivebay.io/v1alpha1","kind":"Drive","metadata":{"name":"naa-2.node1"},"spec":{"approveRemoval":"naa-2"}}`: "must be the id of this drive",
		`{"apiVersion":"drivebay.io/v1alpha1","kind":"Drive","metadata":{"name":"naa-2.node1"},"spec":{"relase":true}}`:            "unknown field",
		`{"apiVersion":"drivebay.io/v1alpha1","kind":"Drive","metadata":{"name":"NAA"}}`:                                           "RFC 1123",
	} {
		if out := a.Refused(t, "", file, "create", "-f", "-"); !strings.Contains(out, why) {
			t.Errorf("%s: %s", file, out)
		}
	}
	// The status of an object of one node names no other.
	a.Kubectl(t, `{"apiVersion":"drivebay.io/v1alpha1","kind":"Drive","metadata":{"name":"naa-3.b.a"}}`, "create", "-f", "-")
	for _, node := range []string{"a", "naa-3.b.a", "c"} {
		if out := a.Refused(t, "", "", "patch", "drive", "naa-3.b.a", "--type", "merge", "--subresource", "status", "-p", fmt.Sprintf(`{"status":{"node":%q}}`, node)); !strings.Contains(out, "the name of a Drive is") {
			t.Errorf("node %s: %s", node, out)
		}
	}
	a.Kubectl(t, "", "patch", "drive", "naa-3.b.a", "--type", "merge", "--subresource", "status", "-p", `{"status":{"node":"b.a"}}`)
}

// TestKubeAPIPolicy: the daemon works with the rights of the chart, and the daemon of another node, or another
// pod with the account, can write nothing of it.
func TestKubeAPIPolicy(t *testing.T) {
	a := Up(t)
	a.Install(t)
	own, foreign, dotted := a.Node(t, "rack24"), a.Node(t, "node2"), a.Node(t, "x.rack24")
	noNode := a.WriteKubeconfig(t, "no-node", strings.TrimSpace(a.Kubectl(t, "", "--namespace", "drivebay", "create", "token", "drivebay")))
	object := func(name, spec string) string {
		_, node, _ := strings.Cut(name, ".")
		return `{"apiVersion":"drivebay.io/v1alpha1","kind":"Drive","metadata":{"name":"` + name + `","labels":{"drivebay.io/node":"` + node + `"}}` + spec + `}`
	}
	Eventually(t, 30*time.Second, "the policy is in force", func() string {
		if out, err := a.kubectl(t.Context(), object("naa-0.rack24", ""), "--kubeconfig", foreign, "create", "--dry-run=server", "-f", "-"); err == nil {
			return out
		}
		return ""
	})
	d := a.Daemon(t, "rack24", mixedRack(t, a), own)
	mirrored(t, a, d)
	name, id := inBay(t, d, "Slot 08")
	applied(t, request(t, a, name, `{"claim":true,"cordoned":true}`), "True", "Applied")

	status := func(name, node string) string {
		return `{"apiVersion":"drivebay.io/v1alpha1","kind":"Drive","metadata":{"name":"` + name + `"},"status":{"node":"` + node + `","id":"` + strings.TrimSuffix(name, "."+node) + `","health":"BAD"}}`
	}
	apply := []string{"apply", "--server-side", "--force-conflicts", "--field-manager", "drivebay-node", "-f", "-"}
	writeStatus := append(slices.Clone(apply), "--subresource", "status")
	for who, kubeconfig := range map[string]string{"another node": foreign, "a node whose name ends alike": dotted, "no node": noNode} {
		for what, do := range map[string]struct {
			stdin string
			args  []string
		}{
			"create":        {object("naa-9.rack24", ""), []string{"create", "-f", "-"}},
			"apply":         {object(name, ""), apply},
			"apply status":  {status(name, "rack24"), writeStatus},
			"delete":        {"", []string{"delete", "drive", name}},
			"set the spec":  {object(name, `,"spec":{"release":true}`), apply},
			"remove labels": {"", []string{"label", "drive", name, "drivebay.io/node-"}},
		} {
			if out := a.Refused(t, kubeconfig, do.stdin, do.args...); !strings.Contains(out, "may not write the Drive") {
				t.Errorf("%s: %s: %s", who, what, out)
			}
		}
	}
	for what, do := range map[string]struct{ stdin, why string }{
		"set the spec":           {object(name, `,"spec":{"release":true}`), "may not change the spec"},
		"create with a spec":     {object("naa-9.rack24", `,"spec":{"claim":true}`), "may not change the spec"},
		"create without an id":   {object("rack24", ""), "may not write the Drive"},
		"create for a subdomain": {object("naa-9.x.rack24", ""), "may not write the Drive"},
		"label another node":     {strings.Replace(object(name, ""), `:"rack24"`, `:"node2"`, 1), "the label drivebay.io/node"},
		"create without a label": {strings.Replace(object("naa-9.rack24", ""), `"drivebay.io/node":"rack24"`, "", 1), "the label drivebay.io/node"},
	} {
		if out := a.Refused(t, own, do.stdin, apply...); !strings.Contains(out, do.why) {
			t.Errorf("the own node: %s: %s", what, out)
		}
	}
	for _, args := range [][]string{{"get", "secrets", "-A"}, {"patch", "crd", "drives.drivebay.io", "--type", "merge", "-p", "{}"}} {
		if out := a.Refused(t, own, "", args...); !strings.Contains(out, "orbidden") {
			t.Errorf("kubectl %v: %s", args, out)
		}
	}
	if s := drives(t, a, "rack24")[id]; s.Status.Health != "GOOD" || s.Spec.Release != nil || usage(t, d, id) != "IN_USE" {
		t.Errorf("%+v", s)
	}
	var left struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(a.Kubectl(t, "", "get", "drives", "-o", "json")), &left); err != nil {
		t.Fatal(err)
	}
	if want := len(drives(t, a, "rack24")); len(left.Items) != want {
		t.Errorf("%d objects, %d of them of the node", len(left.Items), want)
	}
}
