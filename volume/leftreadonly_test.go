package volume_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// noBind is a machine that can refuse to bind devices.
type noBind struct {
	*hostsim.Machine
	refuses atomic.Bool
}

func (m *noBind) BindDevice(ctx context.Context, dev string, to host.Place, readOnly bool) error {
	if m.refuses.Load() {
		return errors.New("bind: no")
	}
	return m.Machine.BindDevice(ctx, dev, to, readOnly)
}

// TestLeftReadOnly: a block volume is published read-only, and the publication fails or its record is lost. The kernel still refuses writes
// to the device after the volume was unpublished and unstaged. It is deleted and wiped all the same.
func TestLeftReadOnly(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{
		"a partition": requests()["a partition"], "linear": requests()["a linear volume"], "encrypted": encryptedRequests()["a partition"],
	} {
		for _, lost := range []bool{false, true} {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				m := &noBind{Machine: s.sim}
				s.machine = m
				s.start()
				r.Class.Wipe = drivebay.WipeZero
				v := s.make("v", r)
				s.must(s.stage(v, with(rightKey)))
				m.refuses.Store(!lost)
				err := s.publish(v, "pod", func(r *drivebay.PublishRequest) { r.ReadOnly = true })
				if (err == nil) != lost {
					t.Fatalf("%s: published: %v", name, err)
				}
				if lost {
					s.withoutRecord(v)
				}
				s.must(s.unpublish(v, "pod"), s.unstage(v))
				if err := s.e.DeleteVolume(s.Context(), v.ID); err != nil {
					t.Errorf("%s, its record lost %t: deleted: %v", name, lost, err)
					return
				}
				s.blank()
			})
		}
	}
}
