package volume_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// TestReplays: however often, and whoever forgot what in between, a path has one
// mount, and the record says what the mount table does.
func TestReplays(t *testing.T) {
	for _, block := range []bool{false, true} {
		onStand(t, func(s *stand) {
			v := s.make("v", drivebay.VolumeRequest{Block: block})
			check := func(when string, want drivebay.CSIStatus) {
				t.Helper()
				stagings := map[bool]int{false: 1}[block]
				if n := len(s.mounts(staging(v))); n != stagings && want != drivebay.CSICreated || n != 0 && want == drivebay.CSICreated {
					t.Errorf("%s: %d mounts are staged", when, n)
				}
				if n := len(s.mounts(target(v, "pod"))); (n == 1) != (want == drivebay.CSIPublished) || n > 1 {
					t.Errorf("%s: %d mounts are published", when, n)
				}
				if got := s.of(v).CSIStatus; got != want {
					t.Errorf("%s: %v, want %v", when, got, want)
				}
			}
			for range 3 {
				s.must(s.stage(v))
				check("staged", drivebay.CSIVolumeReady)
			}
			for range 3 {
				s.must(s.publish(v, "pod"))
				check("published", drivebay.CSIPublished)
			}
			s.start()
			check("restarted", drivebay.CSIPublished)
			s.must(s.stage(v), s.publish(v, "pod"))
			check("replayed after a restart", drivebay.CSIPublished)

			r := s.record(v)
			r.Volume.Publications, r.Volume.CSIStatus = nil, drivebay.CSICreated // crashed between the mounts and the record
			if block {
				r.Volume.Publications, r.Volume.CSIStatus = s.record(v).Volume.Publications[:1], drivebay.CSIVolumeReady
			}
			s.must(s.st.PutVolume(r))
			s.start()
			s.must(s.stage(v), s.publish(v, "pod"))
			check("replayed after a crash", drivebay.CSIPublished)
			for range 2 {
				s.must(s.unpublish(v, "pod"))
				check("unpublished", drivebay.CSIVolumeReady)
			}
			if kind := s.look(target(v, "pod")); kind != host.PlaceNothing {
				t.Errorf("the target is still there: %v", kind)
			}
			for range 2 {
				s.must(s.unstage(v))
				check("unstaged", drivebay.CSICreated)
			}
		})
	}
}

func (s *stand) record(v drivebay.Volume) drivebay.VolumeRecord {
	s.Helper()
	all, err := s.st.Volumes()
	s.must(err)
	r, ok := all[v.ID]
	if !ok {
		s.Fatalf("volume %s is not remembered", v.ID)
	}
	return r
}

func TestStageRefuses(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		other := s.make("other", drivebay.VolumeRequest{})
		s.must(s.stage(v))
		elsewhere := func(path string) func(*drivebay.StageRequest) {
			return func(r *drivebay.StageRequest) { r.Path = path }
		}
		for name, c := range map[string]struct {
			err  error
			want error
		}{
			"at another path":          {s.stage(v, elsewhere(kubelet+"/plugins/csi/else")), drivebay.ErrBusy},
			"with other options":       {s.stage(v, func(r *drivebay.StageRequest) { r.Options = []string{"noatime"} }), drivebay.ErrExists},
			"with another access":      {s.stage(v, func(r *drivebay.StageRequest) { r.Access = drivebay.AccessSingleWriter }), drivebay.ErrExists},
			"as a device":              {s.stage(v, func(r *drivebay.StageRequest) { r.Block = true }), drivebay.ErrNoSupport},
			"as xfs":                   {s.stage(v, func(r *drivebay.StageRequest) { r.FSType = "xfs" }), drivebay.ErrNoSupport},
			"where another is":         {s.stage(other, elsewhere(staging(v))), drivebay.ErrRefused},
			"outside of the roots":     {s.stage(other, elsewhere("/etc/drivebay")), drivebay.ErrInvalid},
			"by a path with dots":      {s.stage(other, elsewhere(kubelet+"/../kubelet/x")), drivebay.ErrInvalid},
			"at the root itself":       {s.stage(other, elsewhere(kubelet)), drivebay.ErrInvalid},
			"by a relative path":       {s.stage(other, elsewhere("kubelet/x")), drivebay.ErrInvalid},
			"of a volume of nobody":    {s.e.StageVolume(s.Context(), drivebay.StageRequest{Volume: "nobody", Path: staging(v)}), drivebay.ErrNotFound},
			"published, not staged":    {s.publish(other, "pod"), drivebay.ErrBusy},
			"published into itself":    {s.publish(v, "pod", func(r *drivebay.PublishRequest) { r.Target = staging(v) + "/x" }), drivebay.ErrInvalid},
			"published on its staging": {s.publish(v, "pod", func(r *drivebay.PublishRequest) { r.Target = staging(v) }), drivebay.ErrInvalid},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", name, c.err, c.want)
			}
		}
		if len(s.mounts(staging(v))) != 1 || s.of(v).CSIStatus != drivebay.CSIVolumeReady || s.of(other).CSIStatus != drivebay.CSICreated {
			t.Error("a call that was refused has changed something")
		}
		s.must(s.publish(v, "pod"))
		if err := s.unstage(v); !errors.Is(err, drivebay.ErrBusy) {
			t.Errorf("a published volume is unstaged: %v", err)
		}
	})
}

// TestMountOptions: what a class may ask for is mounted; what could reach beyond
// the volume is refused, and no error tells it.
func TestMountOptions(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		for _, o := range []string{"bind", "remount", "loop", "dev", "errors=panic", "journal_dev=0x801", "noload", "password=hunter2", "noatime,dev", ""} {
			err := s.stage(v, func(r *drivebay.StageRequest) { r.Options = []string{"noatime", o} })
			if !errors.Is(err, drivebay.ErrInvalid) || o != "" && strings.Contains(err.Error(), o) {
				t.Errorf("option %q: %v", o, err)
			}
		}
		s.must(s.stage(v, func(r *drivebay.StageRequest) { r.Options = []string{"noatime", "noexec", "commit=30"} }))
		got := strings.Split(s.mounts(staging(v))[0].Opts, ",")
		for _, want := range []string{"noatime", "noexec", "nodev", "commit=30", "errors=remount-ro"} {
			if !slices.Contains(got, want) {
				t.Errorf("it is mounted with %q, without %s", got, want)
			}
		}
		if slices.Contains(got, "discard") {
			t.Error("every delete waits for a discard")
		}
		if text := fmt.Sprintf("%+v", s.record(v)); strings.Contains(text, "noexec") {
			t.Errorf("mount options are remembered: %s", text)
		}
	})
}

// TestReadOnly: what is published read-only cannot be written to, and a device
// cannot be both.
func TestReadOnly(t *testing.T) {
	readOnly := func(r *drivebay.PublishRequest) { r.ReadOnly = true }
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.publish(v, "reads", readOnly), s.publish(v, "writes"))
		if ro, rw := s.mounts(target(v, "reads"))[0].Opts, s.mounts(target(v, "writes"))[0].Opts; !strings.HasPrefix(ro, "ro") || !strings.HasPrefix(rw, "rw") {
			t.Errorf("the reader has %q, the writer %q", ro, rw)
		}
		if err := s.publish(v, "reads"); !errors.Is(err, drivebay.ErrExists) {
			t.Errorf("a reader becomes a writer: %v", err)
		}

		b := s.make("b", drivebay.VolumeRequest{Block: true})
		write := func() error {
			d, err := s.sim.OpenDisk(s.Context(), "/dev/"+s.device(b), false)
			s.must(err)
			defer d.Close()
			_, err = d.WriteAt(make([]byte, 4096), 0)
			return err
		}
		s.must(s.stage(b), s.publish(b, "one", readOnly), s.publish(b, "two", readOnly))
		if err := write(); err == nil {
			t.Error("a device that is published read-only is written to")
		}
		if err := s.publish(b, "three"); !errors.Is(err, drivebay.ErrBusy) {
			t.Errorf("a writer beside readers: %v", err)
		}
		s.must(s.unpublish(b, "one"), s.unpublish(b, "two"))
		if err := write(); err != nil {
			t.Errorf("the readers are gone and it is read-only: %v", err)
		}
		s.must(s.publish(b, "one"))
		if err := s.publish(b, "two", readOnly); !errors.Is(err, drivebay.ErrBusy) {
			t.Errorf("a reader beside a writer: %v", err)
		}
	})
}

// TestForeignMounts: what somebody else has mounted at our paths, or left in them,
// is left where it is.
func TestForeignMounts(t *testing.T) {
	onStand(t, func(s *stand) {
		v, w := s.make("v", drivebay.VolumeRequest{}), s.make("w", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.stage(w), s.publish(v, "pod"))
		wrong := place(target(v, "pod"))
		s.must(s.sim.Bind(s.Context(), place(staging(w)), wrong, false)) // over ours
		for name, err := range map[string]error{"publish": s.publish(v, "pod"), "unpublish": s.unpublish(v, "pod")} {
			if !errors.Is(err, drivebay.ErrRefused) || len(s.mounts(target(v, "pod"))) != 2 {
				t.Errorf("%s with another volume on top: %v, %d mounts", name, err, len(s.mounts(target(v, "pod"))))
			}
		}
		s.must(s.sim.Unmount(s.Context(), wrong))
		for range 2 { // ours, stacked
			s.must(s.sim.Bind(s.Context(), place(staging(v)), wrong, false))
		}
		s.must(s.unpublish(v, "pod"))
		if n := len(s.mounts(target(v, "pod"))); n != 0 || s.look(target(v, "pod")) != host.PlaceNothing {
			t.Errorf("%d mounts are left", n)
		}

		s.must(s.sim.MakeFolder(place(target(v, "full"))), s.sim.MakeFile(place(target(v, "full")+"/data")))
		if err := s.unpublish(v, "full"); err == nil || s.look(target(v, "full")+"/data") != host.PlaceFile {
			t.Errorf("somebody's file is gone: %v", err)
		}
	})
}

// TestUnmountedBehindOurBack: the next call sees it and puts it right. A path of one writer that was
// unmounted is taken until it is unpublished: its container may have the volume still.
func TestUnmountedBehindOurBack(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		one := func(r *drivebay.PublishRequest) { r.Access = drivebay.AccessSingleWriter }
		s.must(s.stage(v), s.publish(v, "pod", one))
		s.must(s.sim.Unmount(s.Context(), place(target(v, "pod"))))
		if err := s.publish(v, "next", one); !errors.Is(err, drivebay.ErrBusy) {
			t.Errorf("published to a second path: %v", err)
		}
		s.must(s.unpublish(v, "pod"), s.publish(v, "next", one))
		s.must(s.sim.Unmount(s.Context(), place(target(v, "next"))), s.sim.Unmount(s.Context(), place(staging(v))))
		if err := s.publish(v, "next", one); !errors.Is(err, drivebay.ErrBusy) {
			t.Errorf("published without being staged: %v", err)
		}
		s.must(s.stage(v), s.publish(v, "next", one))
		if len(s.mounts(staging(v))) != 1 || len(s.mounts(target(v, "next"))) != 1 {
			t.Error("it is not mounted again")
		}
	})
}

// TestRebootedBlock: a block volume that was staged, and published, before the machine was restarted is not staged, and can be deleted. A restart of the
// daemon alone changes nothing.
func TestRebootedBlock(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"a partition": requests()["a partition"], "a mirror": requests()["a mirror"], "encrypted": encryptedRequests()["a linear volume"]} {
		for _, published := range []bool{false, true} {
			onStand(t, func(s *stand) {
				v := s.make("v", r)
				s.must(s.stage(v, with(rightKey)))
				if published {
					s.must(s.publish(v, "pod"))
				}
				s.start()
				if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrBusy) {
					t.Errorf("%s, published %v: deleted while it is staged: %v", name, published, err)
				}
				s.stop()
				s.stop = nil
				if published {
					s.must(s.sim.Unmount(s.Context(), place(target(v, "pod"))))
				}
				s.sim.PowerCut()
				s.nextBoot()
				s.begin()
				time.Sleep(time.Minute)
				if is := s.of(v); is.CSIStatus != drivebay.CSICreated || len(is.Publications) > 0 || is.Condition.Abnormal() {
					t.Errorf("%s, published %v: after a reboot it is %v, at %v: %s", name, published, is.CSIStatus, is.Publications, is.Condition.Message())
				}
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
			})
		}
	}
}

// TestRebooted: the first set that anybody sees has no mounts of before.
func TestRebooted(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.publish(v, "pod"))
		s.stop()
		s.must(s.sim.Unmount(s.Context(), place(target(v, "pod"))), s.sim.Unmount(s.Context(), place(staging(v))))
		s.sim.NextBoot()
		s.inject(v.Location.Drives[0], "hang") // nobody has to wait for it
		s.stop = nil
		s.begin()
		for s.e.Volumes().Seq == 0 {
			time.Sleep(time.Millisecond)
		}
		if is := s.of(v); is.CSIStatus != drivebay.CSICreated || len(is.Publications) > 0 {
			t.Errorf("it is said to be %v, at %v", is.CSIStatus, is.Publications)
		}
		s.inject(v.Location.Drives[0], "heal")
		time.Sleep(time.Minute)
	})
}
