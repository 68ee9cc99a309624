//go:build root

package volume_test

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestRootVolumes makes volumes on drives of the machine itself, loses the store,
// finds them again and removes them. Loop devices do not know the names of
// partitions that the kernel was told of, like all others.
func TestRootVolumes(t *testing.T) {
	r := loopRig(t, 2)
	e, mgr, stop := r.start(t)
	made := map[string]drivebay.Volume{}
	for name, req := range requestsOnPartitions() {
		req.Name, req.Size.Required = name, 320<<20
		made[name] = makeAndGrow(t, e, req)
	}
	if err := mgr.Refresh(t.Context()); err != nil {
		t.Error(err)
	}
	for _, d := range mgr.Snapshot().Drives {
		if why := d.Refusals(); d.Claim != nil && len(why) > 0 {
			t.Errorf("drive %s takes no more: %q", d.Name, why)
		}
	}
	stop()
	e, _, _ = r.start(t)
	for name, v := range made {
		is, ok := e.Volumes().Get(v.ID)
		if !ok || is.Size != v.Size || is.FSType != v.FSType || is.FSUUID != v.FSUUID || is.Mode != v.Mode || is.CSIStatus != drivebay.CSICreated {
			t.Errorf("%s: made %+v\nfound %+v", name, v, is)
		}
		if err := e.DeleteVolume(t.Context(), v.ID); err != nil {
			t.Error(err)
		}
	}
	c, err := e.Capacity(t.Context(), requestsOnPartitions()["a partition"].Class)
	if want := uint64(2<<30 - 2<<20); err != nil || c.Largest != want || c.Available != 2*want {
		t.Errorf("in the end %+v, %v", c, err)
	}
}

// makeAndGrow grows a volume where there is room behind it.
func makeAndGrow(t *testing.T, e *volume.Engine, r drivebay.VolumeRequest) drivebay.Volume {
	t.Helper()
	v, err := e.CreateVolume(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	grown, _, err := e.ExpandVolume(t.Context(), v.ID, drivebay.SizeRange{Required: v.Size + 16<<20})
	switch {
	case err == nil:
		return grown
	case !errors.Is(err, drivebay.ErrNoSpace):
		t.Error(err)
	}
	return v
}
