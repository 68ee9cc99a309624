package drbd

import "testing"

func TestRefusedIn(t *testing.T) {
	for line, want := range map[string]struct {
		minor uint32
		r     Refusal
	}{
		"block drbd7: Split-Brain detected but unresolved, dropping connection!":                 {7, SplitBrain},
		"block drbd1048575: Unrelated data, aborting!":                                           {1048575, Unrelated},
		"block drbd7: Split-Brain detected, 1 primaries, automatically solved. Sync from peer":   {},
		"block drbd0: The peer's disk size is too small!":                                        {0, PeerTooSmall},
		"block drbd0: The peer's disk size is too small!!":                                       {},
		"block drbdx: Unrelated data, aborting!":                                                 {},
		"block drbd4294967296: Unrelated data, aborting!":                                        {},
		"drbd drivebay-1: conn( WFReportParams -> NetworkFailure )":                              {},
		"user says: block drbd7: Split-Brain detected but unresolved, dropping connection! Sure": {},
		"": {},
	} {
		minor, r, ok := RefusedIn(line)
		if minor != want.minor || r != want.r || ok != (want.r != 0) {
			t.Errorf("%q: %d, %d, %v", line, minor, r, ok)
		}
		if ok && r.Line(minor) != line {
			t.Errorf("%q is written as %q", line, r.Line(minor))
		}
	}
}
