package jsonpath

import (
	"strings"
	"testing"
)

const machine = `{"machine": {"name": "rack", "a.b": "dotted"}, "complete": true, "seq": 12345678901234567890,
	"drives": [{"id": "d1", "health": "GOOD", "size": 4000, "slot": {"bay": "Slot 01"}},
		{"id": "d2", "health": "BAD", "size": 16000, "slot": {"bay": "Slot 02"}, "findings": [{"code": "A"}, {"code": "B"}]},
		{"id": "d3", "health": "BAD", "size": 8000, "cordoned": true}]}`

type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func TestPrint(t *testing.T) {
	for template, want := range map[string]string{
		`{.machine.name}`:                    "rack",
		`.machine.name`:                      "rack",
		`{$.machine.name}`:                   "rack",
		`{.machine['a.b']}`:                  "dotted",
		`{.machine.a\.b}`:                    "dotted",
		`{.complete} {.seq}`:                 "true 12345678901234567890",
		`{.drives[0].id}`:                    "d1",
		`{.drives[-1].id}`:                   "d3",
		`{.drives[7].id}`:                    "",
		`{.nothing.there}`:                   "",
		`{.drives[*].id}`:                    "d1 d2 d3",
		`{.drives.*.id}`:                     "d1 d2 d3",
		`{.drives[1:].id}`:                   "d2 d3",
		`{.drives[:2].id}`:                   "d1 d2",
		`{.drives[-1:].id}`:                  "d3",
		`{.drives[2:1].id}`:                  "",
		`{..bay}`:                            "Slot 01 Slot 02",
		`{.drives[0].slot}`:                  `{"bay":"Slot 01"}`,
		`{.drives[1].findings}`:              `[{"code":"A"},{"code":"B"}]`,
		`{.drives[?(@.health=="BAD")].id}`:   "d2 d3",
		`{.drives[?(@.health=='BAD')].id}`:   "d2 d3",
		`{.drives[?(@.health != "BAD")].id}`: "d1",
		`{.drives[?(@.size>=8000)].id}`:      "d2 d3",
		`{.drives[?(@.size<16000)].id}`:      "d1 d3",
		`{.drives[?(@.cordoned)].id}`:        "d3",
		`{.drives[?(@.cordoned==true)].id}`:  "d3",
		`{.drives[?(@.slot.bay=="Slot 02")].findings[*].code}`:           "A B",
		`{range .drives[*]}{.id}{"\t"}{.health}{"\n"}{end}`:              "d1\tGOOD\nd2\tBAD\nd3\tBAD\n",
		`{range .drives[*]}{.id}:{range .findings[*]}{.code}{end};{end}`: "d1:;d2:AB;d3:;",
		`{range .drives[*].id}[{@}]{end}`:                                "[d1][d2][d3]",
		`{range .drives[0:1]}{$.machine.name}/{.id}{end}`:                "rack/d1",
		`name={.machine.name}{"}"}{'\n'}`:                                "name=rack}\n",
	} {
		parsed, err := Parse(template)
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		if got, err := parsed.Print(raw(machine)); err != nil || got != want {
			t.Errorf("%s prints %q, %v; want %q", template, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for template, want := range map[string]string{
		``:                         "a path is missing",
		`{}`:                       "a path is missing",
		`drives`:                   "begins with a dot",
		`{.drives[0}`:              "closing bracket is missing",
		`{.drives`:                 "closing brace is missing",
		`{.drives[0,1]}`:           "[0,1]: not supported: want [0]",
		`{.drives['a','b']}`:       "not supported",
		`{.drives[(@.length-1)]}`:  "not supported",
		`{.drives[?(@.a && @.b)]}`: "&& is not supported",
		`{.drives[?(@.a==BAD)]}`:   `"BAD": want @.key, a number`,
		`{.drives[?(@.a=="x)]}`:    "closing brace is missing",
		`{.drives[1:x]}`:           "not supported",
		`{range .drives[*]}{.id}`:  "{range} without {end}",
		`{.id}{end}`:               "{end} without {range}",
		`{.a..}`:                   "a key is missing",
		`{"\q"}`:                   "not a text in quotes",
		`{.drives[*]id}`:           "want a dot or a bracket",
	} {
		if _, err := Parse(template); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", template, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{.drives[?(@.health=="BAD")].id}`, `{range .drives[*]}{.id}{end}`, `{..a[1:-1]['b']}`, `\{"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, template string) {
		if parsed, err := Parse(template); err == nil {
			if _, err := parsed.Print(raw(machine)); err != nil {
				t.Error(err)
			}
		}
	})
}
