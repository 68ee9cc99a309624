package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// TestEventFlags: kinds and times select events, and wrong ones are refused with a hint.
func TestEventFlags(t *testing.T) {
	env := daemonFor(t, newEngine(twoDrives()))
	for _, row := range []struct {
		args     string
		code     int
		has, not string
	}{
		{"events --kind healthchanged", exitOK, "it died", "DriveAppeared"},
		{"events --kind HealthChanged,VolumeCreated", exitOK, "made", "DriveAppeared"},
		{"events --drive 1", exitOK, "naa-aaaa01", "naa-aaaa02"},
		{"events --since 1h", exitOK, "", "DriveAppeared"}, // the events of this engine have no time
		{"events --since 0001-01-01Z", exitUsage, "is no time", ""},
		{"events --since tomorrow", exitUsage, "write it as 90m, 1h or 2d before now, 2026-11-24, 2026-11-24T10:00", ""},
		{"events --kind HealthChange", exitUsage, `there is no such kind: did you mean "HealthChanged"?`, ""},
		{"events --kind x", exitUsage, "docs/events.md lists the kinds", ""},
		{"events --drive gone-for-good", exitOK, "note: no drive gone-for-good is known now: showing the events of the ID gone-for-good", "DriveAppeared"},
		{"events --drive naa-aaaa", exitFailure, "ambiguous: it names naa-aaaa01", "DriveAppeared"},
		{"--version", exitOK, "drivebay ", "see:"},
	} {
		out, errs, code := call(t, env, strings.Fields(row.args)...)
		if code != row.code || !strings.Contains(out+errs, row.has) || row.not != "" && strings.Contains(out+errs, row.not) {
			t.Errorf("%s: exit %d, %s%s", row.args, code, out, errs)
		}
	}
	version, _, _ := call(t, env, "version")
	if flag, _, _ := call(t, env, "--version"); flag != version {
		t.Errorf("--version prints %q, version %q", flag, version)
	}
}

// TestWatchOutlivesTheDaemon: the commands that follow a daemon wait for its restart, say so, and show
// each event once.
func TestWatchOutlivesTheDaemon(t *testing.T) {
	sim := filepath.Join(t.TempDir(), "rack.yaml")
	write(t, sim, "machine: rack\nenclosures:\n  - {name: front, kind: ses, bays: 2}\ndrives:\n  - {bays: 0-1, enclosure: front, kind: sata-hdd, serial: 'SER{n}'}\n")
	r := serve(t, "--sim", sim)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := func(args ...string) (*safeBuffer, *safeBuffer, chan int) {
		out, errs, ended := &safeBuffer{}, &safeBuffer{}, make(chan int, 1)
		a := testApp(r.env, out, errs)
		go func() { ended <- a.run(ctx, args) }()
		return out, errs, ended
	}
	events, eventNotes, eventsEnd := begin("events", "--watch", "--kind", "DriveAppeared,Cordon")
	list, listNotes, listEnd := begin("drives", "--watch")
	says(t, list, "2 drives: 2 GOOD")
	says(t, events, "SER0001", "SER0002")
	if _, errs, code := call(t, r.env, "cordon", "0"); code != 0 {
		t.Fatal(errs)
	}
	says(t, events, "Cordon")
	r.end()
	for _, notes := range []*safeBuffer{eventNotes, listNotes} {
		says(t, notes, "note: the daemon does not answer, waiting for it: ")
	}
	again := serve(t, "--sim", sim, "--state-dir", r.dir+"/state", "--api", r.env["DRIVEBAY_API"])
	for _, notes := range []*safeBuffer{eventNotes, listNotes} {
		says(t, notes, "note: the daemon answers again")
	}
	if _, errs, code := call(t, r.env, "uncordon", "0"); code != 0 {
		t.Fatal(errs)
	}
	eventually(t, patience, func() bool { return strings.Count(events.String(), "Cordon") == 2 }, func() string { return events.String() + again.err.String() })
	eventually(t, patience, func() bool {
		return strings.Count(list.String(), "CORDONED") > 0 && strings.HasSuffix(strings.TrimSpace(list.String()), "2 drives: 2 GOOD")
	}, list.String)
	cancel()
	if a, b := <-eventsEnd, <-listEnd; a != exitOK || b != exitOK {
		t.Errorf("exit %d and %d", a, b)
	}
	if strings.Count(events.String(), "DriveAppeared") != 2 || strings.Count(eventNotes.String(), "note:") != 2 {
		t.Errorf("events:\n%s%s", events, eventNotes)
	}
}
