// Package page makes what the page shows from the state of the daemon: the same words as `drivebay status`
// and `drivebay explain`. Its functions are pure.
package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
)

// Input is what a page is made from.
type Input struct {
	overview.Input
	Events  []drivebay.Event // oldest first
	Started time.Time        // of the daemon
	Version string
	Now     time.Time
}

// State is what the page shows.
type State struct {
	Started   time.Time         `json:"started"` // another one: the daemon was restarted
	Version   string            `json:"version"`
	Now       time.Time         `json:"now"`
	Ready     bool              `json:"ready"` // the drives are listed
	Simulated bool              `json:"simulated,omitempty"`
	Server    string            `json:"server,omitempty"`
	Overview  overview.Overview `json:"overview"`
	Problems  []string          `json:"problems,omitempty"`
	Groups    []Group           `json:"groups"` // enclosures and their bays, then the drives without a bay
	Drives    []Drive           `json:"drives"`
	Volumes   []Volume          `json:"volumes"`
	Events    []Event           `json:"events"` // newest first
}

// Group is an enclosure, or the drives that are in no bay.
type Group struct {
	Title string `json:"title"`
	Bays  []Bay  `json:"bays"`
}

// Bay is a place for a drive.
type Bay struct {
	Name  string `json:"name,omitempty"`
	Drive string `json:"drive,omitempty"` // id; "": it is empty
	Gone  string `json:"gone,omitempty"`  // id of the drive that was in it last
	Lit   bool   `json:"lit,omitempty"`
	Fault bool   `json:"fault,omitempty"`
}

// Drive is a drive as the page shows it.
type Drive struct {
	ID          string             `json:"id"`
	Name        string             `json:"name"`
	Bay         string             `json:"bay,omitempty"`
	Serial      string             `json:"serial"`
	Model       string             `json:"model"`
	Kind        string             `json:"kind"`
	Size        string             `json:"size"`
	Health      string             `json:"health"`
	Status      string             `json:"status"`
	Usage       string             `json:"usage"`
	Cordoned    bool               `json:"cordoned,omitempty"`
	Claimed     bool               `json:"claimed,omitempty"`
	System      bool               `json:"system,omitempty"`
	Temperature *int               `json:"temperature,omitempty"`
	Wear        *int               `json:"wear,omitempty"`
	Hours       *uint64            `json:"hours,omitempty"`
	Does        string             `json:"does"`
	Next        string             `json:"next,omitempty"`
	Where       string             `json:"where"`
	Light       string             `json:"light,omitempty"`
	Findings    []drivebay.Finding `json:"findings,omitempty"`
	Uses        []string           `json:"uses,omitempty"`
	Volumes     []string           `json:"volumes,omitempty"` // ids
	Percent     *int               `json:"percent,omitempty"` // of the work on it
	Succeeds    string             `json:"succeeds,omitempty"`
	Steps       []Step             `json:"steps,omitempty"`
	Actions     []Action           `json:"actions,omitempty"`
}

// Volume is a volume as the page shows it.
type Volume struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Size    string   `json:"size"`
	Kind    string   `json:"kind"`
	State   string   `json:"state"`
	Health  string   `json:"health"`
	Drives  []string `json:"drives,omitempty"`
	Users   []string `json:"users,omitempty"`
	Work    string   `json:"work,omitempty"`
	Percent *int     `json:"percent,omitempty"`
	Wrong   []string `json:"wrong,omitempty"`
}

// Event is a line of the log.
type Event struct {
	Seq   uint64    `json:"seq"`
	At    time.Time `json:"at"`
	Kind  string    `json:"kind"`
	Text  string    `json:"text"`
	Drive string    `json:"drive,omitempty"`
}

// MostEvents is how many events the page shows.
const MostEvents = 40

// Of makes the page.
func Of(in Input) State {
	s := State{Started: in.Started, Version: in.Version, Now: in.Now, Overview: overview.Of(in.Input), Groups: []Group{}, Drives: []Drive{}, Volumes: []Volume{}, Events: []Event{}}
	for i := range slices.Backward(in.Events) {
		e := &in.Events[i]
		if len(s.Events) == MostEvents {
			break
		}
		s.Events = append(s.Events, Event{Seq: e.Seq, At: e.At, Kind: string(e.Kind), Text: eventText(e), Drive: e.Drive})
	}
	snap := in.Drives
	if snap == nil || snap.Seq == 0 {
		return s
	}
	s.Ready, s.Simulated, s.Problems, s.Server = true, snap.Machine.Kind == "simulated", snap.Problems, snap.Machine.Hardware.Server()
	on := map[string][]string{}
	if in.Volumes != nil {
		for _, v := range in.Volumes.Volumes {
			s.Volumes = append(s.Volumes, volumeOf(v))
			for _, id := range v.Location.Drives {
				on[id] = append(on[id], v.ID)
			}
		}
		slices.SortStableFunc(s.Volumes, func(a, b Volume) int { return cmp.Compare(a.Name, b.Name) })
	}
	for i := range snap.Drives {
		d := driveOf(snap, &snap.Drives[i])
		d.Volumes = on[d.ID]
		s.Drives = append(s.Drives, d)
	}
	s.Groups = groupsOf(snap)
	return s
}

func eventText(e *drivebay.Event) string {
	if e.From != "" && e.To != "" {
		return e.From + " → " + e.To + ": " + e.Cause
	}
	return e.Cause
}

// groupsOf returns the enclosures in the order of the snapshot, bays of PCI Express as one, and the drives
// that are in no bay.
func groupsOf(s *drivebay.Snapshot) (out []Group) {
	index := map[string]int{}
	at := map[drivebay.Slot]bool{}
	for i := range s.Bays {
		b := &s.Bays[i]
		n, known := index[b.Enclosure]
		if !known {
			n = len(out)
			index[b.Enclosure] = n
			out = append(out, Group{Title: title(b.Enclosure)})
		}
		at[drivebay.Slot{Enclosure: b.Enclosure, Bay: b.Bay}] = true
		out[n].Bays = append(out[n].Bays, Bay{Name: b.Bay, Drive: b.Drive, Gone: goneFrom(s, b), Lit: b.Lit, Fault: b.FaultLit})
	}
	for n := range out {
		slices.SortStableFunc(out[n].Bays, func(a, b Bay) int {
			return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name)) // "9" before "10"
		})
	}
	var others []Bay
	for i := range s.Drives {
		if d := &s.Drives[i]; !at[drivebay.Slot{Enclosure: d.Slot.Enclosure, Bay: d.Slot.Bay}] {
			others = append(others, Bay{Name: d.Slot.Bay, Drive: d.ID})
		}
	}
	if len(others) > 0 {
		out = append(out, Group{Title: "in no bay", Bays: others})
	}
	return out
}

func title(enclosure string) string {
	if enclosure == "" {
		return "PCI Express slots"
	}
	return "enclosure " + enclosure
}

// goneFrom returns the drive that was in an empty bay last and has no successor.
func goneFrom(s *drivebay.Snapshot, b *drivebay.Bay) string {
	if b.Drive != "" {
		return ""
	}
	var last *drivebay.Drive
	for i := range s.Drives {
		d := &s.Drives[i]
		if d.Slot.Bay == b.Bay && d.Slot.Enclosure == b.Enclosure && d.Status == drivebay.StatusOffline && s.Successor(d) == nil && (last == nil || d.LastSeen.After(last.LastSeen)) {
			last = d
		}
	}
	if last == nil {
		return ""
	}
	return last.ID
}

func driveOf(s *drivebay.Snapshot, d *drivebay.Drive) Drive {
	step := overview.OfDrive(d)
	out := Drive{
		ID: d.ID, Name: d.Name, Bay: d.Slot.Bay, Serial: d.Serial, Model: modelOf(d), Size: render.Bytes(d.Size),
		Kind: d.Type.String(), Health: d.Health.String(), Status: d.Status.String(), Usage: d.Usage.String(),
		Cordoned: d.Cordoned, Claimed: d.Claim != nil, System: d.System, Temperature: d.Temperature, Hours: d.PowerOnHours,
		Does: step.Does, Next: step.Next, Where: s.Where(d), Findings: d.Findings,
	}
	if d.Slot.Bay != "" {
		out.Light = s.Light(d)
	}
	if d.Wear != nil {
		out.Wear = &d.Wear.PercentUsed
	}
	for _, u := range d.Uses {
		text := cmp.Or(u.What, u.Kind)
		if u.Kind != text {
			text = u.Kind + " " + text
		}
		if !slices.Contains(out.Uses, text) && u.Kind != "partition" {
			out.Uses = append(out.Uses, text)
		}
	}
	if d.Leaving != nil {
		out.Percent = percent(d.Leaving.Progress)
	} else if d.SelfTest != nil {
		out.Percent = d.SelfTest.Done
	}
	if d.Succeeds != nil {
		out.Succeeds = d.Succeeds.Of
	}
	out.Steps, out.Actions = stepsOf(s, d), actionsOf(s, d)
	return out
}

func modelOf(d *drivebay.Drive) string { return strings.TrimSpace(d.Vendor + " " + d.Model) }

func percent(p *drivebay.Progress) *int {
	if p == nil || p.Total == 0 {
		return nil
	}
	n := p.Percent()
	return &n
}

func volumeOf(v *drivebay.VolumeView) Volume {
	out := Volume{
		ID: v.ID, Name: cmp.Or(v.Name, v.ID), Size: render.Binary(v.Size), Kind: fmt.Sprint(v.Location.Kind), State: v.OperationalStatus.String(), Health: v.Health.String(),
		Drives: v.Location.Drives, Work: v.Work, Percent: percent(v.Progress),
	}
	for _, f := range v.Condition {
		out.Wrong = append(out.Wrong, f.Reason+": "+f.Message)
	}
	for _, p := range v.Publications {
		if p.Staging && len(v.Publications) > 1 {
			continue // the other paths are those of its users
		}
		user := p.Path
		if p.Pod.Name != "" {
			user = "pod " + p.Pod.Namespace + "/" + p.Pod.Name
		}
		if !slices.Contains(out.Users, user) {
			out.Users = append(out.Users, user)
		}
	}
	return out
}
