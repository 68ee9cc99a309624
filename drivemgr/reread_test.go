package drivemgr_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// blank is the first drive of the rack that is blank and not claimed.
func (r *rig) blank() drivebay.Drive {
	r.Helper()
	for _, d := range r.mgr.Snapshot().Drives {
		if d.Content.Kind == drivebay.ContentBlank && d.Claim == nil {
			return d
		}
	}
	r.Fatal("no drive is blank")
	return drivebay.Drive{}
}

// claimed claims the first drive of the rack that can be.
func (r *rig) claimed() *drivebay.Drive {
	r.Helper()
	for _, d := range r.mgr.Snapshot().Drives {
		if d.Content.Kind == drivebay.ContentBlank && r.mgr.Claim(r.Context(), d.ID, true) == nil {
			return &d
		}
	}
	r.Fatal("no drive could be claimed")
	return nil
}

// TestWrittenOverIsSeen: what another program writes to a claimed drive
// is seen at the next reading.
func TestWrittenOverIsSeen(t *testing.T) {
	onRack(t, 24, nil, drivemgr.Options{}, func(r *rig) {
		d := r.claimed()
		time.Sleep(25 * time.Minute)
		disk, err := r.sim.OpenDisk(hostsim.As(r.Context(), "hand"), "/dev/"+d.Name, false)
		r.must(err)
		_, err = disk.WriteAt([]byte("LABELONE"), 512)
		r.must(err)
		r.until("it is not blank any more", 11*time.Minute, func() bool { return r.drive(d.ID).Content.Kind == drivebay.ContentForeign })
		r.must(disk.Close())
	})
}

// TestBackAtOnce: a drive that was pulled and put back before it was listed again is
// another device: all of it is read anew, at once.
func TestBackAtOnce(t *testing.T) {
	for _, rename := range []string{"rename=true", "rename=false"} {
		onRack(t, 24, nil, drivemgr.Options{}, func(r *rig) {
			d := r.claimed()
			time.Sleep(30 * time.Second)
			before := r.drive(d.ID).Evidence.At
			r.inject(d.Serial, "vanish")
			r.inject(d.Serial, "return", rename)
			time.Sleep(3 * time.Second)
			if is := r.drive(d.ID); is.Status != drivebay.StatusOnline || !is.Evidence.At.After(before) {
				r.Errorf("%s: it is %v, and was looked at last %v, before that %v", rename, is.Status, is.Evidence.At, before)
			}
		})
	}
}

// deaf is a machine that hears no uevents, as in a network namespace that is not the host's.
type deaf struct{ host.Machine }

func (deaf) Uevents(context.Context) (<-chan host.Uevent, error) { return nil, host.ErrUnsupported }

// TestUseEnds: what is said of a drive because of who used it ends with the use, and the
// drive is read anew, whether or not uevents tell of it. Written may come before the drive
// is listed without the use.
func TestUseEnds(t *testing.T) {
	for _, hears := range []bool{true, false} {
		for _, written := range []bool{true, false} {
			as := func(m *hostsim.Machine) host.Machine {
				if hears {
					return m
				}
				return deaf{m}
			}
			onSeen(t, hostsim.Generate(24), nil, drivemgr.Options{}, as, func(r *rig) {
				d := r.blank()
				disk, err := r.sim.OpenDisk(hostsim.As(r.Context(), "hand"), "/dev/"+d.Name, true)
				r.must(err)
				r.must(disk.AddPartition(1, 1<<20, 1<<30))
				r.must(r.mgr.Refresh(r.Context()))
				r.until("it is in use", time.Minute, func() bool { return r.drive(d.ID).Content.Kind == drivebay.ContentForeign })
				r.must(disk.RemovePartition(1))
				limit := 6 * time.Minute // it is listed every five
				if written {
					r.must(r.mgr.Written(r.Context(), d.ID))
					limit = 15 * time.Second
				}
				r.until(fmt.Sprintf("it is blank again, hears %v, written %v", hears, written), limit, func() bool { return r.drive(d.ID).Content.Kind == drivebay.ContentBlank })
				r.must(disk.Close())
			})
		}
	}
}

// lateWriter is a machine on which something happens right before a reading closes its drive.
type lateWriter struct {
	*hostsim.Machine
	before atomic.Pointer[func(dev string)]
}

func (m *lateWriter) OpenDrive(ctx context.Context, dev string) (host.OpenDrive, error) {
	d, err := m.Machine.OpenDrive(ctx, dev)
	return closing{d, func() {
		if before := m.before.Load(); before != nil {
			(*before)(dev)
		}
	}}, err
}

type closing struct {
	host.OpenDrive
	before func()
}

func (c closing) Close() error {
	c.before()
	return c.OpenDrive.Close()
}

// TestWrittenInMidLook: what is written after a reading has read the content is read by the next reading,
// although the reading ends later than the write.
func TestWrittenInMidLook(t *testing.T) {
	m := &lateWriter{}
	as := func(sim *hostsim.Machine) host.Machine {
		m.Machine = sim
		return m
	}
	onSeen(t, hostsim.Generate(24), nil, drivemgr.Options{}, as, func(r *rig) {
		d := r.claimed()
		time.Sleep(25 * time.Minute)
		disk, err := r.sim.OpenDisk(hostsim.As(r.Context(), "hand"), "/dev/"+d.Name, false)
		r.must(err)
		defer disk.Close() // only then: a uevent comes of it
		write := func(text string) {
			_, err = disk.WriteAt([]byte(text), 512)
			r.must(err)
		}
		write("\x00") // so that the next reading reads
		var once sync.Once
		before := func(dev string) {
			if dev == "/dev/"+d.Name {
				once.Do(func() { write("what udev does not know") })
			}
		}
		m.before.Store(&before)
		r.until("it is not blank any more", 21*time.Minute, func() bool { return r.drive(d.ID).Content.Kind == drivebay.ContentForeign })
	})
}

// TestAwaitReread: a drive that was written to counts as reread once a reading that began afterwards has
// ended, and a drive that does not answer is waited for no longer than the caller wants.
func TestAwaitReread(t *testing.T) {
	onRack(t, 24, nil, drivemgr.Options{}, func(r *rig) {
		if waited, err := r.mgr.AwaitReread(r.Context()); waited || err != nil {
			r.Fatalf("nothing was written: waited %v, %v", waited, err)
		}
		d := r.claimed()
		for _, text := range []string{"LABELONE", string(make([]byte, 8))} {
			disk, err := r.sim.OpenDisk(hostsim.As(r.Context(), "hand"), "/dev/"+d.Name, false)
			r.must(err)
			_, err = disk.WriteAt([]byte(text), 512)
			r.must(errors.Join(err, disk.Close(), r.mgr.Written(r.Context(), d.ID)))
			waited, err := r.mgr.AwaitReread(r.Context())
			r.must(err)
			if is := r.drive(d.ID).Content.Kind; waited && (is == drivebay.ContentBlank) != (text[0] == 0) {
				r.Errorf("%q was written, the drive is %v", text, is)
			}
		}
		r.inject(d.Serial, "hang")
		r.must(r.mgr.Written(r.Context(), d.ID))
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if waited, err := r.mgr.AwaitReread(ctx); !waited || !errors.Is(err, context.DeadlineExceeded) {
			r.Errorf("a drive that hangs: waited %v, %v", waited, err)
		}
		r.inject(d.Serial, "vanish")
		time.Sleep(time.Second)
		if waited, err := r.mgr.AwaitReread(r.Context()); err != nil {
			r.Errorf("a drive that is gone: waited %v, %v", waited, err)
		}
	})
}
