//go:build kube

package apisuite

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/csi/csitest"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/kube/client"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
)

// pods use the volumes of a node, and patch their objects.
type pods struct {
	*testing.T
	a   *API
	n   *node
	all client.Volumes
}

func (p pods) make(name string) drivebay.Volume {
	p.Helper()
	v, err := p.n.engine.CreateVolume(p.Context(), requestFor(name, gib))
	if err != nil {
		p.Fatal(err)
	}
	p.n.object(p.T, p.all, name, "is shown", isPhase(v1alpha1.VolumeMade))
	return v
}

func (p pods) path(v drivebay.Volume) string { return kubelet + "/plugins/" + v.ID }

func (p pods) stage(v drivebay.Volume) error {
	p.Helper()
	if err := (csitest.Simulated{Machine: p.n.sim, Root: kubelet}).MakeFolder(p.path(v)); err != nil {
		p.Fatal(err)
	}
	return p.n.engine.StageVolume(p.Context(), drivebay.StageRequest{Volume: v.ID, Path: p.path(v), Access: drivebay.AccessWriter})
}

func (p pods) unstage(v drivebay.Volume) {
	p.Helper()
	if err := p.n.engine.UnstageVolume(p.Context(), v.ID, p.path(v)); err != nil {
		p.Fatal(err)
	}
}

func (p pods) patch(v drivebay.Volume, spec string) {
	p.Helper()
	p.a.Kubectl(p.T, "", "patch", "volumes.drivebay.io", v.ID, "--type=merge", "-p", `{"spec":{`+spec+`}}`)
}

// condition waits until a condition of a volume has a reason.
func (p pods) condition(v drivebay.Volume, kind, reason string) *v1alpha1.Volume {
	p.Helper()
	return p.n.object(p.T, p.all, v.Name, "has "+kind+" "+reason, func(o *v1alpha1.Volume) bool {
		c := apimeta.FindStatusCondition(o.Status.Conditions, kind)
		return c != nil && c.Reason == reason
	})
}

// drive returns the drive of a volume.
func (p pods) drive(v drivebay.Volume) string {
	p.Helper()
	is, ok := p.n.engine.Volumes().Get(v.ID)
	if !ok {
		p.Fatalf("volume %s is gone", v.Name)
	}
	return is.Location.Drives[0]
}

func (p pods) operate(drive string, do drivebay.LeaveVerb) {
	p.Helper()
	if err := p.n.drives.Operate(p.Context(), drive, do, "a test"); err != nil {
		p.Fatal(err)
	}
}

func (p pods) usage(v drivebay.Volume, want drivebay.VolumeUsage) {
	p.Helper()
	eventually(p.T, fmt.Sprintf("volume %s is %v", v.Name, want), func() bool {
		is, ok := p.n.engine.Volumes().Get(v.ID)
		return ok && is.Usage == want
	})
}

// TestKubeReleaseFrom: spec.releaseFrom lets a drive leave with the data of a volume, once, and only the drive that it
// names. The volume is never empty: a pod that still wants it is refused.
func TestKubeReleaseFrom(t *testing.T) {
	a := Up(t)
	p := pods{t, a, newNode(t, a, "node-1", 1), volumesOf(t, a)} // one drive: there is no other to move to
	v := p.make("data-db-0")
	drive := p.drive(v)
	if out := a.Refused(t, "", "", "patch", "volumes.drivebay.io", v.ID, "--type=merge", "-p", `{"spec":{"releaseFrom":"nguid-0"}}`); !strings.Contains(out, "the id of a drive that the volume is on") {
		t.Error(out)
	}
	request := fmt.Sprintf(`"releaseFrom":%q`, drive)
	p.patch(v, request)
	o := p.condition(v, v1alpha1.VolumeReleasedFrom, "Invalid")
	if c := apimeta.FindStatusCondition(o.Status.Conditions, v1alpha1.VolumeReleasedFrom); !strings.Contains(c.Message, "none of its drives has to leave") {
		t.Errorf("%+v", c)
	}

	// The answer was given before the drive had to leave: it is not a consent to that.
	p.operate(drive, drivebay.LeaveRelease)
	p.usage(v, drivebay.VolumeReleasing)
	p.n.stopKube()
	p.n.startKube(t, a)
	p.usage(v, drivebay.VolumeReleasing)
	time.Sleep(2 * time.Second)
	p.usage(v, drivebay.VolumeReleasing)

	if err := p.stage(v); err != nil {
		t.Fatal(err)
	}
	p.patch(v, `"releaseFrom":null`)
	p.patch(v, request)
	p.condition(v, v1alpha1.VolumeReleasedFrom, "InUse")
	p.unstage(v)
	p.condition(v, v1alpha1.VolumeReleasedFrom, "Released")
	p.usage(v, drivebay.VolumeReleased)
	if err := p.stage(v); !errors.Is(err, drivebay.ErrRefused) {
		t.Errorf("a pod gets a volume that was released: %v", err)
	}
	eventually(t, "the drive is released", func() bool {
		d, ok := p.n.drives.Snapshot().Get(drive)
		return ok && d.Usage == drivebay.UsageReleased
	})

	// The drive stays after all: the volume has its data. The next time it leaves, it waits for the volume again.
	p.operate(drive, drivebay.LeaveCancel)
	p.usage(v, drivebay.VolumeInUse)
	if err := p.stage(v); err != nil {
		t.Error(err)
	}
	p.unstage(v)
	p.operate(drive, drivebay.LeaveRelease)
	time.Sleep(2 * time.Second)
	p.usage(v, drivebay.VolumeReleasing)

	a.buildDaemon(t)
	a.ran(t, a.Kubeconfig, []string{"volume", "release", v.Name}, "released") // the same text, requested again
	p.usage(v, drivebay.VolumeReleased)
}

// TestKubeForget: spec.forget gives up a volume whose drive is gone, once, and only one on the drive that it names. The
// answer that it got while the drive was here is no consent for later.
func TestKubeForget(t *testing.T) {
	a := Up(t)
	p := pods{t, a, newNode(t, a, "node-1", 2), volumesOf(t, a)}
	v := p.make("data-db-0")
	drive := p.drive(v)
	if out := a.Refused(t, "", "", "patch", "volumes.drivebay.io", v.ID, "--type=merge", "-p", `{"spec":{"forget":"nguid-0"}}`); !strings.Contains(out, "the id of a drive that the volume is on") {
		t.Error(out)
	}
	request := fmt.Sprintf(`"forget":%q`, drive)
	p.patch(v, request)
	o := p.condition(v, v1alpha1.VolumeForgotten, "Refused")
	if c := apimeta.FindStatusCondition(o.Status.Conditions, v1alpha1.VolumeForgotten); !strings.Contains(c.Message, "is here") {
		t.Errorf("%+v", c)
	}
	d, _ := p.n.drives.Snapshot().Get(drive)
	serial := d.Serial // by which the simulator knows a drive that is gone
	fault := func(name string) {
		t.Helper()
		if err := p.n.sim.Inject(hostsim.Fault{Drive: serial, Fault: name}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(what string, is func(v *drivebay.VolumeView, known bool) bool) {
		t.Helper()
		eventually(t, what, func() bool { return is(p.n.engine.Volumes().Get(v.ID)) })
	}
	missing := func(v *drivebay.VolumeView, known bool) bool { return known && v.OperationalStatus == drivebay.Missing }
	fault("vanish")
	is("the volume is missing", missing)
	p.n.stopKube()
	p.n.startKube(t, a)
	time.Sleep(3 * time.Second)
	is("an answered request is not repeated", missing)

	p.patch(v, `"forget":null`)
	p.patch(v, request)
	is("the node has no record of it", func(_ *drivebay.VolumeView, known bool) bool { return !known })
	o = p.condition(v, v1alpha1.VolumeForgotten, "Forgotten")
	if o.Status.Forget != drive || o.Status.Error != nil {
		t.Errorf("%+v", o.Status)
	}
	p.n.object(t, p.all, v.Name, "is missing", isPhase(v1alpha1.VolumeMissing))

	// The drive returns, with the volume on it, and is pulled once more: the volume was not given up this time.
	fault("return")
	is("the volume is here again", func(v *drivebay.VolumeView, known bool) bool { return known && v.OperationalStatus != drivebay.Missing })
	fault("vanish")
	is("the volume is missing", missing)
	time.Sleep(3 * time.Second)
	is("the old request takes nothing", missing)
}
