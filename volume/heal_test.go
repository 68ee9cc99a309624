package volume_test

import (
	"context"
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

// heal heals a volume and tells which repairs were done, "!" before those that were
// not, "?" before those that would be.
func (s *stand) heal(v drivebay.Volume, change ...func(*drivebay.HealRequest)) string {
	s.Helper()
	r := drivebay.HealRequest{Volume: v.ID}
	for _, f := range change {
		f(&r)
	}
	report, err := s.e.Heal(s.Context(), r)
	s.must(err)
	var out []string
	for _, step := range report.Steps {
		mark := ""
		switch {
		case step.Why == "":
			s.Errorf("%s: for no reason", step.Repair)
		case step.Failed != "":
			mark = "!"
		case report.DryRun && step.Done == "":
			mark = "?"
		case step.Done == "":
			s.Errorf("%s: nothing is said of it", step.Repair)
		}
		out = append(out, mark+step.Repair)
	}
	return strings.Join(out, ", ")
}

func dry(r *drivebay.HealRequest) { r.DryRun = true }

func keyed(r *drivebay.HealRequest) { r.Secrets = secrets(rightKey) }

// healings are the causes of all healings that there were.
func (s *stand) healings() int {
	s.Helper()
	n := 0
	time.Sleep(time.Second) // they are written down together
	all, err := s.st.Events(0, 10000)
	s.must(err)
	for _, e := range all {
		if e.Kind == drivebay.EventVolumeHealed && e.Cause != "" {
			n++
		}
	}
	return n
}

// inUse says that a volume is to be seen at a path, and can be written to there.
func (s *stand) inUse(v drivebay.Volume, path string, readOnly bool) {
	s.Helper()
	on := s.mounts(path)
	if len(on) != 1 {
		s.Fatalf("%d mounts at %s", len(on), path)
	}
	if ro := strings.HasPrefix(on[0].Opts, "ro"); ro != readOnly {
		s.Errorf("%s is mounted %s", path, on[0].Opts)
	}
	if v.Mode != drivebay.ModeFS || readOnly {
		return
	}
	if err := s.sim.MakeFolder(place(path + "/made")); err != nil {
		s.Errorf("%s: %v", path, err)
	}
	s.must(s.sim.Remove(place(path + "/made")))
}

// TestHealMounts: whatever somebody has unmounted is mounted again as it was, and
// nothing else is done; a second time there is nothing to do.
func TestHealMounts(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*stand, drivebay.Volume)
		block bool
		want  string
	}{
		"nothing": {func(*stand, drivebay.Volume) {}, false, ""},
		"everywhere": {func(s *stand, v drivebay.Volume) { s.inject(staging(v), "fs-unmount") }, false,
			"mount the filesystem, restore the bind mounts of pods"},
		"where it is staged": {func(s *stand, v drivebay.Volume) { s.must(s.sim.Unmount(s.Context(), place(staging(v)))) }, false,
			"mount the filesystem"},
		"a path": {func(s *stand, v drivebay.Volume) { s.must(s.sim.Unmount(s.Context(), place(target(v, "reader")))) }, false,
			"restore the bind mounts of pods"},
		"read-only": {func(s *stand, v drivebay.Volume) { s.inject(staging(v), "fs-read-only") }, false,
			"mount a failed filesystem again"},
		"read-only, and not seen": {func(s *stand, v drivebay.Volume) {
			s.must(s.sim.Inject(hostsim.Fault{Drive: staging(v), Fault: "fs-read-only", Args: hostsim.Args{"hidden": "true"}}))
		}, false, "mount a failed filesystem again"},
		"a device": {func(s *stand, v drivebay.Volume) { s.must(s.sim.Unmount(s.Context(), place(target(v, "pod")))) }, true,
			"restore the bind mounts of pods"},
	} {
		for _, fs := range []string{"ext4", "xfs", "btrfs"} {
			if (c.block || name == "read-only, and not seen") && fs != "ext4" {
				continue
			}
			onStand(t, func(s *stand) {
				v := s.make("v", drivebay.VolumeRequest{Block: c.block, Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: fs}})
				s.must(s.stage(v, func(r *drivebay.StageRequest) {
					if !c.block {
						r.Options = []string{"noatime"}
					}
				}), s.publish(v, "pod"))
				if !c.block {
					s.must(s.publish(v, "reader", func(r *drivebay.PublishRequest) { r.ReadOnly = true }))
				}
				before := s.of(v).Publications
				c.fault(s, v)
				time.Sleep(3 * time.Second)
				options := func(r *drivebay.HealRequest) {
					r.Path, r.Staging = target(v, "pod"), staging(v)
					if !c.block {
						r.Block, r.Options = new(bool), []string{"noatime"}
					}
				}
				was, _ := s.sim.Mounts(s.Context())
				plan := s.heal(v, options, dry)
				if is, _ := s.sim.Mounts(s.Context()); !slices.Equal(is, was) || s.healings() > 0 {
					s.Errorf("%s, %s: a dry run has changed something", name, fs)
				}
				if got := s.heal(v, options); got != c.want || strings.ReplaceAll(plan, "?", "") != c.want {
					s.Errorf("%s, %s: healed by %q, planned %q", name, fs, got, plan)
				}
				for _, path := range []string{staging(v), target(v, "pod")} { // at once, not with the next tick
					if path == staging(v) && c.block {
						continue
					}
					if is, err := s.stats(v, path); err != nil || is.Condition.Abnormal() {
						s.Errorf("%s, %s: right after it %s says %s, %v", name, fs, path, is.Condition.Message(), err)
					}
				}
				if got := s.heal(v, options); got != "" {
					s.Errorf("%s, %s: again: %q", name, fs, got)
				}
				if n := strings.Count(c.want, ","); c.want != "" && s.healings() != n+1 || c.want == "" && s.healings() != 0 {
					s.Errorf("%s, %s: %d events", name, fs, s.healings())
				}
				s.inUse(v, target(v, "pod"), false)
				if !c.block {
					s.inUse(v, staging(v), false)
					s.inUse(v, target(v, "reader"), true)
				}
				if is := s.of(v); !slices.Equal(is.Publications, before) || is.CSIStatus != drivebay.CSIPublished {
					s.Errorf("%s, %s: %v, %+v", name, fs, is.CSIStatus, is.Publications)
				}
				s.must(s.unpublish(v, "pod"), s.unpublish(v, "reader"), s.unstage(v))
			})
		}
	}
}

// vanish removes the drives of a volume, and returns their serial numbers.
func (s *stand) vanish(v drivebay.Volume) (serials []string) {
	s.Helper()
	for _, id := range v.Location.Drives {
		d, _ := s.mgr.Snapshot().Find(id)
		serials = append(serials, d.Serial)
		s.inject(id, "vanish")
	}
	return serials
}

// TestHealReturned: a drive went and is back under another name. Whatever is on it is
// in use again, where it was.
func TestHealReturned(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		for _, encrypted := range []bool{false, true} {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				key := func(*drivebay.StageRequest) {}
				if encrypted {
					r.Class.Encryption, r.Secrets, key = drivebay.EncryptionLUKS2, secrets(rightKey), with(rightKey)
				}
				v := s.make(name, r)
				s.must(s.stage(v, key), s.publish(v, "pod"))
				serials := s.vanish(v)
				time.Sleep(10 * time.Second)
				if got := s.heal(v, keyed); got != "" || len(s.mounts(target(v, "pod"))) != 1 {
					s.Errorf("%s: without its drive: %q", name, got)
				}
				for _, serial := range serials {
					s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
				}
				time.Sleep(30 * time.Second)
				if encrypted {
					for _, key := range []drivebay.Secrets{nil, secrets(wrongKey)} {
						if _, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID, Secrets: key}); !errors.Is(err, drivebay.ErrSecret) {
							s.Errorf("%s: healed with %d secrets: %v", name, len(key), err)
						}
					}
				}
				got := s.heal(v, keyed)
				if strings.Contains(got, "!") || !strings.Contains(got, "restore the bind mounts") {
					s.Errorf("%s, encrypted %v: healed by %q", name, encrypted, got)
				}
				s.inUse(v, target(v, "pod"), false)
				if got := s.heal(v, keyed); got != "" {
					s.Errorf("%s: again: %q", name, got)
				}
				time.Sleep(10 * time.Second)
				if is := s.of(v); is.Condition.Severity() > drivebay.SeverityDegraded || is.CSIStatus != drivebay.CSIPublished {
					s.Errorf("%s: %v, %s", name, is.CSIStatus, is.Condition.Message())
				}
				s.must(s.unpublish(v, "pod"), s.unstage(v))
			})
		}
	}
}

// TestHealAtOnce: a volume whose drive is back is healed in the moment in which the drive counts as ONLINE, not
// some seconds later.
func TestHealAtOnce(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			v := s.make(name, r)
			s.must(s.stage(v), s.publish(v, "pod"))
			serials := s.vanish(v)
			time.Sleep(30 * time.Second)
			for _, serial := range serials {
				s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
			}
			s.must(s.mgr.Refresh(s.Context()))
			if got := s.heal(v); strings.Contains(got, "!") || !strings.Contains(got, "restore the bind mounts") {
				s.Errorf("%s: healed by %q", name, got)
			}
			s.inUse(v, target(v, "pod"), false)
		})
	}
}

// TestHealRefused: who means another volume, or another path, is told so.
func TestHealRefused(t *testing.T) {
	onStand(t, func(s *stand) {
		v, other := s.make("v", drivebay.VolumeRequest{}), s.make("other", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.stage(other))
		yes := true
		for name, c := range map[string]struct {
			r    drivebay.HealRequest
			want error
		}{
			"unknown":        {drivebay.HealRequest{Volume: "none"}, drivebay.ErrNotFound},
			"another's path": {drivebay.HealRequest{Volume: v.ID, Path: staging(other)}, drivebay.ErrNotFound},
			"outside":        {drivebay.HealRequest{Volume: v.ID, Path: "/etc"}, drivebay.ErrNotFound},
			"no such stage":  {drivebay.HealRequest{Volume: v.ID, Path: staging(v), Staging: "/etc"}, drivebay.ErrNotFound},
			"a block volume": {drivebay.HealRequest{Volume: v.ID, Path: staging(v), Block: &yes}, drivebay.ErrInvalid},
			"its option":     {drivebay.HealRequest{Volume: v.ID, Options: []string{"bind"}}, drivebay.ErrInvalid},
		} {
			if _, err := s.e.Heal(s.Context(), c.r); !errors.Is(err, c.want) {
				s.Errorf("%s: %v", name, err)
			}
		}
		s.inject(staging(v), "fs-unmount")
		s.must(s.sim.MakeFolder(place(staging(v))), s.sim.Mount(s.Context(), host.NewMount{Device: "/dev/" + s.device(other), FS: "ext4", At: place(staging(v))}))
		if got := s.heal(v); got != "!mount the filesystem" || len(s.mounts(staging(v))) != 1 {
			s.Errorf("another is mounted there: %q", got)
		}
	})
}

// TestHealNot: what would endanger data, or cannot be known, is not done, and said.
func TestHealNot(t *testing.T) {
	const fresh = "!mount a failed filesystem again"
	for name, c := range map[string]struct {
		fault func(*stand, drivebay.Volume)
		want  string
	}{
		"a bad drive": {func(s *stand, v drivebay.Volume) {
			s.inject(v.Location.Drives[0], "critical-warning")
		}, fresh},
		"a corrupted filesystem": {func(s *stand, v drivebay.Volume) {
			r := s.record(v)
			r.Scrub = &drivebay.Scrub{At: time.Now(), Corrupt: 3}
			s.must(s.st.PutVolume(r))
			s.start()
		}, fresh},
		"mounted elsewhere": {func(s *stand, v drivebay.Volume) {
			s.must(s.sim.MakeFolder(place(kubelet+"/elsewhere")), s.sim.Bind(s.Context(), place(staging(v)), place(kubelet+"/elsewhere"), false))
		}, fresh},
	} {
		onStand(t, func(s *stand) {
			v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Drives: drivebay.TypeNVMe, Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: "ext4"}})
			s.must(s.stage(v), s.publish(v, "pod"))
			c.fault(s, v)
			s.inject(staging(v), "fs-read-only")
			time.Sleep(2 * time.Minute)
			if got := s.heal(v); got != c.want || len(s.mounts(target(v, "pod"))) != 1 || s.healings() != 0 {
				s.Errorf("%s: %q", name, got)
			}
		})
	}
	onStand(t, func(s *stand) { // it is corrupted
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v))
		s.inject(staging(v), "fs-corrupt")
		s.must(s.e.ScrubVolume(s.Context(), v.ID))
		time.Sleep(10 * time.Minute)
		s.inject(staging(v), "fs-unmount")
		if got := s.heal(v); got != "!mount the filesystem" || len(s.mounts(staging(v))) != 0 {
			s.Errorf("a corrupted one: %q", got)
		}
	})
	onStand(t, func(s *stand) { // its options are not known
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v, func(r *drivebay.StageRequest) { r.Options = []string{"noatime"} }))
		s.inject(staging(v), "fs-unmount")
		if got := s.heal(v); got != "!mount the filesystem" {
			s.Errorf("without its options: %q", got)
		}
	})
}

// TestHealInTime: nothing is begun after the caller's time is over, and of two calls
// at once one is sent away.
func TestHealInTime(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.publish(v, "pod"))
		s.inject(staging(v), "fs-unmount")
		s.inject(v.Location.Drives[0], "hang")
		ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := s.e.Heal(ctx, drivebay.HealRequest{Volume: v.ID}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 6*time.Second {
			s.Errorf("%v after %v", err, time.Since(began))
		}
		if _, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID}); !errors.Is(err, drivebay.ErrPending) {
			s.Errorf("a second call: %v", err)
		}
		s.inject(v.Location.Drives[0], "heal")
		time.Sleep(3 * time.Minute)
		if n := len(s.mounts(target(v, "pod"))); n != 0 {
			s.Errorf("%d paths were bound after the caller's time", n)
		}
		if got := s.heal(v); !strings.HasSuffix(got, "restore the bind mounts of pods") {
			s.Errorf("again: %q", got)
		}
		s.inUse(v, target(v, "pod"), false)
	})
}
