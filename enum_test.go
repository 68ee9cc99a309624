package drivebay

import (
	"encoding"
	"fmt"
	"testing"
)

type enum interface {
	fmt.Stringer
	encoding.TextMarshaler
}

func roundTrip[E ~uint8](t *testing.T, words []string, make func(E) enum, parse func(*E, []byte) error) {
	t.Helper()
	seen := map[string]bool{}
	for i, w := range words {
		e := E(i)
		if got := make(e).String(); got != w || seen[got] {
			t.Errorf("%T(%d) prints %q, want %q once", e, i, got, w)
		}
		seen[w] = true
		b, err := make(e).MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back E
		if err := parse(&back, b); err != nil || back != e {
			t.Errorf("%T: %q parses to %v, %v", e, b, back, err)
		}
	}
	var e E
	if err := parse(&e, []byte("no such word")); err == nil {
		t.Errorf("%T: nonsense parses", e)
	}
	if got := make(E(200)).String(); seen[got] {
		t.Errorf("%T(200) prints as the known word %q", e, got)
	}
}

func TestEnumsRoundTrip(t *testing.T) {
	roundTrip(t, healthNames.words, func(e Health) enum { return e }, func(e *Health, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, statusNames.words, func(e Status) enum { return e }, func(e *Status, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, typeNames.words, func(e Type) enum { return e }, func(e *Type, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, transportNames.words, func(e Transport) enum { return e }, func(e *Transport, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, protocolNames.words, func(e Protocol) enum { return e }, func(e *Protocol, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, contentNames.words, func(e ContentKind) enum { return e }, func(e *ContentKind, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, verdictNames.words, func(e Verdict) enum { return e }, func(e *Verdict, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, usageNames.words, func(e Usage) enum { return e }, func(e *Usage, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, selfTestNames.words, func(e SelfTestResult) enum { return e }, func(e *SelfTestResult, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, volumeModeNames.words, func(e VolumeMode) enum { return e }, func(e *VolumeMode, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, locationNames.words, func(e LocationKind) enum { return e }, func(e *LocationKind, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, operationalNames.words, func(e OperationalStatus) enum { return e }, func(e *OperationalStatus, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, severityNames.words, func(e Severity) enum { return e }, func(e *Severity, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, accessNames.words, func(e Access) enum { return e }, func(e *Access, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, retryNames.words, func(e RetryRule) enum { return e }, func(e *RetryRule, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, csiStatusNames.words, func(e CSIStatus) enum { return e }, func(e *CSIStatus, b []byte) error { return e.UnmarshalText(b) })
	roundTrip(t, volumeUsageNames.words, func(e VolumeUsage) enum { return e }, func(e *VolumeUsage, b []byte) error { return e.UnmarshalText(b) })
}

// The forgotten value of every enum must be the one that promises nothing.
func TestZeroIsNeverGood(t *testing.T) {
	var d Drive
	if d.Health == HealthGood || d.Status == StatusOnline || d.Content.Kind == ContentBlank || d.Usage == UsageInUse {
		t.Errorf("the zero drive looks fine: %v %v %v %v", d.Health, d.Status, d.Content.Kind, d.Usage)
	}
	if HealthUnknown.Rank() <= HealthGood.Rank() {
		t.Error("UNKNOWN ranks as well as GOOD")
	}
}

func TestWorse(t *testing.T) {
	order := []Health{HealthGood, HealthUnknown, HealthSuspect, HealthBad}
	for i, a := range order {
		for j, b := range order {
			if got, want := a.Worse(b), order[max(i, j)]; got != want {
				t.Errorf("worse of %v and %v is %v, want %v", a, b, got, want)
			}
		}
	}
	if got := WorstOf(nil); got != HealthGood {
		t.Errorf("no findings add up to %v", got)
	}
}
