package controller

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const gib = 1 << 30

func requested(nodes ...string) drivebay.VolumeRequest {
	c, _ := drivebay.ParseClass(nil)
	return drivebay.VolumeRequest{Name: "a", Size: drivebay.SizeRange{Required: gib, Limit: 2 * gib}, Class: c, Nodes: nodes}
}

// at is the object of wanted on node n, of generation 2: answered with a phase and an error, or not ("").
func at(phase v1alpha1.VolumePhase, code string, changes ...func(*v1alpha1.Volume)) volumeState {
	o := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: drivebay.VolumeID("a"), Generation: 2}, Spec: translate.SpecOf(requested(), "n")}
	o.Status.Phase = phase
	if phase != "" {
		o.Status.ObservedGeneration = 2
	}
	if phase == v1alpha1.VolumeMade {
		o.Status.Capacity, o.Status.Location.Kind = gib, "PARTITION"
	}
	if code != "" {
		o.Status.Error = &v1alpha1.VolumeError{Code: code}
	}
	for _, change := range changes {
		change(o)
	}
	return volumeStateOf(o)
}

func unanswered(o *v1alpha1.Volume) { o.Generation++ }
func release(o *v1alpha1.Volume)    { o.Spec.Release = v1alpha1.ReleaseDelete }

func TestCreate(t *testing.T) {
	other := requested()
	other.FSType = "xfs"
	large := requested()
	large.Size = drivebay.SizeRange{Required: 2 * gib}
	for name, c := range map[string]struct {
		s     volumeState
		r     drivebay.VolumeRequest
		asked int64
		want  step
		err   error
	}{
		"just requested":               {at("", ""), requested(), 2, stepWait, nil},
		"made":                         {at(v1alpha1.VolumeMade, ""), requested(), 0, stepDone, nil},
		"made, topology fits":          {at(v1alpha1.VolumeMade, ""), requested("m", "n"), 0, stepDone, nil},
		"made on another node":         {at(v1alpha1.VolumeMade, ""), requested("m"), 0, stepFail, drivebay.ErrExists},
		"made, another size":           {at(v1alpha1.VolumeMade, ""), large, 0, stepFail, drivebay.ErrExists},
		"made, another filesystem":     {at(v1alpha1.VolumeMade, ""), other, 0, stepFail, drivebay.ErrExists},
		"made, another size requested": {at(v1alpha1.VolumeMade, "", unanswered), requested(), 0, stepDone, nil},
		"missing":                      {at(v1alpha1.VolumeMissing, ""), requested(), 0, stepFail, drivebay.ErrUnavailable},
		"another one is being made":    {at("", ""), other, 0, stepFail, drivebay.ErrExists},
		"refused now":                  {at(v1alpha1.VolumeRefused, "NoSpace"), requested(), 2, stepReplace, drivebay.ErrNoSpace},
		"refused before":               {at(v1alpha1.VolumeRefused, "NoSpace"), requested(), 0, stepReplace, drivebay.ErrNoSpace},
		"refused, and asked again":     {at(v1alpha1.VolumeRefused, "NoSpace", unanswered), requested(), 3, stepWait, nil},
		"failed now":                   {at(v1alpha1.VolumeFailed, "Internal"), requested(), 2, stepFail, nil},
		"failed before":                {at(v1alpha1.VolumeFailed, "Internal"), requested(), 0, stepRequest, nil},
		"pending elsewhere":            {at(v1alpha1.VolumePending, "Unavailable"), requested("m"), 0, stepRequest, nil},
		"taken back elsewhere":         {at(v1alpha1.VolumePending, "", release, unanswered), requested("m"), 0, stepWait, nil},
		"missing elsewhere":            {at(v1alpha1.VolumeMissing, ""), requested("m"), 0, stepFail, drivebay.ErrUnavailable},
		"found":                        {at(v1alpha1.VolumeFound, ""), requested(), 0, stepFail, drivebay.ErrUnavailable},
		"found elsewhere":              {at(v1alpha1.VolumeFound, ""), requested("m"), 0, stepFail, drivebay.ErrUnavailable},
		"moved elsewhere":              {at(v1alpha1.VolumeMoved, ""), requested("m"), 0, stepFail, drivebay.ErrUnavailable},
		"its deletion was refused":     {at(v1alpha1.VolumeFound, "Refused", release), requested("m"), 0, stepTakeBack, drivebay.ErrRefused},
		"its deletion is refused now":  {at(v1alpha1.VolumeMade, "Refused", release), requested("m"), 2, stepTakeBack, drivebay.ErrRefused},
		"its deletion is tried again":  {at(v1alpha1.VolumeReleasing, "Unavailable", release), requested(), 2, stepFail, drivebay.ErrPending},
		"being deleted":                {at(v1alpha1.VolumeReleasing, "", release), requested(), 0, stepFail, drivebay.ErrPending},
		"the node resumes it":          {at(v1alpha1.VolumePending, ""), requested(), 0, stepWait, nil},
	} {
		if got, err := c.s.create(c.r, c.asked); got != c.want || c.err != nil && !errors.Is(err, c.err) || c.want == stepFail && err == nil {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}

// TestCreationTakesItsReleaseBack: the release that a creation takes back is the one that it has requested.
func TestCreationTakesItsReleaseBack(t *testing.T) {
	o := at(v1alpha1.VolumePending, "").object
	k := &creation{request: requested("m")}
	asks, takesBack := k.change(o), k.takeBack(o)
	if value, is := takesBack["release"]; asks["release"] != v1alpha1.ReleaseDelete || !is || value != nil {
		t.Errorf("%v, %v", asks, takesBack)
	}
}

func TestDelete(t *testing.T) {
	for name, c := range map[string]struct {
		s     volumeState
		asked int64
		want  step
		err   error
	}{
		"made":                     {at(v1alpha1.VolumeMade, ""), 0, stepRequest, nil},
		"not made":                 {at("", ""), 0, stepRequest, nil},
		"refused":                  {at(v1alpha1.VolumeRefused, "NoSpace"), 0, stepReplace, nil},
		"requested":                {at(v1alpha1.VolumeMade, "", release, unanswered), 3, stepWait, nil},
		"in use":                   {at(v1alpha1.VolumeMade, "Busy", release), 2, stepTakeBack, drivebay.ErrBusy},
		"was in use before":        {at(v1alpha1.VolumeMade, "Busy", release), 0, stepRequest, nil},
		"a drive is missing":       {at(v1alpha1.VolumeReleasing, "Unavailable", release), 2, stepFail, drivebay.ErrUnavailable},
		"a drive was missing":      {at(v1alpha1.VolumeReleasing, "Unavailable", release), 0, stepRequest, nil},
		"nothing is left":          {at(v1alpha1.VolumeReleased, "", release), 2, stepWait, nil},
		"deleted, object is there": {at(v1alpha1.VolumeReleasing, "", release), 2, stepWait, nil},
	} {
		if got, err := c.s.delete(c.asked); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}

func TestCreateSnapshot(t *testing.T) {
	for name, c := range map[string]struct {
		s     volumeState
		of    string
		asked int64
		want  step
		err   error
	}{
		"just requested":    {at("", ""), "v", 2, stepWait, nil},
		"made":              {at(v1alpha1.VolumeMade, ""), "v", 0, stepDone, nil},
		"of another volume": {at(v1alpha1.VolumeMade, ""), "w", 0, stepFail, drivebay.ErrExists},
		"missing":           {at(v1alpha1.VolumeMissing, ""), "v", 0, stepFail, drivebay.ErrUnavailable},
		"refused now":       {at(v1alpha1.VolumeRefused, "NoSpace"), "v", 2, stepReplace, drivebay.ErrNoSpace},
		"pending now":       {at(v1alpha1.VolumePending, "Unavailable"), "v", 2, stepFail, drivebay.ErrUnavailable},
		"pending before":    {at(v1alpha1.VolumePending, "Unavailable"), "v", 0, stepRequest, nil},
		"being deleted":     {at(v1alpha1.VolumeReleasing, "", release), "v", 0, stepFail, drivebay.ErrPending},
	} {
		if got, err := c.s.createSnapshot(c.of, "v", c.asked); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}

func TestExpand(t *testing.T) {
	to := func(size int64) func(*v1alpha1.Volume) {
		return func(o *v1alpha1.Volume) { o.Spec.Size.Required = size }
	}
	for name, c := range map[string]struct {
		s     volumeState
		r     drivebay.SizeRange
		asked int64
		want  step
		err   error
	}{
		"large enough":       {at(v1alpha1.VolumeMade, ""), drivebay.SizeRange{Required: gib}, 0, stepDone, nil},
		"too large":          {at(v1alpha1.VolumeMade, ""), drivebay.SizeRange{Required: 1, Limit: 2}, 0, stepFail, drivebay.ErrRange},
		"invalid":            {at(v1alpha1.VolumeMade, ""), drivebay.SizeRange{Required: 3 * gib, Limit: 2}, 0, stepFail, drivebay.ErrInvalid},
		"larger":             {at(v1alpha1.VolumeMade, ""), drivebay.SizeRange{Required: 2 * gib}, 0, stepRequest, nil},
		"requested":          {at(v1alpha1.VolumeMade, "", to(2*gib), unanswered), drivebay.SizeRange{Required: 2 * gib}, 3, stepWait, nil},
		"requested, smaller": {at(v1alpha1.VolumeMade, "", to(2*gib), unanswered), drivebay.SizeRange{Required: 3 * gib}, 3, stepRequest, nil},
		"no room":            {at(v1alpha1.VolumeMade, "NoSpace", to(2*gib)), drivebay.SizeRange{Required: 2 * gib}, 2, stepTakeBack, drivebay.ErrNoSpace},
		"had no room":        {at(v1alpha1.VolumeMade, "NoSpace", to(2*gib)), drivebay.SizeRange{Required: 2 * gib}, 0, stepRequest, nil},
		"moves first":        {at(v1alpha1.VolumeMade, "Pending", to(2*gib)), drivebay.SizeRange{Required: 2 * gib}, 2, stepFail, drivebay.ErrPending},
		"an older node":      {at(v1alpha1.VolumeMade, "", to(2*gib)), drivebay.SizeRange{Required: 2 * gib}, 2, stepFail, drivebay.ErrUnavailable},
		"not made":           {at("", ""), drivebay.SizeRange{Required: 2 * gib}, 0, stepFail, drivebay.ErrUnavailable},
		"being deleted":      {at(v1alpha1.VolumeMade, "", release), drivebay.SizeRange{Required: 2 * gib}, 0, stepFail, drivebay.ErrPending},
	} {
		if got, err := c.s.expand(c.r, c.asked); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}
