package volume_test

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// leftCopy is a volume that was moved, while its old drive was pulled.
type leftCopy struct {
	*stand
	v      drivebay.Volume
	old    string // the drive with the old copy
	serial string // of that
}

// withLeftCopy moves a volume whose old drive is pulled after a step, and waits until its record has
// the old copy.
func withLeftCopy(t *testing.T, step string, opt volume.Options, test func(c leftCopy)) {
	var pull atomic.Pointer[func()]
	after := opt.After
	opt.After = func(id, name string) error {
		if name == step {
			if do := pull.Swap(nil); do != nil {
				(*do)()
			}
		}
		if after != nil {
			return after(id, name)
		}
		return nil
	}
	onMachine(t, sameDrives(3), opt, func(s *stand) {
		r := requests()["a partition"]
		r.Class.Wipe = drivebay.WipeZero
		v := s.onAPartition(r)
		c := leftCopy{s, v, v.Location.Drives[0], s.serialOf(v.Location.Drives[0])}
		do := func() { s.must(s.sim.Inject(hostsim.Fault{Drive: c.serial, Fault: "vanish"})) }
		pull.Store(&do)
		s.lead(v, drivebay.LeaveRelease)
		time.Sleep(time.Minute)
		if len(s.record(v).Left) != 1 {
			t.Fatalf("its record has no old copy: %+v", s.record(v))
		}
		test(c)
	})
}

func (c *leftCopy) putBack() {
	c.must(c.sim.Inject(hostsim.Fault{Drive: c.serial, Fault: "return"}))
	time.Sleep(2 * time.Minute)
}

func (c *leftCopy) isBlank() bool {
	d, _ := c.mgr.Snapshot().Find(c.old)
	return d.Content.Kind == drivebay.ContentBlank
}

// TestOnlyCopyStays: the new drive of a volume dies, and the old one returns. The old copy is the
// only one.
func TestOnlyCopyStays(t *testing.T) {
	withLeftCopy(t, "settled", volume.Options{}, func(c leftCopy) {
		c.inject(c.record(c.v).Volume.Location.Drives[0], "vanish")
		time.Sleep(time.Minute)
		if c.putBack(); c.isBlank() {
			t.Errorf("it was wiped: %+v", c.record(c.v))
		}
	})
}

// TestOlderStoreWithLeftCopy: the volume is given up with its new drive, and the old copy is taken in.
// A store from before names it as an old copy. It is not wiped.
func TestOlderStoreWithLeftCopy(t *testing.T) {
	withLeftCopy(t, "name", volume.Options{}, func(c leftCopy) {
		older := c.record(c.v)
		c.inject(older.Volume.Location.Drives[0], "vanish")
		time.Sleep(time.Minute)
		c.must(c.e.ForgetVolume(c.Context(), c.v.ID), c.mgr.Operate(c.Context(), c.old, drivebay.LeaveCancel, ""))
		c.putBack()
		sum := c.sum(c.of(c.v).Volume)
		c.stop()
		c.stop = nil
		c.must(c.st.PutVolume(older))
		c.start()
		time.Sleep(3 * time.Minute)
		if c.isBlank() || c.sum(c.v) != sum {
			t.Errorf("it was written to: %+v", c.record(c.v))
		}
	})
}

// TestForgetWithLeftCopy: a volume is given up while an old copy of it is on a drive that is offline.
// A request for its name does not get that copy.
func TestForgetWithLeftCopy(t *testing.T) {
	withLeftCopy(t, "name", volume.Options{}, func(c leftCopy) {
		c.inject(c.record(c.v).Volume.Location.Drives[0], "vanish")
		time.Sleep(time.Minute)
		c.must(c.e.ForgetVolume(c.Context(), c.v.ID), c.mgr.Operate(c.Context(), c.old, drivebay.LeaveCancel, ""))
		c.putBack()
		r := requests()["a partition"]
		r.Class.Wipe, r.Size.Required, r.Class.Drives = drivebay.WipeZero, 64<<20, drivebay.TypeNVMe
		if is := c.make("v", r); is.Location.Partition == c.v.Location.Partition {
			t.Error("the request got the old copy")
		}
	})
}

// TestForgetDriveWithLeftCopy: a drive with a copy that is wiped when the drive returns is not forgotten, so the copy also keeps the
// volume from being deleted. Once the drive is given up, its record can go.
func TestForgetDriveWithLeftCopy(t *testing.T) {
	withLeftCopy(t, "settled", volume.Options{}, func(c leftCopy) {
		if err := c.e.ForgetDrive(c.Context(), c.old, ""); !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "`drivebay force-remove "+c.old+"`") {
			t.Errorf("forget: %v", err)
		}
		if err := c.e.DeleteVolume(c.Context(), c.v.ID); !askedAgain(err) {
			t.Errorf("delete: %v", err)
		}
		c.must(c.mgr.Operate(c.Context(), c.old, drivebay.LeaveForce, ""))
		time.Sleep(2 * time.Minute)
		c.must(c.e.ForgetDrive(c.Context(), c.old, ""), c.e.DeleteVolume(c.Context(), c.v.ID))
	})
}

// TestDeleteWithLeftCopyAndFailedGrowth: growth that failed does not keep a volume with an old copy
// from being deleted.
func TestDeleteWithLeftCopyAndFailedGrowth(t *testing.T) {
	withLeftCopy(t, "settled", volume.Options{}, func(c leftCopy) {
		to := c.serialOf(c.record(c.v).Volume.Location.Drives[0])
		c.must(c.sim.Inject(hostsim.Fault{Drive: to, Fault: "eio"}))
		if _, _, err := c.e.ExpandVolume(c.Context(), c.v.ID, drivebay.SizeRange{Required: 128 << 20}); err == nil {
			t.Fatal("it has grown")
		}
		c.must(c.sim.Inject(hostsim.Fault{Drive: to, Fault: "heal"}))
		c.putBack()
		time.Sleep(15 * time.Minute)
		c.must(c.retried(func() error { return c.e.DeleteVolume(c.Context(), c.v.ID) }))
		time.Sleep(time.Minute)
		c.blank()
	})
}

// TestDeletedWhileItsCopyIsWiped: the daemon wipes the old copy of a volume, and the volume is deleted
// at the same time. That the copy was wiped does not count for the volume.
func TestDeletedWhileItsCopyIsWiped(t *testing.T) {
	for offset, met := time.Duration(0), false; offset < 6*time.Second && !met && !t.Failed(); offset += 200 * time.Millisecond {
		var armed, paused atomic.Bool
		var marks atomic.Int32
		after := func(_, name string) error {
			if !armed.Load() || name != "mark" {
				return nil
			}
			stack := make([]byte, 1<<16)
			if strings.Contains(string(stack[:runtime.Stack(stack, false)]), "followMove") {
				paused.Store(true)
				for range 600 { // until the deletion has begun with the volume itself
					if marks.Load() >= 2 {
						break
					}
					time.Sleep(100 * time.Millisecond)
				}
				return nil
			}
			if marks.Add(1) == 2 && paused.Load() {
				time.Sleep(10 * time.Second)
			}
			return nil
		}
		withLeftCopy(t, "name", volume.Options{After: after}, func(c leftCopy) {
			on := *c.drive(c.record(c.v).Volume)
			c.must(c.sim.Inject(hostsim.Fault{Drive: c.serial, Fault: "return"}), c.sim.Inject(hostsim.Fault{Drive: c.serial, Fault: "slow", Args: hostsim.Args{"delay": "5ms"}}))
			armed.Store(true)
			time.Sleep(offset)
			err := c.e.DeleteVolume(c.Context(), c.v.ID)
			for n := 0; n < 3000 && err != nil; n++ {
				time.Sleep(70 * time.Millisecond)
				err = c.e.DeleteVolume(c.Context(), c.v.ID)
			}
			c.must(err, c.sim.Inject(hostsim.Fault{Drive: c.serial, Fault: "heal"}))
			time.Sleep(time.Minute)
			met = paused.Load()
			c.read(on, func(r io.ReaderAt) {
				b := make([]byte, 1<<20)
				for at := range int64(96) {
					if _, err := r.ReadAt(b, at<<20); err != nil || !zero(b) {
						t.Errorf("deleted, and its data is left on drive %s at %d MiB: %v", on.ID, at, err)
						return
					}
				}
			})
		})
	}
}

// TestUnwipedCopyHoldsTheDeletion: a drive takes no writes any more, so that the old copy of a volume
// that was moved off it is not wiped. The drive can leave; the deletion is acknowledged only when the
// drive takes writes again (TestCannotWipe: or was taken out for good).
func TestUnwipedCopyHoldsTheDeletion(t *testing.T) {
	t.Parallel()
	onMachine(t, threeDrives(), volume.Options{}, func(s *stand) {
		r := requests()["a partition"]
		r.Class.Wipe = drivebay.WipeZero
		v := s.onAPartition(r)
		old := s.drive(v)
		s.inject(old.ID, "read-only")
		s.lead(v, drivebay.LeaveRelease)
		s.until("moved", func() bool { return s.of(v).Location.Drives[0] != old.ID && s.of(v).Work == "" })
		s.usage(old.ID, drivebay.UsageReleased, 10*time.Minute)
		if left := s.record(v).Left; len(left) != 1 || !left[0].Unwiped {
			t.Fatalf("its record has %+v", left)
		}
		if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil {
			t.Error("deleted while its old copy is there")
		}
		s.inject(old.ID, "heal")
		time.Sleep(10 * time.Minute)
		s.must(s.mgr.Operate(s.Context(), old.ID, drivebay.LeaveCancel, ""))
		s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
		time.Sleep(time.Minute)
		if d, _ := s.mgr.Snapshot().Find(old.ID); d.Content.Kind != drivebay.ContentBlank {
			t.Errorf("acknowledged, and its old drive has %+v", d.Content)
		}
	})
}
