package events

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxNote is the length of a note in bytes, which Kubernetes limits to 1 KiB.
const maxNote = 1024

// kept is how long an Event is repeated by its count: kube-apiserver deletes it an hour after its last change (--event-ttl).
const kept = 50 * time.Minute

// target is an object that an event is shown on, as the machine knows it.
type target struct {
	about  About
	drive  string // id
	volume string // id
	name   string // of the volume
	pod    drivebay.Pod
}

// targets returns the objects of an event. v is its volume; nil: it is gone.
func targets(e drivebay.Event, v *drivebay.VolumeView) (out []target) {
	on := rowOf(e).On
	if on&Drive != 0 {
		out = append(out, target{about: Drive, drive: e.Drive})
	}
	if on&Node != 0 {
		out = append(out, target{about: Node})
	}
	if on&Volume != 0 {
		out = append(out, target{about: Volume, volume: e.Volume})
	}
	if v == nil {
		return out
	}
	if on&Claim != 0 && v.Name != "" {
		out = append(out, target{about: Claim, volume: v.ID, name: v.Name})
	}
	if on&Pods == 0 {
		return out
	}
	for _, p := range v.Publications {
		if t := (target{about: Pods, pod: p.Pod}); p.Pod.Name != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// noteOf returns the text of an event about an object.
func noteOf(e drivebay.Event, on About) string {
	text := e.Cause
	if e.From != "" || e.To != "" {
		text = fmt.Sprintf("%s -> %s: %s", cmp.Or(e.From, "-"), cmp.Or(e.To, "-"), text)
	}
	switch {
	case on == Node && e.Drive != "":
		text = "drive " + e.Drive + ": " + text
	case on&(Claim|Pods|Node) != 0 && e.Volume != "":
		text = "volume " + e.Volume + ": " + text
	}
	return text
}

// line is the events of one reason about one object.
type line struct {
	target target
	reason drivebay.EventKind
	pace   pace.Pace
	used   time.Time

	written written   // the Event that was written last
	waiting *change   // nothing waits: nil
	resume  time.Time // what waits is not written before: its object did not exist
}

// written is an Event as it was written.
type written struct {
	name, note string
	count      int32
	at         time.Time
}

// change is what has happened since the last write: equal events, and the number of others before them.
type change struct {
	note        string
	warning     bool
	first, last time.Time
	count       int32
	others      int32
}

// add adds an event to what waits.
func (l *line) add(e drivebay.Event) {
	note, c := noteOf(e, l.target.about), l.waiting
	if c != nil && c.note == note {
		c.count, c.last = c.count+1, e.At
		return
	}
	l.waiting = &change{note: note, warning: rowOf(e).Warning, first: e.At, last: e.At, count: 1}
	if c != nil {
		l.waiting.others = c.others + c.count
	}
}

// text returns the note with the number of events that it stands for.
func (c *change) text() string {
	if c.others == 0 {
		return drivebay.PlainText(c.note, maxNote)
	}
	more := fmt.Sprintf(" (and %d events of this kind shortly before)", c.others)
	return drivebay.PlainText(c.note, maxNote-len(more)) + more
}

// repeats reports whether what waits repeats the Event that was written last.
func (l *line) repeats(now time.Time) bool {
	return l.waiting.others == 0 && l.written.name != "" && l.written.note == l.waiting.text() && now.Sub(l.written.at) < kept
}

// event returns the Event of what waits. Its name follows from the object, the reason and the first event: written a second
// time after a failure, it is the same.
func (l *line) event(on client.Reference, node string) client.Event {
	c := l.waiting
	out := client.Event{
		EventTime: metav1.MicroTime{Time: c.first}, ReportingController: Controller, ReportingInstance: drivebay.Clip(node, maxInstance),
		Action: action, Reason: string(l.reason), Regarding: on, Note: c.text(), Type: "Normal",
	}
	if c.warning {
		out.Type = "Warning"
	}
	out.Name = nameOf(on, l.reason, c)
	if c.count > 1 {
		out.Series = &client.EventSeries{Count: c.count, LastObservedTime: metav1.MicroTime{Time: c.last}}
	}
	return out
}

const (
	// Controller is the reporting controller of the Events of a node.
	Controller = "drivebay.io/node"
	action     = "Report"
	// maxInstance is the length of a reporting instance (Kubernetes, pkg/apis/core/validation/events.go).
	maxInstance = 128
	// maxObject leaves room for the rest of the name of an Event.
	maxObject = 200
)

func nameOf(on client.Reference, reason drivebay.EventKind, c *change) string {
	object := on.Name
	if len(object) > maxObject {
		object = client.Hash(object)
	}
	return object + "." + client.Hash(fmt.Sprint(on.Kind, on.UID, reason, c.first.UnixNano(), c.note))
}
