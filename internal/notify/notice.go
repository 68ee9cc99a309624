package notify

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// Kind is what a notice is about; a configuration selects notices by it.
type Kind string

const (
	KindBad       Kind = "bad"       // the health of a drive turned BAD
	KindSuspect   Kind = "suspect"   // the health of a drive turned SUSPECT
	KindAbnormal  Kind = "abnormal"  // the condition of a volume has a new reason, or one got worse
	KindRecovered Kind = "recovered" // a drive is GOOD again, a volume has no findings, the store can be written
	KindHands     Kind = "hands"     // an operator has to do something at the machine, or to decide
	KindTrial     Kind = "trial"     // sent on request (`drivebay notify test`)
)

// Kinds are the kinds that a configuration can select.
var Kinds = []Kind{KindBad, KindSuspect, KindAbnormal, KindRecovered, KindHands}

// Notice is the body that a sink gets. docs/notices.md documents it; fields are added, never changed.
type Notice struct {
	Version int                `json:"version"` // 1
	ID      string             `json:"id"`      // the machine and the number of the event: equal when a notice is sent again
	Kind    Kind               `json:"kind"`
	At      time.Time          `json:"at"` // when the event happened
	Machine string             `json:"machine"`
	Server  string             `json:"server,omitempty"` // "server ACME R740, serial ABC123"
	Summary string             `json:"summary"`          // one line for people
	Next    string             `json:"next,omitempty"`
	Event   drivebay.EventKind `json:"event,omitempty"`
	From    string             `json:"from,omitempty"`
	To      string             `json:"to,omitempty"`
	Cause   string             `json:"cause,omitempty"`
	Drive   *Drive             `json:"drive,omitempty"`
	Volume  *Volume            `json:"volume,omitempty"`

	seq   uint64    // of the event; 0: a trial
	since time.Time // when it was made: its age is not that of the event, whose time may be that of a wrong clock
}

// Drive identifies the drive of a notice.
type Drive struct {
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Model  string `json:"model,omitempty"`
	Serial string `json:"serial,omitempty"`
	Bay    string `json:"bay,omitempty"`
	Health string `json:"health,omitempty"` // when the notice was made
}

// Volume identifies the volume of a notice.
type Volume struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// hands are the events after which an operator has to act. Those of a change of usage are in kindOf.
var hands = map[drivebay.EventKind]bool{
	drivebay.EventNotReplaced: true, drivebay.EventWrongPulled: true, drivebay.EventQuarantined: true, drivebay.EventNotReleased: true,
	drivebay.EventIdentity: true, drivebay.EventVolumeDataLoss: true, drivebay.EventVolumeNotHealed: true,
	drivebay.EventStoreFailed: true, drivebay.EventStoreOlder: true,
}

// waiting are the usages of a drive that wait for an operator: to approve the removal, to pull the
// drive, or to decide about a failed step.
var waiting = map[string]bool{drivebay.UsageReleased.String(): true, drivebay.UsageRemoved.String(): true, drivebay.UsageFailed.String(): true}

// faults holds the drives whose last known health is BAD or SUSPECT. UNKNOWN says nothing about a fault:
// a drive that is BAD, then UNKNOWN, then GOOD has recovered.
type faults map[string]bool

// recovers reports whether an event says that a drive is GOOD after a fault, and takes the event into account.
func (f faults) recovers(e drivebay.Event) bool {
	bad, suspect, good := drivebay.HealthBad.String(), drivebay.HealthSuspect.String(), drivebay.HealthGood.String()
	switch {
	case e.Kind == drivebay.EventForgotten:
		delete(f, e.Drive)
	case e.Kind != drivebay.EventHealth:
	case e.To == bad || e.To == suspect:
		f[e.Drive] = true
	case e.To == good:
		was := f[e.Drive] || e.From == bad || e.From == suspect
		delete(f, e.Drive)
		return was
	}
	return false
}

// kindOf returns the kind of the notice that an event causes, or "" if it causes none.
func kindOf(e drivebay.Event, faulty faults) Kind {
	recovers := faulty.recovers(e)
	switch {
	case e.Kind == drivebay.EventHealth && e.To == drivebay.HealthBad.String():
		return KindBad
	case e.Kind == drivebay.EventHealth && e.To == drivebay.HealthSuspect.String():
		return KindSuspect
	case recovers, e.Kind == drivebay.EventVolumeRecovered, e.Kind == drivebay.EventStoreRecovered:
		return KindRecovered
	case e.Kind == drivebay.EventVolumeAbnormal:
		return KindAbnormal
	case hands[e.Kind], e.Kind == drivebay.EventUsage && e.From != e.To && waiting[e.To]:
		return KindHands
	}
	return ""
}

// noticeOf returns the notice of an event.
func noticeOf(e drivebay.Event, kind Kind, s *drivebay.Snapshot, volumeName func(id string) string) *Notice {
	n := &Notice{Version: 1, Kind: kind, At: e.At, Machine: s.Machine.Name, Server: s.Machine.Hardware.Server(), Event: e.Kind, From: e.From, To: e.To, Cause: e.Cause, seq: e.Seq}
	n.ID = fmt.Sprintf("%s/%d", n.Machine, e.Seq)
	subject := ""
	if e.Drive != "" {
		n.Drive, n.Next = driveOf(e.Drive, s), "drivebay explain "+e.Drive
		subject = "drive " + n.Drive.text()
	}
	if e.Volume != "" {
		n.Volume, n.Next = &Volume{ID: e.Volume, Name: volumeName(e.Volume)}, "drivebay explain "+e.Volume
		subject = "volume " + n.Volume.text()
	}
	if subject == "" {
		n.Next = "drivebay status"
	}
	n.Summary = strings.Join(present(n.Machine, subject, headline[kind], e.Cause), ": ")
	return n
}

// headline says what a notice of each kind is about.
var headline = map[Kind]string{KindBad: "BAD", KindSuspect: "SUSPECT", KindAbnormal: "abnormal", KindRecovered: "recovered", KindHands: "waits for an operator"}

func present(parts ...string) (out []string) {
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

func driveOf(id string, s *drivebay.Snapshot) *Drive {
	d, ok := s.Find(id)
	if !ok {
		return &Drive{ID: id}
	}
	return &Drive{ID: d.ID, Name: d.Name, Model: d.Model, Serial: d.Serial, Bay: d.Slot.Bay, Health: d.Health.String()}
}

func (d *Drive) text() string { return cmp.Or(d.Name, d.ID) }

func (v *Volume) text() string { return cmp.Or(v.Name, v.ID) }

// trial returns the notice that an operator sends to try the sinks.
func trial(machine string, at time.Time) *Notice {
	return &Notice{Version: 1, ID: fmt.Sprintf("%s/trial-%d", machine, at.UnixNano()), Kind: KindTrial, At: at, Machine: machine,
		Summary: machine + ": this is a trial notice of drivebay; nothing is wrong"}
}
