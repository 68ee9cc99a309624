package page

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// inBay is a drive in use.
func inBay(id, bay string) drivebay.Drive {
	return drivebay.Drive{ID: id, Name: "sd" + id, Identity: drivebay.Identity{Serial: "S" + id, Size: 16e12}, Slot: drivebay.Slot{Enclosure: "e", Bay: bay, Locate: "led"},
		Status: drivebay.StatusOnline, Health: drivebay.HealthGood, Usage: drivebay.UsageInUse, Claim: &drivebay.Claim{By: drivebay.ClaimedByOperator}, LastSeen: at}
}

// stateOf makes the page of some drives in four bays.
func stateOf(drives ...drivebay.Drive) State {
	s := &drivebay.Snapshot{Seq: 1, At: at, Complete: true, Drives: drives, Machine: drivebay.Machine{Name: "m", Kind: "real"}}
	for _, name := range []string{"Slot 10", "Slot 9", "Slot 8", "Slot 11"} {
		b := drivebay.Bay{Slot: drivebay.Slot{Enclosure: "e", Bay: name}}
		for _, d := range drives {
			if d.Slot.Bay == name && d.Status == drivebay.StatusOnline {
				b.Drive = d.ID
			}
		}
		s.Bays = append(s.Bays, b)
	}
	return Of(Input{Input: overview.Input{Drives: s}, Now: at})
}

func (s State) drive(id string) Drive {
	return s.Drives[slices.IndexFunc(s.Drives, func(d Drive) bool { return d.ID == id })]
}

// Before the drives are listed the page says so, and shows no rack that could be taken for an empty one.
func TestNotListed(t *testing.T) {
	for name, in := range map[string]*drivebay.Snapshot{"nothing": nil, "an empty snapshot": {}} {
		s := Of(Input{Input: overview.Input{Drives: in, NotReady: []string{"the drives are being listed"}}})
		text, err := json.Marshal(s)
		if err != nil || s.Ready || len(s.Groups) > 0 || s.Overview.Verdict != overview.CannotTell || strings.Contains(string(text), `:null`) {
			t.Errorf("%s: %v %s", name, err, text)
		}
	}
}

// Bays are in the order of their names, an empty bay remembers its last drive, and a drive without a bay is shown too.
func TestGroups(t *testing.T) {
	gone, bare := inBay("2", "Slot 10"), inBay("3", "")
	gone.Status = drivebay.StatusOffline
	bare.Slot = drivebay.Slot{}
	s := stateOf(inBay("1", "Slot 9"), gone, bare)
	var names []string
	for _, b := range s.Groups[0].Bays {
		names = append(names, b.Name+":"+b.Drive+":"+b.Gone)
	}
	if is := strings.Join(names, " "); is != "Slot 8:: Slot 9:1: Slot 10::2 Slot 11::" {
		t.Errorf("%s", is)
	}
	if len(s.Groups) != 2 || s.Groups[1].Title != "in no bay" || len(s.Groups[1].Bays) != 1 || s.Groups[1].Bays[0].Drive != "3" {
		t.Errorf("%+v", s.Groups)
	}
}

// Each usage of a drive has its step and its actions. No state has an action that destroys data.
func TestReplacement(t *testing.T) {
	leaving := &drivebay.Leaving{Cause: "volume v moves", Progress: &drivebay.Progress{Done: 1, Total: 4}}
	next := inBay("2", "Slot 9")
	next.Succeeds = &drivebay.Succession{Of: "1"}
	taken, refused := next, next
	taken.Succeeds = &drivebay.Succession{Of: "1", Taken: at}
	refused.Succeeds = &drivebay.Succession{Of: "1", Against: "it is too small"}
	for _, c := range []struct {
		name    string
		edit    func(*drivebay.Drive)
		beside  []drivebay.Drive
		steps   string // the first letter of each state
		text    string // of the step that is reached
		actions string
	}{
		{"in use", func(d *drivebay.Drive) {}, nil, "", "", "release cordon locate"},
		{"not claimed", func(d *drivebay.Drive) { d.Claim = nil }, nil, "", "", "cordon locate"},
		{"system", func(d *drivebay.Drive) { d.System = true }, nil, "", "", "cordon locate"},
		{"releasing", func(d *drivebay.Drive) { d.Usage, d.Leaving = drivebay.UsageReleasing, leaving }, nil, "nnnnn", "volume v moves", "cancel locate"},
		{"released", func(d *drivebay.Drive) { d.Usage = drivebay.UsageReleased }, nil, "dnnnn", "approval", "approve cancel locate"},
		{"removing", func(d *drivebay.Drive) { d.Usage = drivebay.UsageRemoving }, nil, "ddnnn", "pull the drive anyway", "locate"},
		{"failed", func(d *drivebay.Drive) { d.Usage, d.Leaving = drivebay.UsageFailed, leaving }, nil, "fnnnn", "volume v moves", "retry cancel locate"},
		{"removed", func(d *drivebay.Drive) { d.Usage, d.Status = drivebay.UsageRemoved, drivebay.StatusOffline }, nil, "dddnn", "SAFE TO PULL: bay Slot 9", "locate"},
		{"removed, and back", func(d *drivebay.Drive) { d.Usage = drivebay.UsageRemoved }, nil, "dddnn", "nothing is written to it", "accept locate"},
		{"removed, back and mounted", func(d *drivebay.Drive) {
			d.Usage, d.Uses = drivebay.UsageRemoved, []drivebay.Use{{Kind: "mount", Device: "sdb1", What: "/mnt"}}
		}, nil, "dddnn", "in use (mount sdb1 /mnt)", "accept locate"},
		{"a new drive", func(d *drivebay.Drive) { d.Usage, d.Status = drivebay.UsageRemoved, drivebay.StatusOffline }, []drivebay.Drive{next}, "ddddn", "is being checked", "locate"},
		{"a wrong drive", func(d *drivebay.Drive) { d.Usage, d.Status = drivebay.UsageRemoved, drivebay.StatusOffline }, []drivebay.Drive{refused}, "ddddn", "too small", "locate"},
		{"replaced", func(d *drivebay.Drive) { d.Usage, d.Status = drivebay.UsageRemoved, drivebay.StatusOffline }, []drivebay.Drive{taken}, "ddddd", "is the successor", "locate"},
	} {
		d := inBay("1", "Slot 9")
		c.edit(&d)
		is := stateOf(append([]drivebay.Drive{d}, c.beside...)...).drive("1")
		steps, text, actions := "", "", []string{}
		for _, s := range is.Steps {
			if steps += s.State[:1]; s.Text != "" {
				text += s.Text
			}
		}
		for _, a := range is.Actions {
			actions = append(actions, a.Do)
			if a.Label == "" || a.Effect == "" {
				t.Errorf("%s: %+v says nothing", c.name, a)
			}
		}
		if steps != c.steps || !strings.Contains(text, c.text) || strings.Join(actions, " ") != c.actions {
			t.Errorf("%s: steps %s, %q, actions %v", c.name, steps, text, actions)
		}
		if c.name == "releasing" && (is.Percent == nil || *is.Percent != 25 || *is.Steps[0].Percent != 25) {
			t.Errorf("%s: %v", c.name, is.Percent)
		}
	}
}

// A volume names its users: pods, else paths; the staging path only if there is no other.
func TestUsers(t *testing.T) {
	v := &drivebay.VolumeView{Volume: drivebay.Volume{ID: "v", Publications: []drivebay.Publication{{Path: "/staging", Staging: true}}}}
	if is := volumeOf(v).Users; !slices.Equal(is, []string{"/staging"}) {
		t.Errorf("%q", is)
	}
	v.Publications = append(v.Publications, drivebay.Publication{Path: "/p", Pod: drivebay.Pod{Namespace: "shop", Name: "db-0"}}, drivebay.Publication{Path: "/mnt"})
	if is := volumeOf(v).Users; !slices.Equal(is, []string{"pod shop/db-0", "/mnt"}) {
		t.Errorf("%q", is)
	}
}

// The newest events are first, and no more than fit.
func TestEvents(t *testing.T) {
	var all []drivebay.Event
	for i := range uint64(60) {
		all = append(all, drivebay.Event{Seq: i + 1, From: "GOOD", To: "BAD", Cause: "it died"})
	}
	s := Of(Input{Events: all})
	if len(s.Events) != MostEvents || s.Events[0].Seq != 60 || s.Events[0].Text != "GOOD → BAD: it died" {
		t.Errorf("%d, %+v", len(s.Events), s.Events[0])
	}
}
