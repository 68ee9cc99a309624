package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// bare takes all mounts of a volume away, and their folders, as somebody does by hand.
func (s *stand) bare(v drivebay.Volume) {
	s.Helper()
	for _, path := range []string{target(v, "pod"), staging(v)} {
		for range s.mounts(path) {
			s.must(s.sim.Unmount(s.Context(), place(path)))
		}
		s.must(s.sim.Remove(place(path)))
	}
}

// TestUnmountedByHand: a volume that was unmounted by hand has a way out with every
// verb, whether or not the daemon was restarted since.
func TestUnmountedByHand(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		for verb, do := range map[string]func(*stand, drivebay.Volume) error{
			"delete": func(s *stand, v drivebay.Volume) error {
				if r.Block { // what has the device open is not known: an operator has to say
					if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrBusy) {
						s.Errorf("%s: deleted as it is published: %v", name, err)
					}
					s.must(s.e.ClearVolume(s.Context(), v.ID))
				}
				return s.e.DeleteVolume(s.Context(), v.ID)
			},
			"clear": func(s *stand, v drivebay.Volume) error { return s.e.ClearVolume(s.Context(), v.ID) },
			"retry": func(s *stand, v drivebay.Volume) error {
				err := s.e.RetryVolume(s.Context(), v.ID)
				if len(s.mounts(target(v, "pod"))) != 1 {
					s.Errorf("%s: retried, and not mounted", name)
				}
				return errors.Join(err, s.unpublish(v, "pod"), s.unstage(v))
			},
			"unpublish": func(s *stand, v drivebay.Volume) error { return errors.Join(s.unpublish(v, "pod"), s.unstage(v)) },
			"forget": func(s *stand, v drivebay.Volume) error {
				for _, id := range v.Location.Drives {
					s.inject(id, "vanish")
				}
				time.Sleep(time.Minute)
				return s.e.ForgetVolume(s.Context(), v.ID)
			},
		} {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				v := s.make("v", r)
				s.must(s.stage(v), s.publish(v, "pod"))
				s.bare(v)
				time.Sleep(time.Minute)
				s.start()
				time.Sleep(time.Minute)
				if err := do(s, v); err != nil {
					s.Errorf("%s, %s: %v", name, verb, err)
				}
				time.Sleep(10 * time.Second)
				if is, ok := s.e.Volumes().Get(v.ID); ok && (is.CSIStatus != drivebay.CSICreated || is.Condition.Abnormal()) {
					s.Errorf("%s, %s: %v, %s", name, verb, is.CSIStatus, is.Condition.Message())
				}
			})
		}
	}
}

// TestUnmountedButUsed: what is unmounted here may be mounted in a container still. The
// kernel knows, and such a volume is not removed.
func TestUnmountedButUsed(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.publish(v, "pod"))
		dev := s.mounts(staging(v))[0].Source
		s.bare(v)
		disk, err := s.sim.OpenDisk(s.Context(), dev, true) // as the filesystem in the container has it
		s.must(err)
		for verb, do := range map[string]func() error{
			"delete": func() error { return s.e.DeleteVolume(s.Context(), v.ID) },
			"clear":  func() error { return s.e.ClearVolume(s.Context(), v.ID) },
		} {
			if err := do(); !errors.Is(err, drivebay.ErrBusy) || s.of(v).CSIStatus != drivebay.CSIPublished {
				s.Errorf("%s: %v, %v", verb, err, s.of(v).CSIStatus)
			}
		}
		s.must(disk.Close(), s.e.DeleteVolume(s.Context(), v.ID))
	})
}

// TestLetGoUnknown: mounts of a volume that is in no record, on a drive that is dead or
// sound, are unmounted where a kubelet asks for it. So it is where there are none; what
// is mounted there of somebody else stays.
func TestLetGoUnknown(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		for _, fault := range []string{"", "vanish", "eio", "given up"} {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				v := s.make("v", r)
				s.must(s.stage(v), s.publish(v, "pod"))
				for _, id := range v.Location.Drives {
					d, _ := s.mgr.Snapshot().Find(id)
					switch {
					case fault == "given up" && d.Transport == drivebay.TransportNVMe:
						s.inject(id, "nvme-dead")
					case fault == "given up":
						s.inject(id, "offline")
					case fault != "":
						s.inject(id, fault)
					}
				}
				time.Sleep(time.Minute)
				s.must(s.st.DeleteVolume(v.ID))
				s.start() // sound, it is found again
				time.Sleep(time.Minute)
				for range 2 {
					if err := errors.Join(s.unpublish(v, "pod"), s.unstage(v)); err != nil {
						s.Errorf("%s, %q: %v", name, fault, err)
					}
				}
				if len(s.mounts(target(v, "pod")))+len(s.mounts(staging(v))) > 0 || s.look(target(v, "pod")) != host.PlaceNothing {
					s.Errorf("%s, %q: it is mounted still", name, fault)
				}
			})
		}
	}
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v))
		for _, path := range []string{staging(v)} {
			if err := s.e.UnpublishVolume(s.Context(), "another", path); !errors.Is(err, drivebay.ErrRefused) {
				s.Errorf("unpublish another where this one is: %v", err)
			}
			s.must(s.e.UnstageVolume(s.Context(), "another", path))
			if len(s.mounts(path)) != 1 {
				s.Error("unmounted for another")
			}
		}
	})
}

// TestNumberReused: a drive is pulled and returns under another name, and a partition of it gets
// its old device number again. A pod has the node of the old device: the volume is not sound.
func TestNumberReused(t *testing.T) {
	t.Parallel()
	onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}}}, volume.Options{}, func(s *stand) {
		var v drivebay.Volume
		for _, name := range []string{"a", "b", "c", "d"} { // the fourth has a number that stays
			r := rawVolume(drivebay.BackingPartition)
			r.Size.Required = 64 << 20
			v = s.make(name, r)
		}
		s.must(s.stage(v), s.publish(v, "pod"))
		device := func() string {
			all := s.of(v).Publications
			return all[len(all)-1].Device
		}
		was := device()
		serial := s.serialOf(v.Location.Drives[0])
		s.inject(v.Location.Drives[0], "vanish")
		time.Sleep(time.Minute)
		s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
		for range 10 {
			time.Sleep(10 * time.Second)
			if is := s.of(v); !is.Condition.Abnormal() {
				t.Fatalf("published from %s it is called sound", was)
			}
		}
		_, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID})
		s.must(err)
		is, now := s.of(v), device()
		num, _, _ := strings.Cut(was, " ")
		if is.Condition.Abnormal() || !strings.HasPrefix(now, num+" ") || now == was {
			t.Errorf("healed, it is published from %s, before from %s: %v", now, was, is.Condition)
		}
	})
}

// TestLostTargetStays: a path of a pod that was unmounted by hand is a finding until it is unpublished or
// mounted again. No call for another path ends it.
func TestLostTargetStays(t *testing.T) {
	t.Parallel()
	for what, do := range map[string]func(*stand, drivebay.Volume) error{
		"unpublish another":     func(s *stand, v drivebay.Volume) error { return s.unpublish(v, "one") },
		"publish a third":       func(s *stand, v drivebay.Volume) error { return s.publish(v, "three") },
		"publish another again": func(s *stand, v drivebay.Volume) error { return s.publish(v, "one") },
		"stage again":           func(s *stand, v drivebay.Volume) error { return s.stage(v) },
		"restart":               func(s *stand, _ drivebay.Volume) error { s.start(); return nil },
	} {
		for name, r := range some(requests()) {
			t.Run(what+"/"+name, func(t *testing.T) {
				onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
					v := s.make("v", r)
					s.must(s.stage(v), s.publish(v, "one"), s.publish(v, "two"))
					s.must(s.sim.Unmount(s.Context(), place(target(v, "two"))))
					time.Sleep(10 * time.Second)
					s.must(do(s, v))
					time.Sleep(time.Minute)
					if c := s.of(v).Condition; !unmountedAt(c, target(v, "two")) {
						s.Errorf("afterwards: %s", c.Message())
					}
					s.must(s.unpublish(v, "two"))
					time.Sleep(time.Minute)
					if c := s.of(v).Condition; c.Abnormal() {
						s.Errorf("unpublished: %s", c.Message())
					}
				})
			})
		}
	}
}

// TestLostTargetOfOneWriter: a path of a single writer that was unmounted by hand excludes other paths.
func TestLostTargetOfOneWriter(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		t.Run(name, func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				alone := func(r *drivebay.PublishRequest) { r.Access = drivebay.AccessSingleWriter }
				v := s.make("v", r)
				s.must(s.stage(v, func(r *drivebay.StageRequest) { r.Access = drivebay.AccessSingleWriter }), s.publish(v, "pod", alone))
				s.must(s.sim.Unmount(s.Context(), place(target(v, "pod"))))
				time.Sleep(10 * time.Second)
				if err := s.publish(v, "other", alone); !errors.Is(err, drivebay.ErrBusy) {
					s.Errorf("a second path: %v", err)
				}
				s.must(s.publish(v, "pod", alone), s.unpublish(v, "pod"), s.publish(v, "other", alone))
			})
		})
	}
}

// TestUnstagedWithLostTarget: an unstage ends the lost paths of a filesystem that is open in no namespace.
// While a container has it, they stay.
func TestUnstagedWithLostTarget(t *testing.T) {
	onStand(t, func(s *stand) {
		for _, used := range []bool{false, true} {
			v := s.make("v", drivebay.VolumeRequest{})
			s.must(s.stage(v), s.publish(v, "pod"))
			dev := s.mounts(staging(v))[0].Source
			s.bare(v)
			left := 0
			if used {
				disk, err := s.sim.OpenDisk(s.Context(), dev, true) // as the filesystem in the container has it
				s.must(err)
				defer disk.Close()
				left = 1
			}
			s.must(s.unstage(v))
			if n := len(s.of(v).Publications); n != left {
				s.Errorf("used %v: %d paths are left", used, n)
			}
			if !used {
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
			}
		}
	})
}
