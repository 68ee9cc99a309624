package addons

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/csi-addons/spec/lib/go/identity"
	"github.com/drivebay/drivebay"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestGetIdentity(t *testing.T) {
	_, conn, _ := rig(t, nil)
	r, err := identity.NewIdentityClient(conn).GetIdentity(t.Context(), &identity.GetIdentityRequest{})
	if err != nil || r.Name != "drivebay.io" || r.VendorVersion != "v9" {
		t.Errorf("%v, %v", r, err)
	}
}

// What is told is what the machine has, and is told in time.
func TestGetCapabilities(t *testing.T) {
	volumes := []string{"CONTROLLER_SERVICE", "OFFLINE", "NODE_SERVICE", "ONLINE"}
	for name, c := range map[string]struct {
		volumes Volumes
		want    []string
	}{
		"no volumes":    {nil, nil},
		"volumes":       {there(), append(slices.Clone(volumes), "ENCRYPTIONKEYROTATION")},
		"no cryptsetup": {&memory{encrypts: drivebay.ErrNoSupport}, volumes},
		"no answer":     {&memory{encrypts: drivebay.ErrTimeout}, volumes},
	} {
		_, conn, _ := rig(t, c.volumes)
		began := time.Now()
		r, err := identity.NewIdentityClient(conn).GetCapabilities(t.Context(), &identity.GetCapabilitiesRequest{})
		if err != nil || time.Since(began) > 2*capabilityTime {
			t.Fatalf("%s: %v after %v", name, err, time.Since(began))
		}
		var got []string
		for _, c := range r.Capabilities {
			got = append(got, kindOf(c))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func kindOf(c *identity.Capability) string {
	switch k := c.Type.(type) {
	case *identity.Capability_Service_:
		return k.Service.Type.String()
	case *identity.Capability_ReclaimSpace_:
		return k.ReclaimSpace.Type.String()
	case *identity.Capability_EncryptionKeyRotation_:
		return k.EncryptionKeyRotation.Type.String()
	}
	return fmt.Sprint(c)
}

// TestProbe has the two rows of the table of errors, and what is no error.
func TestProbe(t *testing.T) {
	m := there()
	e, conn, _ := rig(t, m)
	listed := m.Volumes()
	for _, c := range []struct {
		name    string
		drives  drivebay.Snapshot
		volumes *drivebay.VolumeSet
		missing []string
		ready   bool
		code    codes.Code
	}{
		{"nothing is known yet", drivebay.Snapshot{}, &drivebay.VolumeSet{}, nil, false, codes.OK},
		{"the drives are", drivebay.Snapshot{Seq: 1}, &drivebay.VolumeSet{}, nil, false, codes.OK},
		{"the volumes, too", drivebay.Snapshot{Seq: 1}, listed, nil, true, codes.OK},
		{"a dependency is missing", drivebay.Snapshot{Seq: 1}, listed, []string{"the store is full", "no lvm"}, false, codes.FailedPrecondition},
		{"and was from the beginning", drivebay.Snapshot{}, &drivebay.VolumeSet{}, []string{"the store is full", "no lvm"}, false, codes.FailedPrecondition},
	} {
		e.set(c.drives, c.missing...)
		m.set.Store(c.volumes)
		began := time.Now()
		r, err := identity.NewIdentityClient(conn).Probe(t.Context(), &identity.ProbeRequest{})
		if status.Code(err) != c.code || r.GetReady().GetValue() != c.ready || err == nil && r.Ready == nil || time.Since(began) > time.Second {
			t.Errorf("%s: %v, %v after %v", c.name, r, err, time.Since(began))
		}
		if err != nil && !strings.Contains(err.Error(), "the store is full; no lvm") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// withoutDRBD replicates nothing.
type withoutDRBD struct {
	Replication
	why error
}

func (w withoutDRBD) Replicates(context.Context) error { return w.why }

// TestProbeWithoutDRBD: a machine that lacks DRBD is not ready if it has replicated volumes. One that was not asked yet, or has none,
// is ready.
func TestProbeWithoutDRBD(t *testing.T) {
	lacking := fmt.Errorf("no drbdmeta: %w: install drbd-utils", drivebay.ErrNoSupport)
	for name, c := range map[string]struct {
		r    *drivebay.Replication
		why  error
		code codes.Code
	}{
		"no replicated volume":        {nil, lacking, codes.OK},
		"one":                         {&drivebay.Replication{Disk: 1}, lacking, codes.FailedPrecondition},
		"one whose replication ended": {&drivebay.Replication{Disk: 1, Ended: true}, lacking, codes.OK},
		"not asked yet":               {&drivebay.Replication{Disk: 1}, drivebay.ErrUnavailable, codes.OK},
		"all is there":                {&drivebay.Replication{Disk: 1}, nil, codes.OK},
	} {
		m := there()
		set := *m.Volumes()
		set.Volumes = []*drivebay.VolumeView{{Volume: drivebay.Volume{ID: "v", Replication: c.r}}}
		m.set.Store(&set)
		e := &engine{}
		e.set(drivebay.Snapshot{Seq: 1})
		conn := dial(t, serve(t, New(e, Options{Volumes: m, Replication: withoutDRBD{why: c.why}})))
		_, err := identity.NewIdentityClient(conn).Probe(t.Context(), &identity.ProbeRequest{})
		if status.Code(err) != c.code || c.code != codes.OK && !strings.Contains(err.Error(), "install drbd-utils") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
