package events

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/kube/client"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return start.Add(d) }

// TestTargets: an event is shown on each object once, and on the claim and the pods only if they are known.
func TestTargets(t *testing.T) {
	web := drivebay.Pod{Namespace: "shop", Name: "web-0", UID: "1"}
	v := &drivebay.VolumeView{Volume: drivebay.Volume{ID: "v", Name: "pvc-1", Publications: []drivebay.Publication{{Path: "/staging", Staging: true}, {Path: "/a", Pod: web}, {Path: "/b", Pod: web}}}}
	claim, pod, node, volume, drive := target{about: Claim, volume: "v", name: "pvc-1"}, target{about: Pods, pod: web}, target{about: Node}, target{about: Volume, volume: "v"}, target{about: Drive, drive: "d"}
	for _, c := range []struct {
		e    drivebay.Event
		v    *drivebay.VolumeView
		want []target
	}{
		{drivebay.Event{Kind: drivebay.EventVanished, Drive: "d"}, nil, []target{drive, node}},
		{drivebay.Event{Kind: drivebay.EventRenamed, Drive: "d"}, nil, nil},
		{drivebay.Event{Kind: drivebay.EventStoreFailed}, nil, []target{node}},
		{drivebay.Event{Kind: drivebay.EventVolumeAbnormal, Volume: "v"}, v, []target{volume, claim, pod}},
		{drivebay.Event{Kind: drivebay.EventVolumeAbnormal, Volume: "v"}, nil, []target{volume}},
		{drivebay.Event{Kind: drivebay.EventVolumeAbnormal, Volume: "v"}, &drivebay.VolumeView{Volume: drivebay.Volume{ID: "v"}}, []target{volume}},
		{drivebay.Event{Kind: drivebay.EventVolumeLeft, Volume: "v"}, v, []target{node}},
		{drivebay.Event{Kind: drivebay.EventClaim, Drive: "d", To: "operator"}, nil, []target{drive}},
		{drivebay.Event{Kind: drivebay.EventClaim, Drive: "d", To: "configuration"}, nil, nil},
		{drivebay.Event{Kind: "FromALaterVersion", Drive: "d"}, nil, nil},
	} {
		got := targets(c.e, c.v)
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v, not %+v", c.e.Kind, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %+v, not %+v", c.e.Kind, got[i], c.want[i])
			}
		}
	}
}

// TestLine: equal events become one with a count, others are counted in the note, and an Event that is written a second time has
// the same name.
func TestLine(t *testing.T) {
	on := client.Reference{Kind: "Drive", Name: "d.node", UID: "u"}
	l := &line{target: target{about: Drive, drive: "d"}, reason: drivebay.EventHealth}
	health := func(at time.Duration, to string) drivebay.Event {
		return drivebay.Event{Kind: drivebay.EventHealth, Drive: "d", At: after(at), From: "GOOD", To: to, Cause: "sectors"}
	}
	l.add(health(0, "BAD"))
	first := l.event(on, "node")
	if first.Type != "Warning" || first.Note != "GOOD -> BAD: sectors" || first.Series != nil || !first.EventTime.Time.Equal(start) || first.Reason != "HealthChanged" {
		t.Errorf("%+v", first)
	}
	l.add(health(time.Second, "BAD"))
	again := l.event(on, "node")
	if again.Name != first.Name || again.Series == nil || again.Series.Count != 2 || !again.Series.LastObservedTime.Time.Equal(after(time.Second)) {
		t.Errorf("the second one makes it %+v", again)
	}
	l.add(health(2*time.Second, "GOOD"))
	if e := l.event(on, "node"); e.Type != "Normal" || e.Series != nil || e.Name == first.Name || !strings.HasSuffix(e.Note, "(and 2 events of this kind shortly before)") {
		t.Errorf("another one after them makes %+v", e)
	}

	l.written, l.waiting = written{name: first.Name, note: first.Note, count: 2, at: start}, nil
	l.add(health(time.Minute, "BAD"))
	if !l.repeats(after(time.Minute)) {
		t.Error("an equal event after the write does not repeat the Event")
	}
	if l.repeats(after(kept)) {
		t.Error("an Event is repeated that the API server has deleted")
	}
	l.waiting = nil
	l.add(health(2*time.Minute, "SUSPECT"))
	if l.repeats(after(2 * time.Minute)) {
		t.Error("another event repeats the Event")
	}
}

// TestLongTexts: what Kubernetes refuses for its length is cut.
func TestLongTexts(t *testing.T) {
	l := &line{target: target{about: Node}, reason: drivebay.EventVanished}
	for i := range 3 {
		l.add(drivebay.Event{Kind: drivebay.EventVanished, Drive: "d", At: after(time.Duration(i)), Cause: strings.Repeat("x", 3000) + string(rune('a'+i))})
	}
	e := l.event(client.Reference{Kind: "Node", Name: strings.Repeat("n", 253)}, strings.Repeat("n", 253))
	if len(e.Note) > 1024 || len(e.Name) > 253 || len(e.ReportingInstance) > 128 || !strings.HasSuffix(e.Note, "before)") {
		t.Errorf("note %d, name %d, instance %d bytes: %s", len(e.Note), len(e.Name), len(e.ReportingInstance), e.Note[900:])
	}
}
