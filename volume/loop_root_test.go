//go:build root

package volume_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// loopDrives are drives over files, which the kernel really writes to.
func loopDrives(t *testing.T, n int) (serials []string) {
	t.Helper()
	for range n {
		file := filepath.Join(t.TempDir(), "drive")
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 2<<30)); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("losetup", "--find", "--show", file).Output()
		if err != nil {
			t.Fatalf("losetup: %v", err)
		}
		dev := strings.TrimSpace(string(out))
		t.Cleanup(func() {
			for n := 1; n <= 8; n++ { // a loop device keeps its partitions when its file goes, for whoever has it next
				_ = exec.Command("delpart", dev, strconv.Itoa(n)).Run()
			}
			if err := exec.Command("losetup", "--detach", dev).Run(); err != nil {
				t.Errorf("losetup --detach %s: %v", dev, err)
			}
		})
		serials = append(serials, file)
	}
	return serials
}

// TestRootVolumes makes volumes on drives of the machine itself, loses the store,
// finds them again and removes them. Loop devices do not know the names of
// partitions that the kernel was told of, like all others.
func TestRootVolumes(t *testing.T) {
	drives := loopDrives(t, 2)
	machine, err := host.Real("/")
	if err != nil {
		t.Fatal(err)
	}
	var claim drivebay.Selectors
	if err := claim.UnmarshalText([]byte("serial=" + drives[0] + "; serial=" + drives[1])); err != nil {
		t.Fatal(err)
	}
	life := func(test func(*volume.Engine, *drivemgr.Manager)) {
		ctx, cancel := context.WithCancel(t.Context())
		st := store.Memory()
		mgr := drivemgr.New(machine, st, drivemgr.Options{Claim: claim, Loop: true})
		ended := make(chan error, 2)
		go func() { ended <- mgr.Run(ctx) }()
		for claimed := 0; claimed < len(drives); {
			s, err := mgr.Wait(ctx, mgr.Snapshot().Seq)
			if err != nil {
				t.Fatal(err)
			}
			claimed = 0
			for _, d := range s.Drives {
				if d.Claim != nil {
					claimed++
				}
			}
		}
		e, err := volume.New(machine, mgr, st, nil, volume.Options{})
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- e.Run(ctx) }()
		for err = e.DeleteVolume(ctx, "none of that id"); err != nil; err = e.DeleteVolume(ctx, "none of that id") {
			if !errors.Is(err, drivebay.ErrBusy) {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond) // not everything has been listed
		}
		test(e, mgr)
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	}
	requests := map[string]drivebay.VolumeRequest{}
	for name, r := range requestsOnPartitions() {
		r.Name, r.Size.Required = name, 320<<20
		requests[name] = r
	}
	made := map[string]drivebay.Volume{}
	life(func(e *volume.Engine, mgr *drivemgr.Manager) {
		for name, r := range requests {
			v, err := e.CreateVolume(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			grown, _, err := e.ExpandVolume(t.Context(), v.ID, drivebay.SizeRange{Required: v.Size + 16<<20})
			if err != nil && !errors.Is(err, drivebay.ErrNoSpace) {
				t.Error(err)
			}
			if err == nil {
				v = grown
			}
			made[name] = v
		}
		if err := mgr.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
		for _, d := range mgr.Snapshot().Drives {
			if why := d.Refusals(); d.Claim != nil && len(why) > 0 {
				t.Errorf("drive %s takes no more: %q", d.Name, why)
			}
		}
	})
	life(func(e *volume.Engine, mgr *drivemgr.Manager) {
		for name, v := range made {
			is, ok := e.Volumes().Get(v.ID)
			if !ok || is.Size != v.Size || is.FSType != v.FSType || is.FSUUID != v.FSUUID || is.Mode != v.Mode || is.CSIStatus != drivebay.CSICreated {
				t.Errorf("%s: made %+v\nfound %+v", name, v, is)
			}
			if err := e.DeleteVolume(t.Context(), v.ID); err != nil {
				t.Error(err)
			}
		}
		c, err := e.Capacity(t.Context(), requests["a partition"].Class)
		if want := uint64(2<<30 - 2<<20); err != nil || c.Largest != want || c.Available != 2*want {
			t.Errorf("in the end %+v, %v", c, err)
		}
	})
}
