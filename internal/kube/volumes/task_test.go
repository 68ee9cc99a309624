package volumes

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replicas is an engine that notes the calls of replication.
type replicas struct {
	Engine
	got []drivebay.ReplicationCall
	err error
}

func (r *replicas) PromoteVolume(_ context.Context, c drivebay.ReplicationCall) error {
	r.got = append(r.got, c)
	return r.err
}

// TestTask: a task is done once, whatever comes of it, with the secret of the node.
func TestTask(t *testing.T) {
	ask := func(request string, answered string) *v1alpha1.Volume {
		o := object(1, v1alpha1.VolumeMade, "")
		o.Spec.Task = &v1alpha1.VolumeTask{Request: request, Do: v1alpha1.TaskPromote, Force: true, Until: metav1.Time{Time: time.Now().Add(time.Minute)}}
		if answered != "" {
			o.Status.Task = &v1alpha1.VolumeTaskAnswer{Request: answered}
		}
		return o
	}
	v := usedAs(drivebay.VolumeInUse, false)
	releasing := ask("1", "")
	releasing.Spec.Release = v1alpha1.ReleaseDelete
	for name, c := range map[string]struct {
		o    *v1alpha1.Volume
		v    *drivebay.VolumeView
		want call
	}{
		"asked": {ask("1", ""), v, callTask}, "answered": {ask("1", "1"), v, callNone}, "another": {ask("2", "1"), v, callTask},
		"it is missing": {ask("1", ""), nil, callNone}, "found": {ask("1", ""), volume(drivebay.CSIUnknown), callNone}, "being deleted": {releasing, v, callDelete},
	} {
		if got := requested(c.o, c.v); got != c.want {
			t.Errorf("%s: call %d, want %d", name, got, c.want)
		}
	}

	e := &replicas{}
	n := &Node{opt: Options{Name: "n", Engine: e, ReplicationSecret: func() (string, error) { return "s", nil }}}
	n.volumes = newPart(&n.opt, n.kindOfVolumes())
	o := ask("1", "")
	for _, err := range []error{nil, drivebay.ErrUnavailable, drivebay.ErrRefused} {
		e.err = err
		o.Spec.Task.Request += "1"
		n.runVolume(t.Context(), o, callTask)
		out := n.runVolume(t.Context(), o, callTask)
		out.listed = true
		s := answer(o, v, out, time.Unix(1000, 0))
		if s.Task == nil || s.Task.Request != o.Spec.Task.Request || (s.Task.Error == nil) != (err == nil) || s.Error != nil || s.Phase != v1alpha1.VolumeMade {
			t.Errorf("%v: %+v, error %v, %v", err, s.Task, s.Error, s.Phase)
		}
		done := o.DeepCopy()
		if done.Status = s; requested(done, v) != callNone {
			t.Errorf("%v: it is done again", err)
		}
		done.Spec.Task = nil
		if s := answer(done, v, outcome{listed: true}, time.Unix(2000, 0)); s.Task != nil {
			t.Error("the answer stays without the task")
		}
	}
	if len(e.got) != 3 || !e.got[0].Force || e.got[0].Volume != o.Name || e.got[0].Secrets[drivebay.SecretReplication] != "s" {
		t.Errorf("%+v", e.got)
	}
	n.opt.ReplicationSecret = nil
	o.Spec.Task.Request = "no secret"
	if out := n.runVolume(t.Context(), o, callTask); !errors.Is(out.err, drivebay.ErrRefused) || len(e.got) != 3 {
		t.Errorf("without a secret: %v", out.err)
	}
	o.Spec.Task.Do, o.Spec.Task.Request = "SomethingNew", "new"
	n.opt.ReplicationSecret = func() (string, error) { return "s", nil }
	if out := n.runVolume(t.Context(), o, callTask); !errors.Is(out.err, drivebay.ErrNoSupport) {
		t.Errorf("an unknown task: %v", out.err)
	}
	late := ask("late", "")
	late.Spec.Task.Until = metav1.Time{Time: time.Now().Add(-time.Second)}
	if out := n.runVolume(t.Context(), late, callTask); !errors.Is(out.err, drivebay.ErrTimeout) || len(e.got) != 3 {
		t.Errorf("a task of a caller that has gone away: %v, %d calls", out.err, len(e.got))
	}
}
