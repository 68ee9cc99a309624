package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
)

// emptyAPI is an API server that shows no objects and keeps those that are made.
type emptyAPI struct{ made []*v1alpha1.Volume }

func (a *emptyAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	code, text := http.StatusNotFound, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	switch r.Method {
	case http.MethodDelete:
		code, text = http.StatusOK, []byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	case http.MethodPost:
		o := &v1alpha1.Volume{}
		if err := json.NewDecoder(r.Body).Decode(o); err != nil {
			return nil, err
		}
		o.UID, o.ResourceVersion, o.Generation = "made", "100", 1
		a.made = append(a.made, o)
		code, text = http.StatusCreated, nil
		text, _ = json.Marshal(o)
	}
	return &http.Response{StatusCode: code, Status: fmt.Sprint(code), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(text))), Request: r}, nil
}

// leadingOver returns a controller that leads a cluster whose node n is down and whose node m has room.
func leadingOver(t *testing.T) (*Controller, *emptyAPI) {
	t.Helper()
	api := &emptyAPI{}
	config, err := client.New(&rest.Config{Host: "http://api", Transport: api})
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Log: slog.New(slog.DiscardHandler), Objects: client.NewVolumes(config), Snapshots: client.NewSnapshots(config)})
	_ = c.objects.Replace(nil, "")
	_ = c.objects.snapshots.Replace(nil, "")
	now := time.Now()
	_ = c.nodes.Replace([]any{roomy("n", now.Add(-time.Hour)), roomy("m", now)}, "")
	_ = c.nodes.Update(roomy("m", now.Add(time.Second)))
	c.objects.nodesChanged(c.nodes.look())
	c.Lead()
	return c, api
}

// roomy is the Lease of a node with room.
func roomy(node string, renewed time.Time) *coordinationv1.Lease {
	l := lease(node, renewed)
	l.Annotations["drivebay.io/report"] = `{"mirrored":true,"whole":true,"smallest":{"ext4":1,"":1},"room":{"any/partition":{"available":100000000000,"largest":100000000000}}}`
	return l
}

// TestVolumeIsMadeOnce: while the node of a deleted object may be making its volume, no other node is asked for the volume, also not
// by a later call. A node that is gone for good is not asked.
func TestVolumeIsMadeOnce(t *testing.T) {
	for name, c := range map[string]struct {
		phase v1alpha1.VolumePhase
		gone  bool
		want  string
	}{
		"being made":           {"", false, "n"},
		"made":                 {v1alpha1.VolumeMade, false, "n"},
		"refused":              {v1alpha1.VolumeRefused, false, "m"},
		"nothing is left":      {v1alpha1.VolumeReleased, false, "m"},
		"the node never comes": {v1alpha1.VolumeMade, true, "m"},
	} {
		synctest.Test(t, func(t *testing.T) { // its time passes while nothing works
			k, api := leadingOver(t)
			o := numbered(1, 5, "n")
			o.Generation, o.Status.ObservedGeneration, o.Status.Phase = 1, 1, c.phase
			k.objects.put(o)
			_ = k.objects.Delete(o) // by a person, before the call
			if c.gone {
				_ = k.nodes.Delete(lease("n", time.Now()))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond) // no node answers
			r := requested()
			r.Name = "1"
			_, err := k.CreateVolume(ctx, r)
			cancel()
			if err == nil || len(api.made) != 1 || api.made[0].Spec.Node != c.want {
				t.Errorf("%s: %d requests, want one of node %s: %v", name, len(api.made), c.want, err)
			}
		})
	}
}

// TestNodeGoneForGood: the volume of a node that is gone for good is deleted once the Lease of the node and then the Volume object are
// deleted, as docs/kubernetes.md says. Nothing is remembered of it.
func TestNodeGoneForGood(t *testing.T) {
	c, _ := leadingOver(t)
	now := time.Now()
	c.nodes.now = func() time.Time { return now }
	o := numbered(1, 5, "n")
	c.objects.put(o)
	o = o.DeepCopy()
	o.Spec.Release, o.ResourceVersion, o.Generation = v1alpha1.ReleaseDelete, "6", 2
	c.objects.put(o) // by DeleteVolume of the claim
	fails := func(when string) {
		t.Helper()
		if err := c.DeleteVolume(t.Context(), o.Name); !errors.Is(err, drivebay.ErrUnavailable) {
			t.Errorf("%s: %v", when, err)
		}
	}
	fails("the node is down")
	_ = c.nodes.Delete(lease("n", now))
	fails("its Lease is deleted")
	_ = c.objects.Delete(o)
	fails("its Volume object is deleted, and no node has reported since")
	now = now.Add(2 * showTime)
	_ = c.nodes.Update(roomy("m", now))
	if err := c.DeleteVolume(t.Context(), o.Name); err != nil {
		t.Errorf("the other nodes do not have it: %v", err)
	}
	other := numbered(2, 7, "m")
	c.objects.put(other)
	c.objects.lost[o.Name] = lost{"n", now.Add(-2 * keepLost)}
	if _ = c.objects.Delete(other); len(c.objects.lost) != 1 {
		t.Errorf("remembered: %v", c.objects.lost)
	}
}

// TestMovedObjectRequestsNothing: what was requested of a node is not requested of the node that is to adopt the volume.
func TestMovedObjectRequestsNothing(t *testing.T) {
	c, api := leadingOver(t)
	o := numbered(1, 5, "n")
	o.Status.Phase, o.Spec.Attempt = v1alpha1.VolumeMoved, 1
	o.Spec.Adopt, o.Spec.Forget, o.Spec.ReleaseFrom, o.Spec.Heal = "m", "d", "d", "1"
	c.objects.put(o)
	if err := c.moveObject(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if is := api.made[0].Spec; is.Node != "m" || is.Adopt != "m" || is.Attempt != 0 || is.Forget != "" || is.ReleaseFrom != "" || is.Heal != "" {
		t.Errorf("it requests %+v", is)
	}
}

// TestRefusedObjectIsNotMoved: a node that has refused to give up a volume has its drives. That it restarts gives its object to no other node.
func TestRefusedObjectIsNotMoved(t *testing.T) {
	for name, c := range map[string]struct {
		answered string
		phase    v1alpha1.VolumePhase
		want     int
	}{"not answered": {"", v1alpha1.VolumeMade, 1}, "refused": {"m", v1alpha1.VolumeMade, 0}, "given up": {"m", v1alpha1.VolumeMoved, 1}} {
		k, _ := leadingOver(t)
		o := numbered(1, 5, "n")
		o.Status.Phase, o.Status.Adopt, o.Spec.Adopt = c.phase, c.answered, "m"
		k.objects.put(o)
		if got := k.objects.leaving(func(string) string { return "it is down" }); len(got) != c.want {
			t.Errorf("%s: %d objects move", name, len(got))
		}
	}
}
