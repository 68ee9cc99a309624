package drives

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
)

// schema is the part of the CRD by which the API server judges a value.
type schema struct {
	Type       string
	Properties map[string]schema
	Items      *schema
	Enum       []string
	MaxLength  *int     `yaml:"maxLength"`
	MaxItems   *int     `yaml:"maxItems"`
	Minimum    *float64 `yaml:"minimum"`
	Maximum    *float64 `yaml:"maximum"`
	Required   []string
}

// statusSchema reads the schema of the status from the chart.
func statusSchema(t *testing.T) schema {
	t.Helper()
	text, err := os.ReadFile("../../../../deploy/chart/drivebay/crds/drivebay.io_drives.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					Open schema `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.Open.Properties["status"]
}

// check returns what the schema has against a value.
func (s schema) check(at string, value any) (faults []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range s.Required {
			if _, there := v[key]; !there {
				faults = append(faults, at+" lacks "+key)
			}
		}
		for key, field := range v {
			of, known := s.Properties[key]
			if !known {
				faults = append(faults, at+"."+key+" is not in the schema")
				continue
			}
			faults = append(faults, of.check(at+"."+key, field)...)
		}
	case []any:
		if s.MaxItems == nil || len(v) > *s.MaxItems {
			faults = append(faults, fmt.Sprintf("%s: %d items", at, len(v)))
		}
		for i, item := range v {
			faults = append(faults, s.Items.check(fmt.Sprintf("%s[%d]", at, i), item)...)
		}
	case string:
		listed := len(s.Enum) == 0
		for _, e := range s.Enum {
			listed = listed || e == v
		}
		if !listed || s.MaxLength != nil && len([]rune(v)) > *s.MaxLength || len(s.Enum) == 0 && s.MaxLength == nil && !strings.HasSuffix(at, "since") {
			faults = append(faults, fmt.Sprintf("%s: %.40q", at, v))
		}
	case float64:
		if s.Minimum != nil && v < *s.Minimum || s.Maximum != nil && v > *s.Maximum {
			faults = append(faults, fmt.Sprintf("%s: %v", at, v))
		}
	}
	return faults
}

// TestHostileDrive: whatever a drive reports about itself, the API server takes its status.
func TestHostileDrive(t *testing.T) {
	long := strings.Repeat("x\x00\xffü\n", 1000)
	used := uint64(1) << 62
	d := drivebay.Drive{
		ID: "naa-1", Name: long, IdentityIssue: long, Identity: drivebay.Identity{Vendor: long, Model: long, Serial: long, Firmware: long, WWN: long, Size: used},
		Slot: drivebay.Slot{Enclosure: long, Bay: long, Lit: true}, Wear: &drivebay.Wear{PercentUsed: 1 << 20},
		Leaving:  &drivebay.Leaving{Since: time.Now(), Why: long, Cause: long, Progress: &drivebay.Progress{Done: used, Total: 1}},
		Succeeds: &drivebay.Succession{Of: "naa-2", Against: long}, Claim: &drivebay.Claim{By: drivebay.ClaimedByOperator}, Copy: long, SizeIssue: long, ReadOnly: true, System: true,
	}
	for range 100 {
		d.Findings = append(d.Findings, drivebay.Finding{Code: long, Severity: drivebay.HealthBad, Text: long, Advice: long, Since: time.Now()})
		d.Uses = append(d.Uses, drivebay.Use{Kind: long})
	}
	s := &drivebay.Snapshot{Machine: drivebay.Machine{Hardware: &drivebay.Hardware{Vendor: long, Product: long, Serial: long, Chassis: drivebay.Chassis{AssetTag: long}}}, Drives: []drivebay.Drive{d}}
	blank := drivebay.Drive{ID: "naa-1", Claim: &drivebay.Claim{By: drivebay.ClaimedByOperator}, Health: drivebay.HealthGood, Status: drivebay.StatusOnline, Usage: drivebay.UsageInUse, Identity: drivebay.Identity{Size: used}, Content: drivebay.Content{Kind: drivebay.ContentBlank}}
	room := drivebay.DriveRoom{Group: long, Kind: drivebay.LocationThin, Backings: map[drivebay.Backing]drivebay.BackingRoom{}}
	for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive, drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror} {
		room.Backings[b] = drivebay.BackingRoom{Largest: used, Available: used}
	}
	for i := range 100 {
		room.Members = append(room.Members, fmt.Sprintf("naa-%d", i))
	}
	n := node{"node1", map[string]drivebay.DriveRoom{"naa-1": room}}
	bounds := statusSchema(t)
	for _, d := range []drivebay.Drive{d, blank, {ID: "naa-1"}} {
		status := n.observed(s, &d, &v1alpha1.DriveStatus{})
		complete(&status, &v1alpha1.Drive{}, plan{}, time.Now())
		text, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		var value map[string]any
		if err := json.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		delete(value, "conditions") // the lengths of their texts are those of metav1.Condition, tested with TestResult
		for _, fault := range bounds.check("status", value) {
			t.Error(fault)
		}
	}
	if status := n.observed(s, &blank, &v1alpha1.DriveStatus{}); len(status.Capacity.Backings) != 5 || status.Capacity.Group.Kind != "LVM_THIN" || status.Capacity.Free != "4.6 EB" {
		t.Errorf("%+v", status.Capacity)
	}
	for name, change := range map[string]func(*drivebay.Drive){
		"BAD":       func(d *drivebay.Drive) { d.Health = drivebay.HealthBad },
		"cordoned":  func(d *drivebay.Drive) { d.Cordoned = true },
		"unclaimed": func(d *drivebay.Drive) { d.Claim = nil },
		"foreign":   func(d *drivebay.Drive) { d.Content.Kind = drivebay.ContentForeign },
	} {
		takesNone := blank
		change(&takesNone)
		if c := n.observed(s, &takesNone, &v1alpha1.DriveStatus{}).Capacity; len(c.Backings) != 0 || c.Free != "" || c.Group == nil {
			t.Errorf("a drive that is %s: %+v", name, c)
		}
	}
}

// TestCapacityStays: until the volumes are listed the room stays as it was, and then follows.
func TestCapacityStays(t *testing.T) {
	d := drivebay.Drive{ID: "naa-1", Status: drivebay.StatusOnline, Usage: drivebay.UsageInUse, Identity: drivebay.Identity{Size: 1 << 40}, Content: drivebay.Content{Kind: drivebay.ContentBlank}}
	was := &v1alpha1.DriveStatus{Capacity: v1alpha1.DriveCapacity{Total: 1 << 40, Backings: []v1alpha1.BackingCapacity{{Backing: "lvm", Largest: 5, Available: 5}}}}
	s := &drivebay.Snapshot{Drives: []drivebay.Drive{d}}
	if got := (node{"node1", nil}).observed(s, &d, was).Capacity; len(got.Backings) != 1 {
		t.Errorf("before the first listing: %+v", got)
	}
	if got := (node{"node1", map[string]drivebay.DriveRoom{}}).observed(s, &d, was).Capacity; len(got.Backings) != 0 || got.Total != 1<<40 {
		t.Errorf("after a listing without this drive: %+v", got)
	}
}

// TestUrgency: what a person requested is written at once, a state soon, a number in a text some time.
func TestUrgency(t *testing.T) {
	base := v1alpha1.DriveStatus{Node: "node1", Health: "SUSPECT", ObservedGeneration: 1, Findings: []v1alpha1.DriveFinding{{Code: "Hot", Severity: "SUSPECT", Text: "61 °C"}}}
	for name, c := range map[string]struct {
		change func(*v1alpha1.DriveStatus)
		want   pace.Urgency
	}{
		"nothing":         {func(*v1alpha1.DriveStatus) {}, pace.None},
		"an empty list":   {func(s *v1alpha1.DriveStatus) { s.Refusals = []string{} }, pace.None},
		"a temperature":   {func(s *v1alpha1.DriveStatus) { s.Findings[0].Text = "62 °C" }, pace.Minor},
		"wear":            {func(s *v1alpha1.DriveStatus) { s.PercentUsed = new(int32) }, pace.Minor},
		"a finding":       {func(s *v1alpha1.DriveStatus) { s.Findings[0].Code = "Bad" }, pace.Major},
		"a state":         {func(s *v1alpha1.DriveStatus) { s.State = "OFFLINE" }, pace.Major},
		"room":            {func(s *v1alpha1.DriveStatus) { s.Capacity.Total = 1 }, pace.Major},
		"a request":       {func(s *v1alpha1.DriveStatus) { s.Requests = []v1alpha1.DriveRequest{{Field: "claim"}} }, pace.Now},
		"a generation":    {func(s *v1alpha1.DriveStatus) { s.ObservedGeneration = 2 }, pace.Now},
		"usage":           {func(s *v1alpha1.DriveStatus) { s.Usage = "RELEASED" }, pace.Now},
		"the first write": {func(s *v1alpha1.DriveStatus) {}, pace.Now},
	} {
		was, want := base.DeepCopy(), base.DeepCopy()
		if c.change(want); name == "the first write" {
			was = &v1alpha1.DriveStatus{}
		}
		if got := statuses.Urgency(was, want); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}
