//go:build axe

package ui

import (
	"os"
	"testing"
)

// axe-core finds nothing serious on the rack, a drive, a dialog and a phone, light and dark. DRIVEBAY_AXE
// names its file, from `npm pack axe-core`.
func TestAxe(t *testing.T) {
	script, err := os.ReadFile(os.Getenv("DRIVEBAY_AXE"))
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, nil)
	sick(r)
	r.open(1280, 900)
	check := func(where string) {
		t.Helper()
		eval[bool](r, string(script)+"; true")
		found := eval[[]string](r, `axe.run().then((a) => a.violations.flatMap((v) => v.nodes.map((n) => v.impact + ' ' + v.id + ' ' + n.target.join(' ') + ': ' + n.failureSummary)))`)
		for _, f := range found {
			t.Errorf("%s: %s", where, f)
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		r.scheme(scheme)
		check(scheme + ", the rack")
		r.click(bay("Slot 13"))
		r.visible("#drive .chart")
		r.click("#drive details summary")
		check(scheme + ", a drive")
		r.click("#drive button[data-do=release]")
		r.visible("#ask[open]")
		check(scheme + ", a dialog")
		r.click("#ask .button")
		r.gone("#ask[open]")
		r.click("#drive .close")
		r.hidden("#drive")
	}
}
