package overview

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/condition"
	"github.com/drivebay/drivebay/internal/api"
)

// sound is a drive in use without a fault.
func sound(id string) drivebay.Drive {
	return drivebay.Drive{ID: id, Name: "sd" + id, Slot: drivebay.Slot{Bay: "Slot " + id}, Status: drivebay.StatusOnline, Health: drivebay.HealthGood, Usage: drivebay.UsageInUse,
		Identity: drivebay.Identity{Size: 1}, Claim: &drivebay.Claim{By: drivebay.ClaimedByOperator}, Content: drivebay.Content{Kind: drivebay.ContentOurs}}
}

func bad(d *drivebay.Drive) {
	d.Health, d.Findings = drivebay.HealthBad, []drivebay.Finding{{Severity: drivebay.HealthBad, Text: "it clicks"}}
}

// volumeOn is a volume on drives, judged by the real rules.
func volumeOn(name string, drives ...drivebay.Drive) *drivebay.VolumeView {
	f := drivebay.Facts{Complete: true, Drives: []drivebay.Drive{}, Volume: drivebay.Volume{ID: "id-" + name, Name: name, CSIStatus: drivebay.CSICreated, Usage: drivebay.VolumeInUse,
		Location: drivebay.Location{Kind: drivebay.LocationPartition}}}
	if len(drives) > 1 {
		whole := 100.0
		f.Volume.Location.Kind, f.Volume.Location.VG, f.Volume.Location.LV, f.LV = drivebay.LocationMirror, "vg", "lv", &drivebay.LVFacts{SyncPercent: &whole}
	}
	for _, d := range drives {
		f.Volume.Location.Drives = append(f.Volume.Location.Drives, d.ID)
		f.Drives = append(f.Drives, d)
	}
	f.Volume.Health, f.Volume.OperationalStatus = condition.HealthOf(f), condition.OperationalStatusOf(f)
	return &drivebay.VolumeView{Volume: f.Volume, Condition: condition.Of(f)}
}

// verdictCases are states of a machine with a volume on drive 1 and a mirror on drives 3 and 4.
var verdictCases = []struct {
	name string
	make func(in *Input)
	want Verdict
	wrong, doing,
	waits []string // title and state of each item
	next string
}{
	{"nothing", func(in *Input) {}, Fine, nil, nil, nil, calm},
	{"no DRBD", func(in *Input) { in.Replication = "replication: no drbdmeta" }, AtRisk, []string{"machine NO REPLICATION"}, nil, nil, "`drivebay replication status`"},
	{"suspect", func(in *Input) { in.Drives.Drives[0].Health = drivebay.HealthSuspect }, Degraded,
		[]string{"drive sd1, bay Slot 1 SUSPECT"}, nil, []string{"drive sd1, bay Slot 1 SUSPECT"}, "`drivebay selftest 1 long`"},
	{"bad and empty", func(in *Input) { bad(&in.Drives.Drives[1]) }, Degraded,
		[]string{"drive sd2, bay Slot 2 BAD"}, nil, []string{"drive sd2, bay Slot 2 BAD"}, "`drivebay replace 2`"},
	{"bad with a volume", func(in *Input) { bad(&in.Drives.Drives[0]) }, AtRisk,
		[]string{"drive sd1, bay Slot 1 BAD"}, nil, []string{"drive sd1, bay Slot 1 BAD"}, "`drivebay replace 1`"},
	{"bad below a mirror", func(in *Input) { bad(&in.Drives.Drives[2]) }, Degraded,
		[]string{"drive sd3, bay Slot 3 BAD"}, nil, []string{"drive sd3, bay Slot 3 BAD"}, "`drivebay replace 3`"},
	{"bad, and no volumes are known", func(in *Input) { bad(&in.Drives.Drives[1]); in.Volumes = nil }, AtRisk,
		[]string{"drive sd2, bay Slot 2 BAD"}, nil, []string{"drive sd2, bay Slot 2 BAD"}, ""},
	{"bad with data of others", func(in *Input) {
		bad(&in.Drives.Drives[1])
		in.Drives.Drives[1].Content.Kind = drivebay.ContentForeign
	}, AtRisk, []string{"drive sd2, bay Slot 2 BAD"}, nil, []string{"drive sd2, bay Slot 2 BAD"}, ""},
	{"gone with a volume", func(in *Input) { in.Drives.Drives[0].Status = drivebay.StatusOffline }, AtRisk,
		[]string{"drive sd1, bay Slot 1 OFFLINE"}, nil, []string{"drive sd1, bay Slot 1 OFFLINE"}, "put it back into its bay"},
	{"half of a mirror is gone", func(in *Input) { in.Drives.Drives[3].Status = drivebay.StatusOffline }, Degraded,
		[]string{"drive sd4, bay Slot 4 OFFLINE"}, nil, []string{"drive sd4, bay Slot 4 OFFLINE"}, "put it back into its bay"},
	{"a USB stick was pulled", func(in *Input) {
		d := &in.Drives.Drives[1]
		d.Status, d.Removable, d.Claim = drivebay.StatusOffline, true, nil
	}, Fine, nil, nil, nil, calm},
	{"unknown", func(in *Input) { in.Drives.Drives[1].Health = drivebay.HealthUnknown }, CannotTell,
		[]string{"drive sd2, bay Slot 2 UNKNOWN"}, nil, []string{"drive sd2, bay Slot 2 UNKNOWN"}, "`drivebay refresh`"},
	{"write-protected", func(in *Input) { in.Drives.Drives[1].ReadOnly = true }, Degraded,
		[]string{"drive sd2, bay Slot 2 GOOD"}, nil, []string{"drive sd2, bay Slot 2 GOOD"}, "`drivebay explain 2`"},
	{"write-protected and not claimed", func(in *Input) { in.Drives.Drives[1].ReadOnly, in.Drives.Drives[1].Claim = true, nil }, Fine, nil, nil, nil, calm},
	{"another program has made a filesystem on it", func(in *Input) {
		in.Drives.Drives[1].Content = drivebay.Content{Kind: drivebay.ContentForeign, Signatures: []drivebay.Signature{{Format: "ext4"}}}
	}, Degraded, []string{"drive sd2, bay Slot 2 GOOD"}, nil, []string{"drive sd2, bay Slot 2 GOOD"}, "`drivebay explain 2`"},
	{"another drive with its serial number", func(in *Input) { in.Drives.Drives[1].IdentityIssue = "drive 9 has the same serial number" }, Degraded,
		[]string{"drive sd2, bay Slot 2 GOOD"}, nil, []string{"drive sd2, bay Slot 2 GOOD"}, "`drivebay drive show 2`"},
	{"incomplete", func(in *Input) { in.Drives.Complete = false }, CannotTell, []string{"machine INCOMPLETE"}, nil, nil, "`drivebay drives`"},
	{"not ready", func(in *Input) { in.Drives, in.Volumes, in.NotReady = nil, nil, []string{"starting"} }, CannotTell, []string{"daemon NOT READY"}, nil, nil, "`drivebay status`"},
	{"the mount table was not read", func(in *Input) { in.Volumes.Problems = []string{"/proc/self/mountinfo: input/output error"} }, CannotTell, []string{"machine NOT READ"}, nil, nil, "`drivebay volumes`"},
	{"a drive was not read", func(in *Input) { in.Unread = []string{"1", "2", "3", "4"} }, CannotTell, []string{"daemon NOT READ"}, nil, nil, "pull the drive"},
	{"not stored", func(in *Input) { in.Drives.StoreFailing, in.Unwritten = "disk full", []string{"id-data"} }, Degraded, []string{"daemon NOT STORED", "daemon NOT STORED"}, nil, nil, "state directory"},
	{"unknown and suspect", func(in *Input) {
		in.Drives.Drives[0].Health, in.Drives.Drives[1].Health = drivebay.HealthUnknown, drivebay.HealthSuspect
	}, Degraded, []string{"drive sd2, bay Slot 2 SUSPECT", "drive sd1, bay Slot 1 UNKNOWN"}, nil, []string{"drive sd2, bay Slot 2 SUSPECT", "drive sd1, bay Slot 1 UNKNOWN"}, "`drivebay selftest 2"},
	{"releasing", func(in *Input) {
		d := &in.Drives.Drives[0]
		d.Usage, d.Leaving = drivebay.UsageReleasing, &drivebay.Leaving{Cause: "volume data moves", Progress: &drivebay.Progress{Done: 1, Total: 2}}
		in.Volumes.Volumes[0].Work = "move"
	}, Fine, nil, []string{"drive sd1, bay Slot 1 RELEASING"}, nil, "`drivebay replace 1` shows the progress"},
	{"releasing, and a volume is in use", func(in *Input) {
		in.Drives.Drives[0].Usage = drivebay.UsageReleasing
		in.Volumes.Volumes[0].Work, in.Volumes.Volumes[0].Publications = "move", []drivebay.Publication{{Path: "/pod"}}
	}, Fine, nil, []string{"drive sd1, bay Slot 1 RELEASING"}, []string{"volume data IN USE"}, "stop the pod that uses volume data: it"},
	{"released", func(in *Input) { in.Drives.Drives[1].Usage = drivebay.UsageReleased }, Fine, nil, nil, []string{"drive sd2, bay Slot 2 RELEASED"}, "`drivebay replace 2`"},
	{"removal failed", func(in *Input) {
		in.Drives.Drives[1].Usage, in.Drives.Drives[1].Leaving = drivebay.UsageFailed, &drivebay.Leaving{Cause: "in use: mount"}
	}, Degraded, []string{"drive sd2, bay Slot 2 GOOD"}, nil, []string{"drive sd2, bay Slot 2 FAILED"}, "`drivebay drive retry 2`"},
	{"removed", func(in *Input) {
		in.Drives.Drives[1].Usage, in.Drives.Drives[1].Status = drivebay.UsageRemoved, drivebay.StatusOffline
	}, Fine, nil, nil, []string{"drive sd2, bay Slot 2 REMOVED"}, "`drivebay replace 2` waits for the successor"},
	{"replaced", func(in *Input) {
		in.Drives.Drives[1].Usage, in.Drives.Drives[1].Status = drivebay.UsageRemoved, drivebay.StatusOffline
		in.Drives.Drives[0].Succeeds = &drivebay.Succession{Of: "2", Taken: time.Unix(1, 0)}
	}, Fine, nil, nil, nil, calm},
	{"the successor is checked", func(in *Input) { in.Drives.Drives[0].Succeeds = &drivebay.Succession{Of: "2"} }, Fine, nil, []string{"drive sd1, bay Slot 1 GOOD"}, nil, "`drivebay replace 2`"},
	{"the successor is refused", func(in *Input) {
		in.Drives.Drives[0].Succeeds = &drivebay.Succession{Of: "2", Against: "it is too small"}
	}, Fine, nil, nil, []string{"drive sd1, bay Slot 1 GOOD"}, "`drivebay replace 2`"},
	{"a self-test", func(in *Input) {
		in.Drives.Drives[1].SelfTest = &drivebay.RunningTest{Kind: "long"}
	}, Fine, nil, []string{"drive sd2, bay Slot 2 SELF-TEST"}, nil, "`drivebay smart 2`"},
	{"a self-test before the drive was pulled", func(in *Input) {
		d := &in.Drives.Drives[1]
		d.SelfTest = &drivebay.RunningTest{Kind: "long"}
		d.Status, d.Removable, d.Claim = drivebay.StatusOffline, true, nil
	}, Fine, nil, nil, nil, calm},
	{"a key needs a restart", func(in *Input) { in.Config = &api.ConfigStatus{Restart: []string{"listen"}} }, Fine, nil, nil, []string{"daemon RESTART"}, "`systemctl restart drivebay`"},
	{"a reload failed", func(in *Input) { in.Config = &api.ConfigStatus{Error: "not applied"} }, Fine, nil, nil, []string{"daemon NOT RELOADED"}, "`systemctl reload drivebay`"},
	{"work", func(in *Input) { in.Volumes.Volumes[0].Work = "scrub" }, Fine, nil, []string{"volume data OPERATIVE"}, nil, calm},
	{"a snapshot is gone", func(in *Input) {
		in.Volumes.Snapshots = []drivebay.VolumeSnapshot{{ID: "s1", Name: "nightly", Unavailable: "LVM does not show it in volume group vg", Location: drivebay.Location{Drives: []string{"1"}}}, {ID: "s2", Name: "weekly"}}
	}, Degraded, []string{"snapshot nightly UNAVAILABLE"}, nil, []string{"snapshot nightly UNAVAILABLE"}, "`drivebay volume snapshots`"},
	{"a snapshot on a drive that is away", func(in *Input) {
		in.Drives.Drives[1].Status = drivebay.StatusOffline
		in.Volumes.Snapshots = []drivebay.VolumeSnapshot{{ID: "s1", Name: "nightly", Unavailable: "drive 2 is OFFLINE", Location: drivebay.Location{Drives: []string{"2"}}}}
	}, Degraded, []string{"drive sd2, bay Slot 2 OFFLINE"}, nil, []string{"drive sd2, bay Slot 2 OFFLINE"}, "put it back"},
	{"found", func(in *Input) { in.Volumes.Found = []drivebay.FoundVolume{{ID: "abc"}} }, Fine, nil, nil, []string{"volume abc FOUND"}, "`drivebay volume adopt abc`"},
	{"a fault of a volume alone", func(in *Input) {
		in.Volumes.Volumes[0].Condition = drivebay.Condition{{Severity: drivebay.SeverityDegraded, Reason: "OutOfCapacity", Message: "full"}}
	}, Degraded, []string{"volume data DEGRADED"}, nil, []string{"volume data DEGRADED"}, "`drivebay explain id-data`"},
	{"a fault of a volume on a bad drive", func(in *Input) {
		in.Drives.Drives[0].Health = drivebay.HealthSuspect
		in.Volumes.Volumes[0].Condition = drivebay.Condition{{Severity: drivebay.SeverityDataLoss, Reason: "RWIOError", Message: "gone"}}
	}, AtRisk, []string{"volume data DATA_LOSS", "drive sd1, bay Slot 1 SUSPECT"}, nil, []string{"volume data DATA_LOSS", "drive sd1, bay Slot 1 SUSPECT"}, "`drivebay explain id-data`"},
}

func TestVerdicts(t *testing.T) {
	for _, tc := range verdictCases {
		s := &drivebay.Snapshot{Complete: true, Machine: drivebay.Machine{Name: "box"}, Drives: []drivebay.Drive{sound("1"), sound("2"), sound("3"), sound("4")}}
		in := Input{Drives: s, Volumes: &drivebay.VolumeSet{}}
		in.Volumes.Volumes = []*drivebay.VolumeView{volumeOn("data", s.Drives[0]), volumeOn("mirror", s.Drives[2], s.Drives[3])}
		tc.make(&in)
		if in.Volumes != nil && len(in.Volumes.Volumes[0].Condition) == 0 && in.Volumes.Volumes[0].Work == "" { // judged again
			in.Volumes.Volumes = []*drivebay.VolumeView{volumeOn("data", s.Drives[0]), volumeOn("mirror", s.Drives[2], s.Drives[3])}
		}
		got := Of(in)
		if got.Verdict != tc.want || got.Exit != tc.want.Exit() {
			t.Errorf("%s: %v, exit %d, want %v: %+v", tc.name, got.Verdict, got.Exit, tc.want, got.Wrong)
		}
		for what, lists := range map[string][2][]string{"wrong": {titles(got.Wrong), tc.wrong}, "doing": {titles(got.Doing), tc.doing}, "waits": {titles(got.Waits), tc.waits}} {
			if !slices.Equal(lists[0], lists[1]) {
				t.Errorf("%s: %s %q, want %q: %+v", tc.name, what, lists[0], lists[1], got.Wrong)
			}
		}
		if !strings.Contains(got.Next, tc.next) {
			t.Errorf("%s: next %q, want %q", tc.name, got.Next, tc.next)
		}
	}
}

func titles(items []Item) (out []string) {
	for _, i := range items {
		out = append(out, i.Title()+" "+i.State)
	}
	return out
}

// TestVolumesOfADrive: what is wrong with a drive names the volumes on it, and those that cannot be used.
func TestVolumesOfADrive(t *testing.T) {
	s := &drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{sound("1")}}
	s.Drives[0].Status = drivebay.StatusOffline
	got := Of(Input{Drives: s, Volumes: &drivebay.VolumeSet{Volumes: []*drivebay.VolumeView{volumeOn("b", s.Drives[0]), volumeOn("a", s.Drives[0])}}})
	if len(got.Wrong) != 1 || !slices.Equal(got.Wrong[0].Volumes, []string{"a", "b"}) || !slices.Equal(got.Wrong[0].Unusable, []string{"a", "b"}) {
		t.Errorf("got %+v", got.Wrong)
	}
}

// TestReasonsOfDrives: the reasons that overviews treat in their own way are reasons of the table.
func TestReasonsOfDrives(t *testing.T) {
	for _, reason := range slices.Concat(ofDrives, notKnown) {
		if !slices.ContainsFunc(condition.Rules(), func(r condition.Rule) bool { return r.Reason == reason }) {
			t.Errorf("no rule has the reason %s", reason)
		}
	}
}

func TestExitStatuses(t *testing.T) {
	for v, want := range map[Verdict]int{Fine: 0, Degraded: 3, AtRisk: 4, CannotTell: 5} {
		if v.Exit() != want {
			t.Errorf("%v: %d, want %d", v, v.Exit(), want)
		}
	}
	for h, want := range map[drivebay.Health]Verdict{drivebay.HealthGood: Fine, drivebay.HealthUnknown: CannotTell, drivebay.HealthSuspect: Degraded, drivebay.HealthBad: AtRisk} {
		if OfHealth(h) != want || h.Rank() != int(OfHealth(h)) {
			t.Errorf("%v: %v, rank %d", h, OfHealth(h), h.Rank())
		}
	}
}

// TestSelfTestInProgress: the overview names the kind of a self-test that is in progress, and how much of
// it is done, as far as they are known.
func TestSelfTestInProgress(t *testing.T) {
	left := 60
	for want, ev := range map[string]*drivebay.Evidence{
		"long self-test in progress: 40 % done": {SelfTestProgress: &left, SelfTestKind: "long"},
		"self-test in progress: 40 % done":      {SelfTestProgress: &left},
		"short self-test in progress":           {SelfTests: []drivebay.SelfTest{{Kind: "short", Result: drivebay.SelfTestRunning}}},
		"":                                      {SelfTests: []drivebay.SelfTest{{Kind: "short", Result: drivebay.SelfTestPassed}}},
	} {
		d := sound("1")
		d.SelfTest = ev.RunningTest()
		got := Of(Input{Drives: &drivebay.Snapshot{Complete: true, Drives: []drivebay.Drive{d}}})
		text := ""
		for _, i := range got.Doing {
			text += i.Text
		}
		if text != want || len(got.Doing) > 0 && (got.Doing[0].Bay != "Slot 1" || (got.Doing[0].Percent != nil) != strings.Contains(want, "%")) {
			t.Errorf("%q, want %q: %+v", text, want, got.Doing)
		}
	}
	slept := &drivebay.Evidence{SelfTestProgress: &left, Standby: true}
	if run := slept.RunningTest(); run != nil {
		t.Errorf("a drive in standby: %+v", run)
	}
}
