package compare

import (
	"encoding/json"
	"testing"
)

// Every fact counts: one that is changed, or that we have not, is a difference.
func TestWitness(t *testing.T) {
	for _, p := range pairs(t) {
		facts := factsOf(p.drive)
		b, err := json.Marshal(facts)
		if err != nil {
			t.Fatal(err)
		}
		if n, diffs := Witness(b, p.drive); n != len(facts) || n < 5 || diffs != nil {
			t.Errorf("%s: %d facts, %v", p.name, n, diffs)
		}
		for name := range facts {
			b, err := json.Marshal(map[string]string{name: facts[name] + "0", "unknown": "1"})
			if err != nil {
				t.Fatal(err)
			}
			if _, diffs := Witness(b, p.drive); len(diffs) != 2 {
				t.Errorf("%s: %s changed: %v", p.name, name, diffs)
			}
		}
	}
	for _, text := range []string{"", "{}", "[]", "null"} {
		if n, diffs := Witness([]byte(text), pairs(t)[0].drive); n != 0 || len(diffs) != 1 {
			t.Errorf("%q: %d facts, %v", text, n, diffs)
		}
	}
}
