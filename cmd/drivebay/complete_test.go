package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/api"
)

// TestComplete: the shell completes drives by name, bay and serial, volumes and snapshots by name and ID,
// and kinds of events. Without a daemon it completes nothing, and nothing is an error.
func TestComplete(t *testing.T) {
	e := newEngine(twoDrives())
	env := daemonWith(t, e, api.Options{Volumes: newVolumes(e)})
	complete := func(env map[string]string, args ...string) []string {
		t.Helper()
		out, _, code := call(t, env, append([]string{"__complete"}, args...)...)
		if code != exitOK {
			t.Fatalf("%q: exit %d", args, code)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		return lines[:len(lines)-1] // the last is cobra's directive
	}
	for _, row := range []struct{ args, want string }{
		{"drive show |sd", "sd1\tDisk HDD GOOD, bay Slot 1;sd2\tDisk HDD BAD, bay Slot 2"},
		{"replace |sn2", "SN2\tDisk HDD BAD, bay Slot 2"},
		{"locate |2", "2\tsd2 Disk HDD BAD"},
		{"locate 2 |o", "on;off"},
		{"selftest sd1 |s", "short"},
		{"selftest sd1 short |", ""},
		{"drive acknowledge 2 |", "ATAFailed\tit says so itself"},
		{"claim sd1 |sd2", "sd2\tDisk HDD BAD, bay Slot 2"},
		{"events --drive |sd1", "sd1\tDisk HDD GOOD, bay Slot 1"},
		{"events --kind |healthc", "HealthChanged"},
		{"events --kind |Locate,DriveV", "Locate,DriveVanished"},
		{"volume show |data", "data-1\t" + dataVolume},
		{"volume create x --from-snapshot |mon", "monday\tsnap1"},
		{"volume snapshot-delete |snap", "snap1\tmonday"},
		{"force-remove sd1 --lose |mon", "monday\tsnap1"},
		{"explain |sd1", "sd1\tDisk HDD GOOD, bay Slot 1"},
		{"volume create |x", ""},
		{"drives |", ""},
	} {
		before, start, _ := strings.Cut(row.args, "|")
		args := append(strings.Fields(before), start)
		var want []string
		if row.want != "" {
			want = strings.Split(row.want, ";")
		}
		if got := complete(env, args...); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", row.args, got, want)
		}
		if got := complete(map[string]string{"DRIVEBAY_API": "unix:///nowhere/s"}, args...); slices.ContainsFunc(got, func(l string) bool { return strings.Contains(l, "SN") || strings.Contains(l, "Slot") }) {
			t.Errorf("%s, without a daemon: %q", row.args, got)
		}
	}
	snap := twoDrives()
	snap.Drives[0].Slot = drivebay.Slot{Bay: "Slot 2"}
	e.snap.Store(&snap)
	if got := complete(env, "locate", "2"); len(got) > 0 { // it would name two drives
		t.Errorf("an ambiguous bay: %q", got)
	}
}
