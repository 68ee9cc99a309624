package drbd

import (
	"strings"
	"testing"
)

func TestRefusedIn(t *testing.T) {
	for line, want := range map[string]Refused{
		"block drbd7: Split-Brain detected but unresolved, dropping connection!":                 {Why: SplitBrain, Minor: 7},
		"block drbd1048575: Unrelated data, aborting!":                                           {Why: Unrelated, Minor: 1048575},
		"block drbd7: Split-Brain detected, 1 primaries, automatically solved. Sync from peer":   {},
		"block drbd0: The peer's disk size is too small!":                                        {Why: PeerTooSmall},
		"block drbd0: The peer's disk size is too small!!":                                       {},
		"block drbdx: Unrelated data, aborting!":                                                 {},
		"block drbd4294967296: Unrelated data, aborting!":                                        {},
		"drbd drivebay-1: conn( WFReportParams -> NetworkFailure ) ":                             {Why: ByPeer, Resource: "drivebay-1"},
		"drbd drivebay-1: conn( WFReportParams -> TearDown ) ":                                   {Why: ByPeer, Resource: "drivebay-1"},
		"drbd drivebay-1: conn( WFReportParams -> Disconnecting ) ":                              {},
		"drbd drivebay-1: conn( WFReportParams -> Connected ) ":                                  {},
		"drbd drivebay-1: conn( WFConnection -> NetworkFailure ) ":                               {},
		"drbd drivebay-1: conn( WFReportParams -> NetworkFailure":                                {},
		"user says: block drbd7: Split-Brain detected but unresolved, dropping connection! Sure": {},
		"": {},
	} {
		got, ok := RefusedIn(line)
		if ok != (want.Why != 0) || ok && got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
		if ok && !strings.Contains(line, "TearDown") && got.Why.Line(got.Resource, got.Minor) != line {
			t.Errorf("%q is written as %q", line, got.Why.Line(got.Resource, got.Minor))
		}
	}
}

func TestMetIn(t *testing.T) {
	for line, want := range map[string]bool{
		"block drbd7: peer( Unknown -> Secondary ) conn( WFReportParams -> WFBitMapS ) pdsk( DUnknown -> Inconsistent ) ": true,
		"block drbd7: peer( Unknown -> Primary ) conn( WFReportParams -> WFBitMapT ) pdsk( DUnknown -> UpToDate ) ":       true,
		"block drbd7: peer( Unknown -> Secondary ) conn( WFReportParams -> Connected ) pdsk( DUnknown -> UpToDate ) ":     true,
		"drbd drivebay-1: conn( WFReportParams -> Disconnecting ) ":                                                       false,
		"block drbd7: conn( WFReportParams -> Disconnecting ) ":                                                           false,
		"block drbd7: conn( WFBitMapS -> SyncSource ) pdsk( Consistent -> Inconsistent ) ":                                false,
		"block drbd7: conn( WFReportParams -> Connected":                                                                  false,
		"says: block drbd7: conn( WFReportParams -> Connected ) ":                                                         false,
	} {
		if minor, ok := MetIn(line); ok != want || ok && minor != 7 {
			t.Errorf("%q: %d, %v", line, minor, ok)
		}
	}
}
