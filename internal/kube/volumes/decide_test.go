package volumes

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const gib = 1 << 30

func object(attempt int64, phase v1alpha1.VolumePhase, e string) *v1alpha1.Volume {
	o := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: drivebay.VolumeID("a"), Generation: attempt + 1}}
	o.Spec = v1alpha1.VolumeSpec{Node: "n", Name: "a", Attempt: attempt, Size: v1alpha1.VolumeSize{Required: gib}}
	o.Status.Phase = phase
	if phase != "" {
		o.Status.ObservedGeneration = o.Generation
	}
	if e != "" {
		o.Status.Error = &v1alpha1.VolumeError{Code: e}
	}
	return o
}

func volume(s drivebay.CSIStatus) *drivebay.VolumeView {
	v := &drivebay.VolumeView{Volume: drivebay.Volume{ID: drivebay.VolumeID("a"), Name: "a", Size: gib, CSIStatus: s}}
	if s == drivebay.CSIFailed {
		v.Failure = &drivebay.Failure[drivebay.CSIStatus]{Before: drivebay.CSICreating}
	}
	return v
}

func released(o *v1alpha1.Volume) *v1alpha1.Volume {
	o.Spec.Release = v1alpha1.ReleaseDelete
	return o
}

func larger(o *v1alpha1.Volume) *v1alpha1.Volume {
	o.Spec.Size.Required = 2 * gib
	return o
}

// TestRemembered: a volume that was found on its drives gets its name from the object of the same volume, and from no other.
func TestRemembered(t *testing.T) {
	found := func(change func(*drivebay.VolumeView)) *drivebay.VolumeView {
		v := volume(drivebay.CSICreated)
		v.Name, v.Mode, v.Location = "", drivebay.ModeFS, drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{"d"}, Partition: "AB-1"}
		if change != nil {
			change(v)
		}
		return v
	}
	had := func(change func(*v1alpha1.Volume)) *v1alpha1.Volume {
		o := object(1, v1alpha1.VolumeMissing, "")
		o.Spec.Mode, o.Status.Location = v1alpha1.ModeFilesystem, v1alpha1.VolumeLocation{Kind: "PARTITION", Drives: []string{"d"}, Partition: "ab-1"}
		if change != nil {
			change(o)
		}
		return o
	}
	for name, c := range map[string]struct {
		o                   *v1alpha1.Volume
		v                   *drivebay.VolumeView
		restored, different bool
	}{
		"the same":                {had(nil), found(nil), true, false},
		"it is not found":         {had(nil), nil, false, false},
		"it has its name":         {had(nil), volume(drivebay.CSICreated), false, false},
		"another partition":       {had(func(o *v1alpha1.Volume) { o.Status.Location.Partition = "cd-2" }), found(nil), false, true},
		"another mode":            {had(func(o *v1alpha1.Volume) { o.Spec.Mode = v1alpha1.ModeBlock }), found(nil), false, true},
		"the name has another id": {had(func(o *v1alpha1.Volume) { o.Spec.Name = "b" }), found(nil), false, false},
		"it was found before its drives were claimed": {had(func(o *v1alpha1.Volume) { o.Status.Phase = v1alpha1.VolumeFound }), found(nil), true, false},
		"its drives are not claimed":                  {had(nil), found(func(v *drivebay.VolumeView) { v.CSIStatus = drivebay.CSIUnknown }), false, false},
		"it was never made":                           {had(func(o *v1alpha1.Volume) { o.Status.Phase = v1alpha1.VolumePending }), found(nil), false, false},
		"its place is unknown":                        {had(func(o *v1alpha1.Volume) { o.Status.Location = v1alpha1.VolumeLocation{} }), found(nil), false, false},
		"an operator decides": {had(nil), found(func(v *drivebay.VolumeView) {
			v.CSIStatus, v.Failure = drivebay.CSIFailed, &drivebay.Failure[drivebay.CSIStatus]{Before: drivebay.CSICreated, Retry: drivebay.RetryOperator, Cause: "two copies"}
		}), false, false},
	} {
		was, ok := remembered(c.o, c.v)
		if ok != c.restored || ok && was.Name != "a" || contradicts(c.o, c.v) != c.different {
			t.Errorf("%s: %v %q, contradicts %v", name, ok, was.Name, contradicts(c.o, c.v))
		}
	}

	// The contradiction is shown, and does not vanish because it was shown.
	o, v := had(func(o *v1alpha1.Volume) { o.Status.Location.Partition = "cd-2" }), found(nil)
	for range 2 {
		o.Status = answer(o, v, outcome{listed: true}, time.Now())
		if _, ok := remembered(o, v); ok || len(o.Status.Findings) != 1 || o.Status.Findings[0].Reason != "AnotherInstance" {
			t.Errorf("%v: %+v", ok, o.Status)
		}
	}
}

// TestRequested: which call an object requests.
func TestRequested(t *testing.T) {
	whole := volume(drivebay.CSICreated)
	for name, c := range map[string]struct {
		o    *v1alpha1.Volume
		v    *drivebay.VolumeView
		want call
	}{
		"new": {object(1, "", ""), nil, callCreate},
		"new, and the daemon was killed after it": {object(1, "", ""), whole, callCreate}, // which is idempotent, and compares
		"pending":                     {object(1, v1alpha1.VolumePending, "Unavailable"), nil, callCreate},
		"refused":                     {object(1, v1alpha1.VolumeRefused, "NoSpace"), nil, callCreate}, // wait decides
		"found, and claimed":          {object(1, v1alpha1.VolumeFound, ""), whole, callNone},
		"half made":                   {object(1, v1alpha1.VolumeFailed, "Internal"), volume(drivebay.CSIFailed), callCreate},
		"made":                        {object(1, v1alpha1.VolumeMade, ""), whole, callNone},
		"mirrored":                    {object(0, "", ""), whole, callNone},
		"mirrored, and gone":          {object(0, "", ""), nil, callNone},
		"made, and gone":              {object(1, v1alpha1.VolumeMade, ""), nil, callNone},
		"made, and missing":           {object(2, v1alpha1.VolumeMissing, ""), nil, callNone},
		"being removed, and gone":     {object(1, v1alpha1.VolumeReleasing, ""), nil, callNone},
		"larger":                      {larger(object(2, v1alpha1.VolumeMade, "")), whole, callExpand},
		"larger, and gone":            {larger(object(2, v1alpha1.VolumeMade, "")), nil, callNone},
		"mirrored, larger":            {larger(object(0, v1alpha1.VolumeMade, "")), whole, callExpand},
		"released":                    {released(object(1, v1alpha1.VolumeMade, "")), whole, callDelete},
		"released, and gone":          {released(object(1, v1alpha1.VolumeMade, "")), nil, callDelete},
		"released before it was made": {released(object(1, "", "")), nil, callDelete},
	} {
		if got := requested(c.o, c.v); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestContradictedObject: nothing that an object requests is done to a volume that is not the one of the object: it is neither named by
// a creation nor deleted, and a deletion fails with what a person can do. Only its record can be given up.
func TestContradictedObject(t *testing.T) {
	another := volume(drivebay.CSICreated)
	another.Name, another.Mode, another.Location = "", drivebay.ModeFS, drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{"d"}, Partition: "CD-2"}
	another.Usage = drivebay.VolumeReleasing
	yes := true
	for name, c := range map[string]struct {
		change func(*v1alpha1.Volume)
		want   call
	}{
		"nothing":    {func(*v1alpha1.Volume) {}, callNone},
		"a deletion": {func(o *v1alpha1.Volume) { released(o) }, callNone},
		"more space": {func(o *v1alpha1.Volume) { larger(o) }, callNone},
		"a repair":   {func(o *v1alpha1.Volume) { o.Spec.Heal = "1" }, callNone},
		"a move":     {func(o *v1alpha1.Volume) { o.Spec.MoveBeforeUse = &yes }, callNone},
		"a release":  {func(o *v1alpha1.Volume) { o.Spec.ReleaseFrom = "d" }, callNone},
		"a task":     {func(o *v1alpha1.Volume) { o.Spec.Task = &v1alpha1.VolumeTask{Request: "1"} }, callNone},
		"giving up":  {func(o *v1alpha1.Volume) { adopting("m", o) }, callNone},
		"forgetting": {func(o *v1alpha1.Volume) { o.Spec.Forget = "d" }, callForgetLost},
	} {
		for _, phase := range []v1alpha1.VolumePhase{v1alpha1.VolumeMade, v1alpha1.VolumeFound, v1alpha1.VolumeMissing, v1alpha1.VolumeMoved} {
			o := object(1, phase, "")
			o.Generation++
			o.Spec.Mode, o.Status.Location = v1alpha1.ModeFilesystem, v1alpha1.VolumeLocation{Kind: "PARTITION", Drives: []string{"d"}, Partition: "ab-1"}
			c.change(o)
			for range 2 { // the answer does not end the contradiction
				if got := requested(o, another); got != c.want {
					t.Errorf("%s, %s: call %d, want %d", name, phase, got, c.want)
				}
				o.Status = answer(o, another, outcome{listed: true}, time.Unix(1000, 0))
				if e := o.Status.Error; o.Spec.Release != "" && (e == nil || e.Code != "Refused" || !strings.Contains(e.Message, "AnotherInstance")) {
					t.Errorf("%s, %s: answered with %+v", name, phase, e)
				}
				if o.Status.Phase != v1alpha1.VolumeMade || o.Status.Findings[0].Reason != "AnotherInstance" {
					t.Errorf("%s, %s: the phase becomes %s, with %+v", name, phase, o.Status.Phase, o.Status.Findings)
				}
			}
		}
	}
}

func healing(text, done string, o *v1alpha1.Volume) *v1alpha1.Volume {
	if o.Spec.Heal = text; done != "" {
		o.Status.Healing = &v1alpha1.VolumeHealing{Request: done}
	}
	return o
}

func adopting(node string, o *v1alpha1.Volume) *v1alpha1.Volume {
	o.Spec.Adopt = node
	return o
}

// TestAdopt: a volume that was found is adopted only by the node that a person names, and one that another node is to
// adopt is given up. In no case a volume is made in the place of one that was there.
func TestAdopt(t *testing.T) {
	found, whole := viewOf(&drivebay.FoundVolume{ID: drivebay.VolumeID("a"), Size: gib, Drives: []string{"naa-1"}, Kind: drivebay.LocationPartition}), volume(drivebay.CSICreated)
	for name, c := range map[string]struct {
		o     *v1alpha1.Volume
		v     *drivebay.VolumeView
		want  call
		phase v1alpha1.VolumePhase
	}{
		"found":                        {object(0, "", ""), found, callNone, v1alpha1.VolumeFound},
		"found, was made here":         {object(1, v1alpha1.VolumeMade, ""), found, callNone, v1alpha1.VolumeFound},
		"found, and requested":         {object(1, "", ""), found, callNone, v1alpha1.VolumeFound},
		"found, and to be released":    {released(object(0, v1alpha1.VolumeFound, "")), found, callDelete, v1alpha1.VolumeReleasing},
		"found, its release refused":   {released(object(0, v1alpha1.VolumeFound, "Refused")), found, callDelete, v1alpha1.VolumeFound},
		"to be adopted":                {adopting("n", object(0, v1alpha1.VolumeFound, "")), found, callAdopt, v1alpha1.VolumeFound},
		"adopted":                      {adopting("n", object(0, v1alpha1.VolumeFound, "")), whole, callNone, v1alpha1.VolumeMade},
		"found, and pulled":            {object(1, v1alpha1.VolumeFound, ""), nil, callNone, v1alpha1.VolumeMissing},
		"expected":                     {adopting("n", object(0, "", "")), nil, callNone, v1alpha1.VolumeMissing},
		"another node is to adopt it":  {adopting("m", object(1, v1alpha1.VolumeMade, "")), whole, callForget, v1alpha1.VolumeMade},
		"another node, found here":     {adopting("m", object(0, v1alpha1.VolumeFound, "")), found, callNone, v1alpha1.VolumeFound},
		"given up":                     {adopting("m", object(1, v1alpha1.VolumeMade, "")), nil, callNone, v1alpha1.VolumeMoved},
		"given up before it was made":  {adopting("m", object(1, "", "")), nil, callNone, v1alpha1.VolumeMoved},
		"given up, and taken back":     {object(1, v1alpha1.VolumeMoved, ""), nil, callNone, v1alpha1.VolumeMissing},
		"given up, and to be released": {released(adopting("m", object(1, v1alpha1.VolumeMade, ""))), whole, callDelete, v1alpha1.VolumeReleasing},
	} {
		if got := requested(c.o, c.v); got != c.want {
			t.Errorf("%s: call %d, want %d", name, got, c.want)
		}
		if s := answer(c.o, c.v, outcome{listed: true}, time.Unix(1000, 0)); s.Phase != c.phase {
			t.Errorf("%s: %s, want %s", name, s.Phase, c.phase)
		}
	}
}

// TestFoundWithIssue: of a volume of which no record can be made, the object says why.
func TestFoundWithIssue(t *testing.T) {
	for issue, want := range map[string]string{"": "Set spec.adopt to \"n\"", "its type is not known": "no record can be made of it: its type is not known: start another version."} {
		v := viewOf(&drivebay.FoundVolume{ID: drivebay.VolumeID("a"), Size: gib, Drives: []string{"naa-1"}, Kind: drivebay.LocationPartition, Issue: issue, Next: "start another version"})
		s := answer(object(0, "", ""), v, outcome{listed: true}, time.Unix(1000, 0))
		if len(s.Findings) != 1 || !strings.Contains(s.Findings[0].Message, want) {
			t.Errorf("%q: %+v", issue, s.Findings)
		}
	}
}

// TestAdoptOnce: the node answers spec.adopt once. What it answered acts neither on another volume of that id, which comes later, nor
// when the drives are pulled for which it was refused.
func TestAdoptOnce(t *testing.T) {
	now := time.Unix(1000, 0)
	found, whole := viewOf(&drivebay.FoundVolume{ID: drivebay.VolumeID("a"), Size: gib, Drives: []string{"naa-2"}, Kind: drivebay.LocationPartition}), volume(drivebay.CSICreated)
	o := adopting("n", object(0, v1alpha1.VolumeFound, ""))
	o.Status = answer(o, whole, outcome{did: callAdopt, listed: true}, now)
	o.Status = answer(o, nil, outcome{listed: true}, now)
	o.Generation++ // anything else
	if got := requested(o, found); got != callNone {
		t.Errorf("another volume is found after it was adopted: call %d", got)
	}
	o.Spec.Adopt = ""
	o.Status = answer(o, found, outcome{listed: true}, now)
	if got := requested(adopting("n", o), found); got != callAdopt {
		t.Errorf("set again: call %d", got)
	}

	refused := adopting("m", object(1, v1alpha1.VolumeMade, ""))
	refused.Status = answer(refused, whole, outcome{did: callForget, err: drivebay.ErrRefused, listed: true}, now)
	refused.Status = answer(refused, whole, outcome{listed: true}, now)
	if e := refused.Status.Error; e == nil || e.Code != "Refused" {
		t.Errorf("the refusal is shown as %+v", e)
	}
	refused.Generation++
	if got := requested(refused, whole); got == callForget {
		t.Error("given up after it was refused")
	}
	refused.Status = answer(refused, whole, outcome{listed: true}, now)
	if refused.Status.Error != nil || refused.Status.Phase != v1alpha1.VolumeMade {
		t.Errorf("after another request: %+v", refused.Status)
	}
	busy := adopting("m", object(1, v1alpha1.VolumeMade, ""))
	busy.Status = answer(busy, whole, outcome{did: callForget, err: drivebay.ErrUnavailable, listed: true}, now)
	if got := requested(busy, whole); got != callForget {
		t.Errorf("an error that ends by itself: call %d", got)
	}
}

// TestAdoptBeforeFirstStatus: an object that was restored from a backup has spec.adopt, and no status with the answer.
func TestAdoptBeforeFirstStatus(t *testing.T) {
	whole := volume(drivebay.CSICreated)
	o := adopting("m", object(1, "", ""))
	for range 2 {
		if got := requested(o, whole); got == callForget {
			t.Errorf("phase %q: given up", o.Status.Phase)
		}
		o.Status = answer(o, whole, outcome{listed: true}, time.Unix(1000, 0))
	}
	if status, reason := conditionOf(&o.Status, v1alpha1.VolumeGivenUp); status != metav1.ConditionFalse || reason != reasonNotRequested || o.Status.Phase != v1alpha1.VolumeMade {
		t.Errorf("%s: %s %s", o.Status.Phase, status, reason)
	}
}

// TestHeal: each text requests one repair, whatever became of it; what ends by itself is tried again.
func TestHeal(t *testing.T) {
	whole, now := volume(drivebay.CSICreated), time.Unix(1000, 0)
	repaired := drivebay.HealReport{Steps: []drivebay.HealStep{{Repair: "mount it again", Why: "it was unmounted", Done: "it was mounted"}}}
	failed := drivebay.HealReport{Steps: []drivebay.HealStep{{Repair: "mount it again", Failed: "its options are not known"}}}
	left := drivebay.HealReport{Remaining: []drivebay.VolumeFinding{{Reason: "DriveBad"}}}
	for name, c := range map[string]struct {
		out    outcome
		reason string
		again  bool
	}{
		"nothing to do":  {outcome{}, "NothingToRepair", false},
		"repaired":       {outcome{healed: repaired}, "Repaired", false},
		"not repaired":   {outcome{healed: failed}, "NotRepaired", false},
		"still abnormal": {outcome{healed: left}, "Abnormal", false},
		"refused":        {outcome{err: drivebay.ErrRefused}, "Refused", false},
		"busy now":       {outcome{err: drivebay.ErrPending}, "Pending", true},
	} {
		o := healing("2", "1", larger(object(2, v1alpha1.VolumeMade, "NoSpace")))
		if got := requested(o, whole); got != callHeal {
			t.Fatalf("%s: call %d", name, got)
		}
		c.out.did, c.out.listed = callHeal, true
		s := answer(o, whole, c.out, now)
		condition := meta.FindStatusCondition(s.Conditions, v1alpha1.VolumeHealed)
		if condition == nil || condition.Reason != c.reason || (condition.Status == metav1.ConditionTrue) != (c.reason == "NothingToRepair" || c.reason == "Repaired") {
			t.Errorf("%s: %+v", name, condition)
		}
		if s.Error == nil || s.Error.Code != "NoSpace" {
			t.Errorf("%s: the error of another request is %v", name, s.Error)
		}
		o.Status = s
		if again := requested(o, whole) == callHeal; again != c.again {
			t.Errorf("%s: again %v", name, again)
		}
		o.Spec.Heal = ""
		if s := answer(o, whole, outcome{listed: true}, now); s.Healing != nil || meta.FindStatusCondition(s.Conditions, v1alpha1.VolumeHealed) != nil {
			t.Errorf("%s: without the request: %+v", name, s)
		}
	}
}

// TestMoveFirst: spec.moveBeforeUse counts whenever a drive of the volume has to leave, and is no error before that; without it,
// what was set on the node stays.
func TestMoveFirst(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		wish  *bool
		usage drivebay.VolumeUsage
		is    bool
		want  call
	}{
		"its drive leaves":            {&yes, drivebay.VolumeReleasing, false, callMoveFirst},
		"it is set":                   {&yes, drivebay.VolumeReleasing, true, callNone},
		"no drive leaves":             {&yes, drivebay.VolumeInUse, false, callNone},
		"the move has failed":         {&yes, drivebay.VolumeUsageFailed, false, callNone},
		"withdrawn":                   {&no, drivebay.VolumeReleasing, true, callMoveFirst},
		"no wish, set on the node":    {nil, drivebay.VolumeReleasing, true, callNone},
		"no wish and nothing is set":  {nil, drivebay.VolumeReleasing, false, callNone},
		"withdrawn, and it is not so": {&no, drivebay.VolumeInUse, false, callNone},
	} {
		o, v := object(1, v1alpha1.VolumeMade, ""), volume(drivebay.CSICreated)
		o.Spec.MoveBeforeUse, v.Usage, v.MoveBeforeUse = c.wish, c.usage, c.is
		if got := requested(o, v); got != c.want {
			t.Errorf("%s: call %d, want %d", name, got, c.want)
		}
		if s := answer(o, v, outcome{listed: true}, time.Unix(1000, 0)); s.MoveBeforeUse != c.is {
			t.Errorf("%s: the status has %v", name, s.MoveBeforeUse)
		}
	}
}

// TestWait: a request is tried at once, a failed one again after a while, an answered one never.
func TestWait(t *testing.T) {
	now := time.Unix(1000, 0)
	next := now.Add(5 * time.Second)
	again := object(1, v1alpha1.VolumeRefused, "NoSpace")
	again.Generation++
	for name, c := range map[string]struct {
		o     *v1alpha1.Volume
		after time.Duration
		again bool
	}{
		"new":               {object(1, "", ""), 0, true},
		"requested again":   {again, 0, true},
		"transient":         {object(1, v1alpha1.VolumePending, "Unavailable"), 5 * time.Second, true},
		"refused":           {object(1, v1alpha1.VolumeRefused, "NoSpace"), 0, false},
		"in use":            {released(object(1, v1alpha1.VolumeMade, "Busy")), 0, false},
		"removed, no error": {released(object(1, v1alpha1.VolumeReleasing, "")), 5 * time.Second, true},
	} {
		if after, again := wait(translate.AskedOfVolume(c.o), next, now); after != c.after || again != c.again {
			t.Errorf("%s: %v %v", name, after, again)
		}
	}
}

// TestAnswer: the status after a look at the engine.
func TestAnswer(t *testing.T) {
	now := time.Unix(1000, 0)
	whole, busy := volume(drivebay.CSICreated), released(object(1, v1alpha1.VolumeMade, ""))
	withdrawn := object(1, v1alpha1.VolumeMade, "Busy")
	withdrawn.Generation++
	for name, c := range map[string]struct {
		o     *v1alpha1.Volume
		v     *drivebay.VolumeView
		out   outcome
		phase v1alpha1.VolumePhase
		code  string
	}{
		"made":               {object(1, "", ""), whole, outcome{did: callCreate, err: nil, listed: true}, v1alpha1.VolumeMade, ""},
		"no space":           {object(1, "", ""), nil, outcome{did: callCreate, err: drivebay.ErrNoSpace, listed: true}, v1alpha1.VolumeRefused, "NoSpace"},
		"a drive is missing": {object(1, "", ""), nil, outcome{did: callCreate, err: drivebay.ErrUnavailable, listed: true}, v1alpha1.VolumePending, "Unavailable"},
		"mkfs failed":        {object(1, "", ""), volume(drivebay.CSIFailed), outcome{did: callCreate, err: drivebay.ErrTimeout, listed: true}, v1alpha1.VolumeFailed, "Timeout"},
		"another volume":     {object(1, "", ""), whole, outcome{did: callCreate, err: drivebay.ErrExists, listed: true}, v1alpha1.VolumeRefused, "Exists"},
		"not verified":       {object(1, "", ""), whole, outcome{did: callCreate, err: drivebay.ErrUnavailable, listed: true}, v1alpha1.VolumePending, "Unavailable"},
		"in use":             {busy, whole, outcome{did: callDelete, err: drivebay.ErrBusy, listed: true}, v1alpha1.VolumeMade, "Busy"},
		"wiping":             {busy, whole, outcome{did: callDelete, err: drivebay.ErrTimeout, listed: true}, v1alpha1.VolumeReleasing, "Timeout"},
		"deleted":            {busy, nil, outcome{did: callDelete, err: nil, listed: true}, v1alpha1.VolumeReleased, ""},
		"deleted before":     {released(object(1, v1alpha1.VolumeReleased, "")), nil, outcome{listed: true}, v1alpha1.VolumeReleased, ""},
		"withdrawn":          {withdrawn, whole, outcome{listed: true}, v1alpha1.VolumeMade, ""},
		"mirrored":           {object(0, "", ""), whole, outcome{listed: true}, v1alpha1.VolumeMade, ""},
		"gone":               {object(1, v1alpha1.VolumeMade, ""), nil, outcome{listed: true}, v1alpha1.VolumeMissing, ""},
		"gone, perhaps":      {object(1, v1alpha1.VolumeMade, ""), nil, outcome{listed: false}, v1alpha1.VolumeMade, ""},
		"cannot grow":        {larger(object(2, v1alpha1.VolumeMade, "")), whole, outcome{did: callExpand, err: drivebay.ErrNoSpace, listed: true}, v1alpha1.VolumeMade, "NoSpace"},
		"still cannot":       {larger(object(2, v1alpha1.VolumeMade, "NoSpace")), whole, outcome{listed: true}, v1alpha1.VolumeMade, "NoSpace"},
		"grown by hand":      {object(2, v1alpha1.VolumeMade, "NoSpace"), whole, outcome{listed: true}, v1alpha1.VolumeMade, ""},
	} {
		s := answer(c.o, c.v, c.out, now)
		code := ""
		if s.Error != nil {
			code = s.Error.Code
		}
		if s.Phase != c.phase || code != c.code || s.ObservedGeneration != c.o.Generation {
			t.Errorf("%s: %s, error %q, generation %d of %d", name, s.Phase, code, s.ObservedGeneration, c.o.Generation)
		}
		again := c.o.DeepCopy()
		again.Status = s
		if c.out.did == callNone {
			if next := answer(again, c.v, c.out, now.Add(time.Hour)); next.Phase != s.Phase || !next.Conditions[0].LastTransitionTime.Equal(&s.Conditions[0].LastTransitionTime) {
				t.Errorf("%s: the second look changes the status", name)
			}
		}
	}
}

// TestAbandoned: an object is deleted only after a deletion on the node, or with the drive of a volume that was only ever found. The
// object of a volume that was made once stays, and is Missing: it has the name and the class of the volume.
func TestAbandoned(t *testing.T) {
	found := func(change func(*v1alpha1.Volume)) *v1alpha1.Volume {
		o := object(0, v1alpha1.VolumeFound, "")
		change(o)
		return o
	}
	removing := object(1, v1alpha1.VolumeReleasing, "")
	removing.Status.CSIStatus = "REMOVING"
	for name, c := range map[string]struct {
		o               *v1alpha1.Volume
		deleted, listed bool
		want            bool
	}{
		"gone":                        {object(1, v1alpha1.VolumeMade, ""), false, true, false},
		"deleted":                     {object(1, v1alpha1.VolumeMade, ""), true, true, true},
		"deleted, drives not read":    {object(1, v1alpha1.VolumeMade, ""), true, false, false},
		"deleted before the restart":  {removing, false, true, true},
		"requested, not made":         {object(1, "", ""), true, true, false},
		"the controller waits for it": {released(object(1, v1alpha1.VolumeMade, "")), true, true, false},
		"only found":                  {found(func(*v1alpha1.Volume) {}), false, true, true},
		"only found, drives not read": {found(func(*v1alpha1.Volume) {}), false, false, false},
		"found, was requested":        {object(1, v1alpha1.VolumeFound, ""), false, true, false},
		"found, was made": {found(func(o *v1alpha1.Volume) {
			o.Status.Created = metav1.Time{Time: time.Unix(1000, 0)}
		}), false, true, false},
		"found, was made on another node": {found(func(o *v1alpha1.Volume) { o.Spec.Class = &v1alpha1.VolumeClass{Drives: "any"} }), false, true, false},
	} {
		if got := abandoned(c.o, c.deleted, c.listed); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if s := answer(c.o, nil, outcome{listed: c.listed}, time.Unix(2000, 0)); c.o.Status.Phase == v1alpha1.VolumeFound && c.listed && s.Phase != v1alpha1.VolumeMissing {
			t.Errorf("%s: its object would be %s", name, s.Phase)
		}
	}
}

// TestUrgency: what a health does twice a minute waits; where the volume is does not, because spec.releaseFrom has to name
// a drive of it.
func TestUrgency(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.VolumeStatus)
		want   pace.Urgency
	}{
		"nothing":   {func(*v1alpha1.VolumeStatus) {}, pace.None},
		"health":    {func(s *v1alpha1.VolumeStatus) { s.Health = "BAD" }, pace.Major},
		"a message": {func(s *v1alpha1.VolumeStatus) { s.Findings[0].Message = "97 % used" }, pace.Minor},
		"the phase": {func(s *v1alpha1.VolumeStatus) { s.Phase = v1alpha1.VolumeReleasing }, pace.Now},
		"a move":    {func(s *v1alpha1.VolumeStatus) { s.Location.Drives = []string{"b"} }, pace.Now},
	} {
		was := &v1alpha1.VolumeStatus{Phase: v1alpha1.VolumeMade, Health: "GOOD", Location: v1alpha1.VolumeLocation{Drives: []string{"a"}}, Findings: []v1alpha1.VolumeFinding{{Reason: "Full", Message: "96 % used"}}}
		want := was.DeepCopy()
		c.change(want)
		if got := volumeStatuses.Urgency(was, want); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLostRecordUnreadDrive: a volume that its node has no record of is not sound while a drive that may have it is not read. Its phase
// stays, and the finding ends with the volume's return.
func TestLostRecordUnreadDrive(t *testing.T) {
	sound := volume(drivebay.CSIPublished)
	sound.Health, sound.OperationalStatus, sound.Usage = drivebay.HealthGood, drivebay.Operative, drivebay.VolumeInUse
	now := time.Unix(1000, 0)
	for _, o := range []*v1alpha1.Volume{object(1, v1alpha1.VolumeMade, ""), object(1, v1alpha1.VolumeReleasing, "")} {
		was := o.Status.Phase
		look := func(when string, v *drivebay.VolumeView, listed, abnormal bool, phase v1alpha1.VolumePhase) {
			t.Helper()
			o.Status = answer(o, v, outcome{listed: listed}, now)
			is := translate.View(o)
			if is.Condition.Abnormal() != abnormal || abnormal == (is.OperationalStatus == drivebay.Operative) || o.Status.Phase != phase {
				t.Errorf("%s, %s: %s, %v, %s", was, when, o.Status.Phase, is.OperationalStatus, is.Condition.Message())
			}
		}
		o.Status = answer(o, sound, outcome{listed: true}, now)
		o.Status.Phase = was
		look("no record", nil, false, true, was)
		look("no record, later", nil, false, true, was)
		look("it is back", sound, false, false, v1alpha1.VolumeMade)
		look("no record again", nil, false, true, v1alpha1.VolumeMade)
		look("all drives are read", nil, true, true, v1alpha1.VolumeMissing)
	}
}
