package render

import (
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// TestExplainStartsWithTheNextStep: what is done and what comes next is said first, and
// no advice of a finding contradicts it.
func TestExplainStartsWithTheNextStep(t *testing.T) {
	const advice = "Replace the drive."
	claim := &drivebay.Claim{By: drivebay.ClaimedByOperator}
	ours := drivebay.Content{Kind: drivebay.ContentOurs}
	for _, c := range []struct {
		name   string
		d      drivebay.Drive
		want   []string
		advice bool
	}{
		{"good", drivebay.Drive{Usage: drivebay.UsageInUse, Status: drivebay.StatusOnline, Health: drivebay.HealthGood, Claim: claim, Content: ours, Identity: drivebay.Identity{Size: 1}}, []string{"volumes can be created on it"}, true},
		{"bad", drivebay.Drive{Usage: drivebay.UsageInUse, Status: drivebay.StatusOnline, Health: drivebay.HealthBad, Claim: claim}, []string{"next", "`drivebay replace d`"}, true},
		{"gone", drivebay.Drive{Usage: drivebay.UsageInUse, Status: drivebay.StatusOffline, Claim: claim}, []string{"waits for", "the drive to come back"}, true},
		{"releasing", drivebay.Drive{Usage: drivebay.UsageReleasing, Status: drivebay.StatusOnline, Leaving: &drivebay.Leaving{Cause: "volume data-1 moves", Progress: &drivebay.Progress{Done: 1, Total: 4}}},
			[]string{"25 % of", "waits for", "volume data-1 moves", "`drivebay cancel d` keeps the drive"}, false},
		{"released", drivebay.Drive{Usage: drivebay.UsageReleased, Status: drivebay.StatusOnline}, []string{"an operator who approves", "`drivebay replace d`"}, false},
		{"removed", drivebay.Drive{Usage: drivebay.UsageRemoved, Status: drivebay.StatusOffline}, []string{"the successor in its bay", "without one, use `drivebay forget d`"}, false},
		{"removed and back", drivebay.Drive{Usage: drivebay.UsageRemoved, Status: drivebay.StatusOnline}, []string{"nothing is written to it", "`drivebay accept d`"}, false},
		{"failed", drivebay.Drive{Usage: drivebay.UsageFailed, Status: drivebay.StatusOnline, Leaving: &drivebay.Leaving{Cause: "somebody uses it: mount"}}, []string{"somebody uses it: mount", "`drivebay drive retry d`"}, false},
		{"one of two", drivebay.Drive{Usage: drivebay.UsageInUse, Status: drivebay.StatusUnknown, IdentityIssue: "x"}, []string{"nothing is written to the drives with this identity"}, true},
	} {
		c.d.ID, c.d.Name = "d", "sda"
		c.d.Findings = []drivebay.Finding{{Code: "X", Severity: drivebay.HealthBad, Text: "it clicks", Advice: advice}}
		out := Explain(&c.d, Style{})
		head, rest, _ := strings.Cut(strings.SplitN(out, "\n\n", 2)[1], "\n\n")
		if !strings.HasPrefix(head, "now ") {
			t.Errorf("%s: it starts with\n%s", c.name, head)
		}
		for _, w := range c.want {
			if !strings.Contains(head, w) {
				t.Errorf("%s: %q is not in\n%s", c.name, w, head)
			}
		}
		if !strings.Contains(rest, "it clicks") || strings.Contains(rest, advice) != c.advice {
			t.Errorf("%s: the findings are\n%s", c.name, rest)
		}
	}
}
