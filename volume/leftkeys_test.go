package volume_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// encryptedWithoutWipe is a request for an encrypted volume whose class wipes nothing: once it is deleted, only the missing keys protect
// its data.
func encryptedWithoutWipe(name string) drivebay.VolumeRequest {
	r := requests()[name]
	r.Class.Wipe, r.Class.Encryption, r.Secrets = drivebay.WipeNone, drivebay.EncryptionLUKS2, secrets(rightKey)
	return r
}

// TestMoveLeavesNoKey: an encrypted volume leaves no header on a drive that its group has left, nor on one that it was to move to,
// whatever its class says of the wipe: the passphrase that was changed later would open the header there, and it would stay after
// the deletion.
func TestMoveLeavesNoKey(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "a mirror"} {
		for _, canceled := range []bool{false, true} {
			k := &killer{}
			t.Run(fmt.Sprint(name, " canceled ", canceled), func(t *testing.T) {
				onMachine(t, fourSmall(), volume.Options{After: k.step}, func(s *stand) {
					r := encryptedWithoutWipe(name)
					r.Size.Required = 2 << 30
					v := s.make("v", r)
					from := v.Location.Drives[0]
					if !s.anywhere(from, v.LUKSUUID) {
						s.Fatalf("%s: its header is not found", name)
					}
					k.anew(0)
					s.must(s.mgr.Operate(s.Context(), from, drivebay.LeaveRelease, ""))
					if canceled {
						s.until("it moves", func() bool {
							return slices.ContainsFunc(k.steps(), func(step string) bool { return strings.HasPrefix(step, "move ") })
						})
						time.Sleep(12 * time.Second)
						s.must(s.mgr.Operate(s.Context(), from, drivebay.LeaveCancel, ""))
						s.until("it is back", func() bool {
							return slices.Equal(s.of(v).Location.Drives, v.Location.Drives) && s.of(v).Usage == drivebay.VolumeInUse
						})
						time.Sleep(2 * time.Minute)
					} else {
						s.usage(from, drivebay.UsageReleased, 20*time.Minute)
					}
					for _, d := range s.mgr.Snapshot().Drives {
						if !slices.Contains(s.of(v).Location.Drives, d.ID) && s.anywhere(d.ID, v.LUKSUUID) {
							s.Errorf("%s, canceled %v: its header is on drive %s", name, canceled, d.Serial)
						}
					}
					s.must(s.stage(v, with(rightKey)), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
					for _, d := range s.mgr.Snapshot().Drives {
						if s.anywhere(d.ID, v.LUKSUUID) {
							s.Errorf("%s, canceled %v: it was deleted, and its header is on drive %s", name, canceled, d.Serial)
						}
					}
				})
			})
		}
	}
}

// TestDeletedWithoutALegLeavesNoKey: the header on a leg that left a mirror while that was being removed is overwritten as well.
func TestDeletedWithoutALegLeavesNoKey(t *testing.T) {
	t.Parallel()
	var active func()
	after := func(_, step string) error {
		if step == "mark" {
			active()
		}
		return nil
	}
	onMachine(t, smallDrives(), volume.Options{After: after}, func(s *stand) {
		s.make("stays", requests()["a mirror"])
		v := s.make("v", encryptedWithoutWipe("a mirror"))
		old := v.Location.Drives[0]
		serial := s.serialOf(old)
		s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "fail"}))
		s.until("the drive is BAD", func() bool {
			d, _ := s.mgr.Snapshot().Find(old)
			return d.Health == drivebay.HealthBad
		})
		active = func() {
			active = func() {}
			_ = s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "vanish"})
			time.Sleep(10 * time.Second)
			_ = s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return", Args: hostsim.Args{"rename": "true"}})
			time.Sleep(time.Minute)
		}
		s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
		if s.anywhere(old, v.LUKSUUID) {
			s.Error("it was deleted, and its header is on the leg that was left out")
		}
	})
}

// TestLegMadeAnewLeavesNoKey: nor is it on the old extents of a leg that was made again.
func TestLegMadeAnewLeavesNoKey(t *testing.T) {
	t.Parallel()
	two := hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "6GB"}}}
	onMachine(t, two, volume.Options{Heal: true}, func(s *stand) {
		r := encryptedWithoutWipe("a mirror")
		before := requests()["a mirror"]
		before.Size.Required = 5 << 28
		first, v := s.make("first", before), s.make("v", r)
		s.must(s.stage(v, with(rightKey)), s.unstage(v), s.e.DeleteVolume(s.Context(), first.ID))
		serial, old := s.serialOf(v.Location.Drives[0]), v.Location.Drives[0]
		s.inject(old, "vanish")
		time.Sleep(10 * time.Second)
		s.must(s.stage(v, with(rightKey)))
		s.word(v, "newbytes")
		s.sim.PowerCut()
		s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
		time.Sleep(time.Minute)
		s.start()
		s.must(s.stage(v, with(rightKey)))
		time.Sleep(20 * time.Minute)
		s.must(s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
		time.Sleep(time.Minute)
		if s.anywhere(old, v.LUKSUUID) {
			s.Error("it was deleted, and its header is where its leg was before that was made again")
		}
	})
}
