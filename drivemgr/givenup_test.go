package drivemgr_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// givenUp is a machine whose adapter fails every query to one drive, as for a target that is gone. The
// device stays, with its size and state: libata does so with a drive that it has disabled while the link is
// up (drivers/ata/libata-eh.c, ata_eh_detach_dev).
type givenUp struct {
	host.Machine
	dev      string
	on, read atomic.Bool // read: the medium can still be read
}

func (m *givenUp) OpenDrive(ctx context.Context, dev string) (host.OpenDrive, error) {
	d, err := m.Machine.OpenDrive(ctx, dev)
	if err != nil || !m.on.Load() || dev != m.dev {
		return d, err
	}
	return disabledDrive{d, m}, nil
}

type disabledDrive struct {
	host.OpenDrive
	of *givenUp
}

func (d disabledDrive) Page(context.Context, host.Page) ([]byte, error) {
	return nil, fmt.Errorf("%w: no such device: host status 04h", host.ErrGone)
}

func (d disabledDrive) ReadMedium(p []byte, off int64) (int, error) {
	if !d.of.read.Load() {
		return 0, host.ErrUnreadable
	}
	return d.OpenDrive.ReadMedium(p, off)
}

// TestGivenUpByAdapter: a drive that the adapter has given up is BAD; one that only refuses queries is
// not known to be.
func TestGivenUpByAdapter(t *testing.T) {
	for _, read := range []bool{false, true} {
		m := &givenUp{}
		as := func(sim *hostsim.Machine) host.Machine { m.Machine = sim; return m }
		onSeen(t, hostsim.Generate(24), nil, drivemgr.Options{}, as, func(r *rig) {
			d := r.pick(drivebay.ProtocolATA, 1)
			m.dev = "/dev/" + d.Name
			m.read.Store(read)
			m.on.Store(true)
			want := drivebay.HealthBad
			if read {
				want = drivebay.HealthUnknown
			}
			r.until(fmt.Sprintf("it is %v, can be read %v", want, read), 25*time.Minute, func() bool { return r.drive(d.ID).Health == want })
			if k := r.drive(d.ID).Kernel; k.State != "running" || k.SizeZero {
				r.Errorf("the kernel says %+v", k)
			}
		})
	}
}
