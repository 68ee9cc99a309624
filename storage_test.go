package drivebay_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
)

func TestStorageFindings(t *testing.T) {
	drive := func(name string, h drivebay.Health, s drivebay.Status) drivebay.Drive {
		return drivebay.Drive{Name: name, Health: h, Status: s, Claim: &drivebay.Claim{}}
	}
	protected, copied := drive("a", drivebay.HealthGood, drivebay.StatusOnline), drive("b", drivebay.HealthSuspect, drivebay.StatusOnline)
	protected.ReadOnly, copied.Copy = true, "it is a copy of drive c"
	foreign, gone := drive("a", drivebay.HealthGood, drivebay.StatusOnline), drive("a", drivebay.HealthGood, drivebay.StatusUnknown)
	foreign.Usage, foreign.Content = drivebay.UsageInUse, drivebay.Content{Kind: drivebay.ContentForeign, Signatures: []drivebay.Signature{{Format: "ext4"}}}
	gone.Content = foreign.Content
	dead := drive("c", drivebay.HealthBad, drivebay.StatusOnline)
	dead.Kernel = &drivebay.Kernel{State: "offline"}
	online, offline := drivebay.StatusOnline, drivebay.StatusOffline
	for _, c := range []struct {
		name string
		snap drivebay.Snapshot
		want string
	}{
		{"nothing claimed", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{{Health: drivebay.HealthBad}}}, ""},
		{"well", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{drive("a", drivebay.HealthGood, online)}}, ""},
		{"not listed", drivebay.Snapshot{Drives: []drivebay.Drive{drive("a", drivebay.HealthGood, online)}}, "StorageNotObserved"},
		{"not judged", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{drive("a", drivebay.HealthUnknown, online)}}, "HealthUnknown"},
		{"one of two gone", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{drive("a", drivebay.HealthBad, offline), drive("b", drivebay.HealthGood, online)}}, "DiskRemoved"},
		{"all gone", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{drive("a", drivebay.HealthGood, offline), drive("b", drivebay.HealthGood, offline)}}, "!DiskRemoved"},
		{"all given up", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{dead, dead}}, "!DiskFailure"},
		{"one gone, the other given up", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{drive("a", drivebay.HealthGood, offline), dead}}, "!DiskRemoved !DiskFailure"},
		{"one of two given up", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{drive("a", drivebay.HealthGood, online), dead}}, "DiskFailure"},
		{"all given up but one that is SUSPECT", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{drive("a", drivebay.HealthSuspect, online), dead}}, "DiskFailure DiskDegrading"},
		{"not surely there", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{drive("a", drivebay.HealthGood, drivebay.StatusUnknown)}}, "HealthUnknown"},
		{"write-protected", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{protected, drive("b", drivebay.HealthGood, online)}}, "ConfigError"},
		{"a copy", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{copied}}, "ConfigError"},
		{"another program has made a filesystem on it", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{foreign}}, "ConfigError"},
		{"the same, and not surely there", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{gone}}, "HealthUnknown"},
		{"of each kind", drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{drive("a", drivebay.HealthBad, online), drive("b", drivebay.HealthSuspect, online), drive("c", drivebay.HealthBad, online)}}, "DiskFailure DiskDegrading"},
	} {
		var got []string
		for _, f := range drivebay.StorageFindings(&c.snap) {
			got = append(got, map[bool]string{true: "!"}[f.Unreachable]+f.Reason)
			if f.Message == "" {
				t.Errorf("%s: %s without a message", c.name, f.Reason)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

// However many drives there are and whatever they call themselves, a message is
// valid, not too long, and says how many it leaves out.
func TestStorageMessages(t *testing.T) {
	var many drivebay.Snapshot
	many.Complete = true
	for i := range 300 {
		many.Drives = append(many.Drives, drivebay.Drive{Name: fmt.Sprint("sd", i), Health: drivebay.HealthBad, Status: drivebay.StatusOnline, Claim: &drivebay.Claim{},
			Findings: []drivebay.Finding{{Text: "übel \xff"}}})
	}
	one := drivebay.Snapshot{Complete: true, Drives: many.Drives[:1:1]}
	one.Drives = []drivebay.Drive{one.Drives[0]}
	one.Drives[0].Findings = []drivebay.Finding{{Text: strings.Repeat("ü", 5000)}}
	for _, s := range []*drivebay.Snapshot{&many, &one} {
		f := drivebay.StorageFindings(s)
		if len(f) != 1 || len(f[0].Message) > 1024 || !utf8.ValidString(f[0].Message) || len(f[0].Short()) > 128 || !strings.Contains(f[0].Short(), "drives BAD") {
			t.Fatalf("%d findings; %d bytes: %q", len(f), len(f[0].Message), f[0].Message)
		}
	}
	if m := drivebay.StorageFindings(&many)[0].Message; !strings.Contains(m, "300 of 300") || !strings.Contains(m, " more") {
		t.Errorf("message %q", m)
	}
}
