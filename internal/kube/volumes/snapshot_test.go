package volumes

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/internal/translate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func snapshot(attempt int64, phase v1alpha1.VolumePhase, code, release string) *v1alpha1.Snapshot {
	o := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: drivebay.SnapshotID("a"), Generation: attempt + 1}}
	o.Spec = v1alpha1.SnapshotSpec{Node: "n", Name: "a", Attempt: attempt, Volume: drivebay.VolumeID("v"), Release: release}
	if o.Status.Phase = phase; phase != "" {
		o.Status.ObservedGeneration = o.Generation
	}
	if code != "" {
		o.Status.Error = &v1alpha1.VolumeError{Code: code}
	}
	return o
}

// TestSnapshot: which call the object of a snapshot requests, and its phase afterwards. A made snapshot that the node does not find is
// unavailable.
func TestSnapshot(t *testing.T) {
	const release = v1alpha1.ReleaseDelete
	now := time.Unix(1000, 0)
	there := &drivebay.VolumeSnapshot{ID: drivebay.SnapshotID("a"), Size: gib}
	for name, c := range map[string]struct {
		o     *v1alpha1.Snapshot
		v     *drivebay.VolumeSnapshot
		out   outcome
		want  call
		phase v1alpha1.VolumePhase
	}{
		"new":                        {snapshot(1, "", "", ""), nil, outcome{did: callCreate, err: nil, listed: true}, callCreate, v1alpha1.VolumePending}, // the set follows
		"made":                       {snapshot(1, "", "", ""), there, outcome{did: callCreate, err: nil, listed: true}, callCreate, v1alpha1.VolumeMade},
		"no space":                   {snapshot(1, "", "", ""), nil, outcome{did: callCreate, err: drivebay.ErrNoSpace, listed: true}, callCreate, v1alpha1.VolumeRefused},
		"a drive is away":            {snapshot(1, "", "", ""), nil, outcome{did: callCreate, err: drivebay.ErrUnavailable, listed: true}, callCreate, v1alpha1.VolumePending},
		"another has the name":       {snapshot(1, "", "", ""), there, outcome{did: callCreate, err: drivebay.ErrExists, listed: true}, callCreate, v1alpha1.VolumeRefused},
		"not verified":               {snapshot(1, "", "", ""), there, outcome{did: callCreate, err: drivebay.ErrUnavailable, listed: true}, callCreate, v1alpha1.VolumePending},
		"at rest":                    {snapshot(1, v1alpha1.VolumeMade, "", ""), there, outcome{listed: true}, callNone, v1alpha1.VolumeMade},
		"gone":                       {snapshot(1, v1alpha1.VolumeMade, "", ""), nil, outcome{listed: true}, callNone, v1alpha1.VolumeMissing},
		"gone, perhaps":              {snapshot(1, v1alpha1.VolumeMade, "", ""), nil, outcome{}, callNone, v1alpha1.VolumeMade},
		"back":                       {snapshot(1, v1alpha1.VolumeMissing, "", ""), there, outcome{listed: true}, callNone, v1alpha1.VolumeMade},
		"made on the node":           {snapshot(0, "", "", ""), there, outcome{listed: true}, callNone, v1alpha1.VolumeMade},
		"made on the node, and gone": {snapshot(0, "", "", ""), nil, outcome{listed: true}, callNone, v1alpha1.VolumeMissing},
		"deleted":                    {snapshot(2, v1alpha1.VolumeMade, "", release), nil, outcome{did: callDelete, err: nil, listed: true}, callDelete, v1alpha1.VolumeReleased},
		"deleted, still in the set":  {snapshot(2, v1alpha1.VolumeMade, "", release), there, outcome{did: callDelete, err: nil, listed: true}, callDelete, v1alpha1.VolumeReleased},
		"deleted before the restart": {snapshot(2, v1alpha1.VolumeReleased, "", release), nil, outcome{listed: true}, callDelete, v1alpha1.VolumeReleased},
		"cannot be deleted":          {snapshot(2, v1alpha1.VolumeMade, "", release), there, outcome{did: callDelete, err: drivebay.ErrRefused, listed: true}, callDelete, v1alpha1.VolumeMade},
		"deleted later":              {snapshot(2, v1alpha1.VolumeMade, "", release), there, outcome{did: callDelete, err: drivebay.ErrUnavailable, listed: true}, callDelete, v1alpha1.VolumeReleasing},
	} {
		if got := requestedSnapshot(c.o, c.v); got != c.want {
			t.Errorf("%s: call %d, want %d", name, got, c.want)
		}
		s := answerSnapshot(c.o, c.v, c.out, now)
		if (s.Unavailable != "") != (c.v == nil && translate.IsMade(s.Phase)) {
			t.Errorf("%s: phase %s, found %v, unavailable %q", name, s.Phase, c.v != nil, s.Unavailable)
		}
		if s.Phase != c.phase || s.ObservedGeneration != c.o.Generation || (s.Error != nil) != (c.out.err != nil) || c.v != nil && s.Capacity != gib {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
