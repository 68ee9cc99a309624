package main

import (
	"strings"
	"testing"

	"github.com/drivebay/drivebay/internal/api"
)

func TestLists(t *testing.T) {
	e := newEngine(twoDrives())
	env := daemonWith(t, e, api.Options{Volumes: newVolumes(e)})
	for _, tc := range []struct {
		args, want string
		format     string // of -o; may contain spaces
	}{
		{"drives --columns bay,health,volumes,usage --no-headers", "Slot 1  GOOD  data-1  UNKNOWN\nSlot 2  BAD   raw-1   UNKNOWN\n", "table"},
		{"drives --columns BAY --sort -health --no-headers", "Slot 2\nSlot 1\n", "table"},
		{"drives --columns name --sort health --health bad", "NAME\nsd2\n1 drive: 1 BAD\n", "table"},
		{"drives --type ssd --no-headers", "", "table"},
		{"volumes --columns name,bay,used,free --sort -name --no-headers", "raw-1   Slot 2  -  -\ndata-1  Slot 1  -  -\n", "table"},
		{"drives", "naa-aaaa02\n", `jsonpath={.drives[?(@.health=="BAD")].id}`},
		{"drives --sort -name", "sd2 sd1\n", "jsonpath={.drives[*].name}"},
		{"volumes", "data-1\nraw-1\n", `jsonpath={range .volumes[*]}{.name}{"\n"}{end}`},
		{"volume show data-1", "data-1\n", "jsonpath=.name"},
	} {
		out, errs, code := call(t, env, append(strings.Fields(tc.args), "-o", tc.format)...)
		if code != exitOK || out != tc.want {
			t.Errorf("%s -o %s: exit %d, %q, want %q; %s", tc.args, tc.format, code, out, tc.want, errs)
		}
	}
	for args, want := range map[string]string{
		"drives --columns bay,helth":           `--columns: no column "helth": did you mean "health"?`,
		"drives --sort -xyz123":                `--sort: no column "xyz123": want node, enclosure, bay, `,
		"drives -o jsonpath={.drives[0,1].id}": "[0,1]: not supported",
		"events -o jsonpath=.id":               "want text, json",
		"drives -o xml":                        "want table, wide, json, yaml, jsonpath=TEMPLATE",
	} {
		out, errs, code := call(t, env, strings.Fields(args)...)
		if code != exitUsage || !strings.Contains(errs, want) || out != "" {
			t.Errorf("%s: exit %d, %q, want %q", args, code, errs, want)
		}
	}
}

// TestWidthOfTheTerminal: the terminal says how wide it is, COLUMNS what the user prefers, and output
// that goes elsewhere has no limit.
func TestWidthOfTheTerminal(t *testing.T) {
	for _, tc := range []struct {
		tty      bool
		columns  string
		terminal int
		want     int
	}{{false, "", 70, 0}, {false, "90", 70, 0}, {true, "", 70, 70}, {true, "90", 70, 90}, {true, "x", 70, 70}, {true, "", 0, defaultWidth}} {
		a := testApp(map[string]string{"COLUMNS": tc.columns}, &safeBuffer{}, &safeBuffer{})
		a.tty, a.columns, a.color = tc.tty, func() int { return tc.terminal }, "auto"
		if s, err := a.style(); err != nil || s.Width != tc.want || s.Color != tc.tty {
			t.Errorf("%+v: width %d, color %v, %v", tc, s.Width, s.Color, err)
		}
	}
}
