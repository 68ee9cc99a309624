package smart

import (
	"encoding/binary"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

func blockOf(tag string, data []byte) []byte {
	return slices.Concat([]byte(tag), binary.BigEndian.AppendUint32(nil, uint32(len(data))), data)
}

func TestReadBlocks(t *testing.T) {
	id := blockOf("IDFY", identifyPage(nil))
	passed, failed := blockOf("SMST", []byte{0, 0, 0, 1}), blockOf("SMST", []byte{0, 0, 0, 0})
	data := blockOf("SMDT", dataPage(attr{5, 3, 36, 36, 2000}))
	limits := blockOf("SMTH", thresholdPage(map[uint8]uint8{5: 36}))
	spoiled := slices.Clone(data)
	spoiled[100]++
	for name, c := range map[string]struct {
		b        []byte
		verdict  drivebay.Verdict
		problems []string
		failing  bool
	}{
		"whole":                {slices.Concat(id, passed, data, limits), drivebay.VerdictPassed, nil, true},
		"in any order":         {slices.Concat(limits, data, failed, id), drivebay.VerdictFailed, nil, true},
		"no status":            {slices.Concat(id, data, limits), drivebay.VerdictUnknown, []string{"block SMST is missing"}, true},
		"no data":              {slices.Concat(id, passed, limits), drivebay.VerdictPassed, []string{"block SMDT is missing", "no attributes"}, false},
		"data with a bad sum":  {slices.Concat(id, passed, spoiled, limits), drivebay.VerdictPassed, []string{"ata-smart-data: the checksum is wrong: page ignored", "no attributes"}, false},
		"thresholds cut off":   {slices.Concat(id, passed, data, limits[:100]), drivebay.VerdictPassed, []string{`block "SMTH" is truncated: 92 of 512 bytes`, "92 bytes"}, false},
		"a tail":               {slices.Concat(id, passed, data, limits, []byte{1, 2}), drivebay.VerdictPassed, []string{"2 bytes follow"}, true},
		"a foreign block":      {slices.Concat(id, passed, data, limits, blockOf("\xFFABC", nil)), drivebay.VerdictPassed, []string{`"\xffABC" is unknown`}, true},
		"two verdicts":         {slices.Concat(id, failed, passed, data, limits), drivebay.VerdictFailed, []string{"twice"}, true},
		"a verdict of its own": {slices.Concat(id, blockOf("SMST", []byte{1, 0, 0, 0}), data, limits), drivebay.VerdictUnknown, []string{"neither passed nor failed"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			ev, err := ReadBlocks(c.b)
			if err != nil {
				t.Fatal(err)
			}
			if ev.Verdict != c.verdict || len(ev.Problems) != len(c.problems) {
				t.Fatalf("%v %+v", ev.Verdict, ev.Problems)
			}
			for i, want := range c.problems {
				if !slices.ContainsFunc(ev.Problems, func(p drivebay.Problem) bool { return strings.Contains(p.Text, want) }) {
					t.Errorf("problem %d: no %q in %+v", i, want, ev.Problems)
				}
			}
			failing := ev.ATA != nil && slices.ContainsFunc(ev.ATA.Attributes, func(a drivebay.Attribute) bool { return a.FailedNow })
			if failing != c.failing {
				t.Errorf("an attribute is failing: %v", failing)
			}
		})
	}
	for _, b := range [][]byte{nil, []byte("{}"), []byte("IDFY"), []byte("IDFY\xff\xff\xff\xff"), []byte("XXXX\x00\x00\x00\x00")} {
		if ev, err := ReadBlocks(b); !errors.Is(err, ErrNotBlocks) || ev != nil || IsBlocks(b) {
			t.Errorf("%q: %v %v", b, ev, err)
		}
	}
}

// TestFamilies compiles every pattern and looks for families that can never be
// reached because an earlier one has the same patterns.
func TestFamilies(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range families {
		for _, p := range append(slices.Clone(f.models), f.firmware) {
			if _, err := path.Match(p, "x"); err != nil {
				t.Errorf("pattern %q: %v", p, err)
			}
		}
		for _, m := range f.models {
			if key := m + "|" + f.firmware; seen[key] {
				t.Errorf("pattern %q stands twice", key)
			} else {
				seen[key] = true
			}
		}
		for id, m := range f.meanings {
			if id == 0 || m.name == "" {
				t.Errorf("%v: attribute %d is called %q", f.models, id, m.name)
			}
		}
	}
}
