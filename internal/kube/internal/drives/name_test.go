package drives

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestObjectName(t *testing.T) {
	long := strings.Repeat("long-", 50)
	ids := []string{"naa-5000c500a1b2c3d4", "t10.ATA_x", "t10.ATA-x", "UPPER", "upper", "-x-", "x", long + "a", long + "b", "a.b", "path-a/b", "ü", ""}
	nodes := []string{"node1", "node1.example.com", strings.Repeat("n", 63), strings.Repeat("n.", 50) + "n"}
	seen := map[string]string{}
	for _, node := range nodes {
		for _, id := range ids {
			name := ObjectName(id, node)
			if errs := validation.IsDNS1123Subdomain(name); errs != nil {
				t.Errorf("%q on %s: %q: %v", id, node, name, errs)
			}
			if drive, of, _ := strings.Cut(name, "."); of != node || drive == "" {
				t.Errorf("%q: the part after the first dot is %q, not %q", name, of, node)
			}
			if other, taken := seen[name]; taken {
				t.Errorf("%q and %q have the name %q", id, other, name)
			}
			seen[name] = id
		}
		if errs := validation.IsValidLabelValue(labelOf(node)); errs != nil {
			t.Errorf("label of %s: %v", node, errs)
		}
	}
	if name := ObjectName("naa-1", "node1"); name != "naa-1.node1" {
		t.Errorf("an id that is a name is kept: %q", name)
	}
}

func TestForgotten(t *testing.T) {
	names := []string{"a.node1", "b.node1", "c.node2", "d.x.node1"}
	there := map[string]bool{"a.node1": true}
	if got := forgotten(names, there, "node1", nil); !slices.Equal(got, []string{"b.node1"}) {
		t.Errorf("%v", got)
	}
	if got := forgotten(names, there, "node1", []string{"the records are not read"}); got != nil {
		t.Errorf("while the records are not read: %v", got)
	}
}
