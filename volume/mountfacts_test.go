package volume_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// unmountedAt says whether a condition tells of a path that it is not mounted.
func unmountedAt(c drivebay.Condition, path string) bool {
	for _, f := range c {
		if f.Reason == "VolumeUnmounted" && strings.Contains(f.Message, path) {
			return true
		}
	}
	return false
}

// TestMountsInEveryAnswer: a mount that the record has and the machine has not is a
// finding in the set of volumes, which all answers are made from, and in the numbers
// at any path. It ends when the path is healed.
func TestMountsInEveryAnswer(t *testing.T) {
	for name, r := range some(requests()) {
		t.Run(name, func(t *testing.T) {
			onStand(t, func(s *stand) {
				v := s.make("v", r)
				s.must(s.stage(v), s.publish(v, "one"), s.publish(v, "two"))
				time.Sleep(time.Minute)
				if c := s.of(v).Condition; c.Abnormal() {
					s.Fatalf("before: %s", c.Message())
				}
				paths := []string{target(v, "one"), target(v, "two")}
				if !r.Block {
					paths = append(paths, staging(v))
				}
				for _, path := range paths {
					s.must(s.sim.Unmount(s.Context(), place(path)))
					time.Sleep(3 * time.Second)
					if c := s.of(v).Condition; !unmountedAt(c, path) {
						s.Errorf("%s unmounted by hand: %s", path, c.Message())
					}
					other := target(v, "one")
					if path == other {
						other = target(v, "two")
					}
					if got, err := s.stats(v, other); err != nil || !unmountedAt(got.Condition, path) {
						s.Errorf("%s unmounted by hand, numbers at %s: %v, %s", path, other, err, got.Condition.Message())
					}
					if got := s.heal(v); got == "" || strings.Contains(got, "!") {
						s.Errorf("%s unmounted by hand, healed: %q", path, got)
					}
					if c := s.of(v).Condition; c.Abnormal() {
						s.Errorf("%s mounted again: %s", path, c.Message())
					}
				}
				s.must(s.unpublish(v, "one"), s.unpublish(v, "two"), s.unstage(v))
				if c := s.of(v).Condition; c.Abnormal() {
					s.Errorf("let go of: %s", c.Message())
				}
			})
		})
	}
}

// TestMountsAfterRestart: so it is for a daemon that was not there when it happened.
func TestMountsAfterRestart(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.publish(v, "pod"))
		s.stop()
		s.stop = nil
		s.must(s.sim.Unmount(s.Context(), place(target(v, "pod"))))
		s.start()
		if c := s.of(v).Condition; !unmountedAt(c, target(v, "pod")) {
			s.Errorf("unmounted while the daemon was down: %s", c.Message())
		}
	})
}

// TestMountsOfReturnedDrive: mounts of a drive that went are dead, also when the drive
// is back under its old name.
func TestMountsOfReturnedDrive(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		for _, rename := range []string{"true", "false"} {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				v := s.make("v", r)
				s.must(s.stage(v), s.publish(v, "pod"))
				serials := s.vanish(v)
				time.Sleep(10 * time.Second)
				if c := s.of(v).Condition; c.Severity() != drivebay.SeverityInaccessible || !strings.Contains(reasons(c), "DiskRemoved") {
					s.Errorf("%s: pulled: %s", name, c.Message())
				}
				for _, serial := range serials {
					s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return", Args: hostsim.Args{"rename": rename}}))
				}
				time.Sleep(40 * time.Second)
				// The node of a partition whose drive is back with the same number leads to it.
				dead := !r.Block || rename == "true" || v.Location.VG != ""
				if c := s.of(v).Condition; dead != unmountedAt(c, target(v, "pod")) || !r.Block && !unmountedAt(c, staging(v)) {
					s.Errorf("%s: back, renamed %s: %s", name, rename, c.Message())
				}
				healed := s.heal(v)
				time.Sleep(3 * time.Second)
				if c := s.of(v).Condition; strings.Contains(healed, "!") || strings.Contains(reasons(c), "VolumeUnmounted") {
					s.Errorf("%s: back, renamed %s, healed by %q: %s", name, rename, healed, c.Message())
				}
			})
		}
	}
}

// TestMountsHidden: what was mounted later above a path hides the volume there.
func TestMountsHidden(t *testing.T) {
	onStand(t, func(s *stand) {
		v, above := s.make("v", drivebay.VolumeRequest{}), s.make("above", drivebay.VolumeRequest{})
		inside := staging(above) + "/inside"
		s.must(s.stage(v, func(r *drivebay.StageRequest) { r.Path = inside }), s.stage(above))
		time.Sleep(3 * time.Second)
		if c := s.of(v).Condition; !unmountedAt(c, inside) {
			s.Errorf("hidden: %s", c.Message())
		}
		s.must(s.unstage(above))
		time.Sleep(3 * time.Second)
		if c := s.of(v).Condition; c.Abnormal() {
			s.Errorf("to be seen again: %s", c.Message())
		}
	})
}

// TestMountsDoNotFlicker: at no moment of staging, publishing, healing, growing and
// letting go is a sound volume said to be unmounted, however slowly its drive works
// and however often the mount table is read meanwhile.
func TestMountsDoNotFlicker(t *testing.T) {
	t.Parallel()
	onMachine(t, fourDrives, volume.Options{Tick: 20 * time.Millisecond}, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		d, _ := s.mgr.Snapshot().Find(v.Location.Drives[0])
		done := make(chan bool)
		s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "slow", Args: hostsim.Args{"delay": "30ms"}}))
		go func() {
			defer close(done)
			for range 20 {
				if err := errors.Join(s.stage(v), s.publish(v, "one"), s.publish(v, "two"), s.unpublish(v, "one"), s.unpublish(v, "two"), s.unstage(v)); err != nil {
					s.Error(err)
				}
				time.Sleep(7 * time.Millisecond)
			}
		}()
		for seq := uint64(0); ; {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
			set := s.e.Volumes()
			if set.Seq != seq {
				seq = set.Seq
				if c := s.of(v).Condition; strings.Contains(reasons(c), "VolumeUnmounted") {
					s.Errorf("while it is mounted: %s", c.Message())
				}
			}
		}
	})
}

// TestBtrfsByMapperName: the mount table names the device of a btrfs by device-mapper's name, in plain
// and on a logical volume. The volume is found at its paths.
func TestBtrfsByMapperName(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			r := requests()["btrfs on a mirror"]
			if encrypted {
				r.Class.Encryption, r.Secrets = drivebay.EncryptionLUKS2, secrets(rightKey)
			}
			key := func(stage *drivebay.StageRequest) { stage.Secrets = r.Secrets }
			v := s.make("v", r)
			s.must(s.stage(v, key), s.publish(v, "pod"))
			time.Sleep(time.Minute)
			table, err := s.sim.Mounts(s.Context())
			s.must(err)
			if !slices.ContainsFunc(table, func(m host.Mount) bool { return m.FS == "btrfs" && strings.HasPrefix(m.Source, "/dev/mapper/") }) {
				t.Error("no mount has a name of device-mapper")
			}
			if is := s.of(v); is.Condition.Abnormal() {
				t.Errorf("encrypted %v: %s", encrypted, is.Condition.Message())
			}
			s.must(s.stage(v, key), s.publish(v, "pod"), s.unpublish(v, "pod"), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
		})
	}
}
