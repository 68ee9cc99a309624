package drives

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
)

func on(b bool) *bool { return &b }

// known is the status of an object that the node has written.
func known(requests ...v1alpha1.DriveRequest) v1alpha1.DriveStatus {
	return v1alpha1.DriveStatus{Node: "node1", FirstSeen: metav1.NewTime(firstSeen), ID: "naa-1", Requests: requests}
}

func was(field, value, state string) v1alpha1.DriveRequest {
	return v1alpha1.DriveRequest{Field: field, Value: value, State: state}
}

// firstSeen is when the node of these tests saw its drive first.
var firstSeen = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestDecide(t *testing.T) {
	online := drivebay.Drive{ID: "naa-1", FirstSeen: firstSeen.Add(time.Millisecond), Status: drivebay.StatusOnline, Usage: drivebay.UsageInUse, Content: drivebay.Content{Kind: drivebay.ContentBlank}}
	with := func(change func(*drivebay.Drive)) drivebay.Drive {
		d := online
		change(&d)
		return d
	}
	leaving := with(func(d *drivebay.Drive) { d.Usage = drivebay.UsageReleasing })
	claimed := with(func(d *drivebay.Drive) { d.Claim = &drivebay.Claim{By: drivebay.ClaimedByOperator} })
	configured := with(func(d *drivebay.Drive) { d.Claim = &drivebay.Claim{By: drivebay.ClaimedByConfig} })
	unread := with(func(d *drivebay.Drive) { d.Content = drivebay.Content{Reason: drivebay.NotRead} })
	reinstalled := with(func(d *drivebay.Drive) { d.FirstSeen = firstSeen.Add(time.Hour) })
	removed := with(func(d *drivebay.Drive) { d.Usage = drivebay.UsageRemoved })
	done := was(fieldRelease, "true", stateApplied)
	mine := &progress{request: request{fieldRelease, "true"}}
	running := &progress{request: request{fieldRelease, "true"}, running: true}
	finished := &progress{request: request{fieldRelease, "true"}, done: &done}

	for name, c := range map[string]struct {
		spec   v1alpha1.DriveSpec
		status v1alpha1.DriveStatus
		drive  drivebay.Drive
		at     *progress
		// call is "field=value", with a "+" before it if the intent has to be recorded first.
		call     string
		requests string
		settled  bool
	}{
		"nothing":                    {status: known(), drive: online, settled: true},
		"a claim":                    {spec: v1alpha1.DriveSpec{Claim: on(true)}, status: known(), drive: online, call: "claim=true", requests: "claim=true Applying"},
		"a claim of a claimed drive": {spec: v1alpha1.DriveSpec{Claim: on(true)}, status: known(), drive: claimed, requests: "claim=true Applied", settled: true},
		"a claim of what the configuration claims": {spec: v1alpha1.DriveSpec{Claim: on(true)}, status: known(), drive: configured, call: "claim=true", requests: "claim=true Applying"},
		"a claim of a drive that was not read":     {spec: v1alpha1.DriveSpec{Claim: on(true)}, status: known(), drive: unread},
		"a claim that was applied, and withdrawn":  {spec: v1alpha1.DriveSpec{Claim: on(true)}, status: known(was(fieldClaim, "true", stateApplied)), drive: online, requests: "claim=true Applied", settled: true},
		"a claim, and the node was reinstalled":    {spec: v1alpha1.DriveSpec{Claim: on(true)}, status: known(was(fieldClaim, "true", stateApplied)), drive: reinstalled, call: "claim=true", requests: "claim=true Applying"},
		"a release, and the node was reinstalled":  {spec: v1alpha1.DriveSpec{Release: on(true)}, status: known(was(fieldRelease, "true", stateApplied)), drive: reinstalled, requests: "release=true Applied", settled: true},
		"a claim that was refused is not repeated": {spec: v1alpha1.DriveSpec{Claim: on(true)}, status: known(was(fieldClaim, "true", stateRefused)), drive: online, requests: "claim=true Refused", settled: true},
		"another value":                              {spec: v1alpha1.DriveSpec{Claim: on(false)}, status: known(was(fieldClaim, "true", stateApplied)), drive: claimed, call: "claim=false", requests: "claim=false Applying"},
		"a removed field is forgotten":               {status: known(was(fieldClaim, "true", stateApplied)), drive: claimed, settled: true},
		"a cordon before the first status":           {spec: v1alpha1.DriveSpec{Cordoned: on(true)}, drive: online, call: "cordoned=true", requests: "cordoned=true Applying"},
		"a claim that another daemon began":          {spec: v1alpha1.DriveSpec{Claim: on(true)}, status: known(was(fieldClaim, "true", stateApplying)), drive: online, call: "claim=true", requests: "claim=true Applying"},
		"one after the other":                        {spec: v1alpha1.DriveSpec{Cordoned: on(true), Claim: on(true)}, status: known(), drive: online, call: "cordoned=true", requests: "cordoned=true Applying"},
		"a release":                                  {spec: v1alpha1.DriveSpec{Release: on(true)}, status: known(), drive: online, call: "+release=true", requests: "release=true Applying"},
		"a release whose intent is recorded":         {spec: v1alpha1.DriveSpec{Release: on(true)}, status: known(was(fieldRelease, "true", stateApplying)), drive: online, at: mine, call: "release=true", requests: "release=true Applying"},
		"a release whose intent was not recorded":    {spec: v1alpha1.DriveSpec{Release: on(true)}, status: known(), drive: online, at: mine, call: "+release=true", requests: "release=true Applying"},
		"a release under way":                        {spec: v1alpha1.DriveSpec{Release: on(true)}, status: known(was(fieldRelease, "true", stateApplying)), drive: online, at: running, requests: "release=true Applying"},
		"a release that ended":                       {spec: v1alpha1.DriveSpec{Release: on(true)}, status: known(was(fieldRelease, "true", stateApplying)), drive: leaving, at: finished, requests: "release=true Applied", settled: true},
		"a release that was applied, and cancelled":  {spec: v1alpha1.DriveSpec{Release: on(true), Cordoned: on(true)}, status: known(was(fieldRelease, "true", stateApplied)), drive: online, call: "cordoned=true", requests: "cordoned=true Applying; release=true Applied"},
		"a release interrupted before the call":      {spec: v1alpha1.DriveSpec{Release: on(true)}, status: known(was(fieldRelease, "true", stateApplying)), drive: online, requests: "release=true Failed Interrupted", settled: true},
		"a release interrupted after the call":       {spec: v1alpha1.DriveSpec{Release: on(true)}, status: known(was(fieldRelease, "true", stateApplying)), drive: leaving, requests: "release=true Applied", settled: true},
		"a release of a restored object":             {spec: v1alpha1.DriveSpec{Release: on(true)}, drive: online, requests: "release=true Refused SetBeforeFirstStatus", settled: true},
		"a release of a leaving drive":               {spec: v1alpha1.DriveSpec{Release: on(true)}, status: known(), drive: leaving, requests: "release=true Applied", settled: true},
		"keep":                                       {spec: v1alpha1.DriveSpec{Release: on(false)}, status: known(was(fieldRelease, "true", stateApplied)), drive: leaving, call: "+release=false", requests: "release=false Applying"},
		"keep a drive that does not leave":           {spec: v1alpha1.DriveSpec{Release: on(false)}, status: known(), drive: online, requests: "release=false Applied", settled: true},
		"an approval":                                {spec: v1alpha1.DriveSpec{ApproveRemoval: "naa-1"}, status: known(), drive: leaving, call: "+approveRemoval=naa-1", requests: "approveRemoval=naa-1 Applying"},
		"an approval of a removed drive":             {spec: v1alpha1.DriveSpec{ApproveRemoval: "naa-1"}, status: known(), drive: removed, requests: "approveRemoval=naa-1 Applied", settled: true},
		"an acceptance":                              {spec: v1alpha1.DriveSpec{Accept: "naa-1"}, status: known(), drive: removed, call: "+accept=naa-1", requests: "accept=naa-1 Applying"},
		"an acceptance waits for another request":    {spec: v1alpha1.DriveSpec{Accept: "naa-1", Release: on(true)}, status: known(was(fieldRelease, "true", stateApplying)), drive: removed, at: running, requests: "release=true Applying"},
		"a light is switched again by a new request": {spec: v1alpha1.DriveSpec{Locate: on(true)}, status: known(was(fieldLocate, "false", stateApplied)), drive: online, call: "locate=true", requests: "locate=true Applying"},
	} {
		p := decide(&v1alpha1.Drive{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: c.spec, Status: c.status}, &c.drive, c.at)
		call := ""
		if p.call != nil {
			if call = p.call.field + "=" + p.call.value; p.first {
				call = "+" + call
			}
		}
		var requests []string
		for _, r := range p.requests {
			requests = append(requests, strings.TrimSpace(fmt.Sprintf("%s=%s %s %s", r.Field, r.Value, r.State, r.Reason)))
		}
		_, _, _, settled := p.condition()
		if call != c.call || strings.Join(requests, "; ") != c.requests || settled != c.settled {
			t.Errorf("%s: call %q, requests %q, settled %v", name, call, strings.Join(requests, "; "), settled)
		}
	}
}

// calls records the calls of an engine.
type calls struct {
	Engine
	made []string
}

func (c *calls) note(format string, args ...any) error {
	c.made = append(c.made, fmt.Sprintf(format, args...))
	return nil
}

func (c *calls) Claim(_ context.Context, drive string, on bool) error {
	return c.note("claim %s %v", drive, on)
}

func (c *calls) Cordon(_ context.Context, drive string, on bool) error {
	return c.note("cordon %s %v", drive, on)
}

func (c *calls) Locate(_ context.Context, bay string, on bool) error {
	return c.note("locate %s %v", bay, on)
}

func (c *calls) Operate(_ context.Context, drive string, do drivebay.LeaveVerb, _ string) error {
	return c.note("%s %s", do, drive)
}

// TestCalls: each field makes its call of the engine, with the id of the drive.
func TestCalls(t *testing.T) {
	d := drivebay.Drive{ID: "naa-1", Usage: drivebay.UsageInUse, Slot: drivebay.Slot{Enclosure: "e1", Bay: "Slot 07"}}
	failed := d
	failed.Usage = drivebay.UsageFailed
	for _, c := range []struct {
		request
		drive drivebay.Drive
		want  string
	}{
		{request{fieldClaim, "true"}, d, "claim naa-1 true"},
		{request{fieldClaim, "false"}, d, "claim naa-1 false"},
		{request{fieldCordoned, "true"}, d, "cordon naa-1 true"},
		{request{fieldLocate, "true"}, d, "locate e1/Slot 07 true"},
		{request{fieldRelease, "true"}, d, "release naa-1"},
		{request{fieldRelease, "true"}, failed, "retry naa-1"},
		{request{fieldRelease, "false"}, d, "cancel naa-1"},
		{request{fieldApproveRemoval, "naa-1"}, d, "approve naa-1"},
		{request{fieldAccept, "naa-1"}, d, "accept naa-1"},
	} {
		var e calls
		if err := c.do(t.Context(), &e, &c.drive); err != nil || !reflect.DeepEqual(e.made, []string{c.want}) {
			t.Errorf("%+v: %v, %v", c.request, e.made, err)
		}
	}
	var e calls
	if err := (request{fieldLocate, "true"}).do(t.Context(), &e, &drivebay.Drive{ID: "naa-2"}); !errors.Is(err, errNoBay) || e.made != nil {
		t.Errorf("a drive without a bay: %v, %v", e.made, err)
	}
}

func TestResult(t *testing.T) {
	r := request{fieldClaim, "true"}
	for _, c := range []struct {
		err           error
		state, reason string
	}{
		{nil, stateApplied, ""},
		{fmt.Errorf("drive x: %w: foreign", drivebay.ErrRefused), stateRefused, reasonRefused},
		{drivebay.ErrBusy, stateRefused, reasonBusy},
		{drivebay.ErrInvalid, stateRefused, reasonInvalid},
		{drivebay.ErrNoSupport, stateRefused, reasonNoSupport},
		{errNoBay, stateRefused, reasonNoBay},
		{context.DeadlineExceeded, stateFailed, reasonTimeout},
		{errors.New(strings.Repeat("x\x00\xff", 2000)), stateFailed, reasonFailed},
	} {
		got := r.result(c.err)
		if got.State != c.state || got.Reason != c.reason || len(got.Message) > maxCause || (c.err != nil) != (got.Message != "") {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}

// TestConditions: the condition says what was refused, and the generation is observed once all fields are settled.
func TestConditions(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	o := &v1alpha1.Drive{ObjectMeta: metav1.ObjectMeta{Generation: 7}, Spec: v1alpha1.DriveSpec{Claim: on(true)}, Status: known()}
	o.Status.ObservedGeneration = 6
	refused := was(fieldClaim, "true", stateRefused)
	refused.Reason, refused.Message = reasonRefused, "foreign content"

	want := known()
	complete(&want, o, plan{requests: []v1alpha1.DriveRequest{was(fieldClaim, "true", stateApplying)}}, now)
	if c := want.Conditions[0]; want.ObservedGeneration != 6 || c.Status != metav1.ConditionUnknown || c.Reason != reasonApplying {
		t.Errorf("while it is applied: generation %d, %+v", want.ObservedGeneration, c)
	}
	want = known()
	want.Health = "BAD"
	want.Findings = []v1alpha1.DriveFinding{{Code: "NVMeSpareLow", Severity: "BAD"}}
	complete(&want, o, plan{requests: []v1alpha1.DriveRequest{refused}}, now)
	if c := want.Conditions[0]; want.ObservedGeneration != 7 || c.Status != metav1.ConditionFalse || c.Reason != reasonRefused || c.Message != "claim: foreign content" {
		t.Errorf("refused: generation %d, %+v", want.ObservedGeneration, c)
	}
	if c := want.Conditions[1]; c.Type != v1alpha1.DriveHealthy || c.Status != metav1.ConditionFalse || c.Reason != "NVMeSpareLow" {
		t.Errorf("%+v", c)
	}
	// A second round with the same state has the same conditions, also of time.
	o.Status = *want.DeepCopy()
	again := *want.DeepCopy()
	again.Conditions = nil
	complete(&again, o, plan{requests: []v1alpha1.DriveRequest{refused}}, now.Add(time.Hour))
	if !reflect.DeepEqual(again, want) {
		t.Errorf("%+v is not %+v", again, want)
	}
}
