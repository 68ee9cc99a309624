package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestStatsSteps walks the seven steps of the health proposal's NodeGetVolumeStats.
func TestStatsSteps(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{FSType: "xfs", Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: "xfs"}})
		b := s.make("b", drivebay.VolumeRequest{Block: true})
		s.must(s.stage(v), s.publish(v, "pod"), s.stage(b), s.publish(b, "pod"))
		path := target(v, "pod")

		for what, c := range map[string]struct{ id, path string }{"volume": {"nobody", path}, "path": {v.ID, kubelet + "/nowhere"}} { // 1
			if _, err := s.e.Stats(s.Context(), drivebay.StatsRequest{Volume: c.id, Path: c.path}); !errors.Is(err, drivebay.ErrNotFound) {
				t.Errorf("of no such %s: %v", what, err)
			}
		}
		for _, outside := range []string{"/", "/etc", kubelet, kubelet + "/../x", "kubelet/x"} {
			_, stats := s.stats(v, outside)
			_, staged := s.e.Stats(s.Context(), drivebay.StatsRequest{Volume: v.ID, Path: path, Staging: outside})
			_, grow := s.e.ExpandNode(s.Context(), v.ID, outside, drivebay.SizeRange{}, nil)
			for _, err := range []error{stats, staged, grow} {
				if !errors.Is(err, drivebay.ErrNotFound) || errors.Is(err, drivebay.ErrInvalid) {
					t.Errorf("at %q, below no root: %v", outside, err)
				}
			}
		}

		sound, err := s.stats(v, path) // 7
		if err != nil || sound.Condition.Abnormal() || sound.Bytes.Total == 0 || sound.Bytes.Total > v.Size || sound.Inodes == nil || sound.Bytes.Available+sound.Bytes.Used > sound.Bytes.Total {
			t.Errorf("sound: %+v, %v", sound, err)
		}
		if got, err := s.stats(b, target(b, "pod")); err != nil || got.Condition.Abnormal() || got.Bytes.Total != b.Size || got.Inodes != nil {
			t.Errorf("a block volume: %+v, %v", got, err)
		}
		if got, err := s.stats(b, staging(b)); !errors.Is(err, drivebay.ErrNotFound) && (err != nil || got.Condition.Abnormal()) {
			t.Errorf("a block volume where it is staged: %+v, %v", got, err)
		}
		if staged, err := s.stats(v, staging(v)); err != nil || staged.Condition.Abnormal() || staged.Bytes != sound.Bytes {
			t.Errorf("where it is staged: %+v, %v", staged, err)
		}

		expect := func(step, want string, severity drivebay.Severity, numbers bool) {
			t.Helper()
			got, err := s.stats(v, path)
			if err != nil || !strings.Contains(" "+reasons(got.Condition)+" ", " "+want+" ") || got.Condition.Severity() != severity || (got.Bytes.Total > 0) != numbers {
				t.Errorf("%s: %s (%v), %d bytes, %v", step, reasons(got.Condition), got.Condition.Severity(), got.Bytes.Total, err)
			}
		}
		s.must(s.sim.Unmount(s.Context(), place(staging(v)))) // 3
		time.Sleep(time.Second)
		expect("staging unmounted", "VolumeUnmounted", drivebay.SeverityDegraded, true)
		s.must(s.stage(v))
		s.must(s.sim.Unmount(s.Context(), place(path))) // 4
		time.Sleep(time.Second)
		expect("target unmounted", "VolumeUnmounted", drivebay.SeverityInaccessible, false)
		w := s.make("w", drivebay.VolumeRequest{})
		s.must(s.stage(w), s.sim.Bind(s.Context(), place(staging(w)), place(path), false))
		time.Sleep(time.Second)
		expect("another volume in its place", "VolumeUnmounted", drivebay.SeverityInaccessible, false)
		s.must(s.sim.Unmount(s.Context(), place(path)), s.publish(v, "pod"))
		time.Sleep(time.Second)

		s.inject(v.Location.Drives[0], "eio") // 2 and 5
		time.Sleep(90 * time.Second)
		expect("input/output errors", "PathUnreadable", drivebay.SeverityInaccessible, true)
		expect("input/output errors", "RWIOError", drivebay.SeverityInaccessible, true)
		s.inject(v.Location.Drives[0], "heal")
		s.inject(v.Location.Drives[0], "vanish")
		time.Sleep(5 * time.Second)
		expect("the drive is pulled", "DiskRemoved", drivebay.SeverityInaccessible, false)
	})
}

// TestKernelTurnsReadOnly: what the kernel does to a filesystem is told of the
// volume and of its path, until it is unmounted; what we were asked for is not.
func TestKernelTurnsReadOnly(t *testing.T) {
	states := map[string]drivebay.OperationalStatus{"ext4": drivebay.Operative, "xfs": drivebay.Inoperative} // what is read-only can be read
	for fs, want := range map[string]string{"ext4": "ReadOnlyFilesystem", "xfs": "FilesystemShutdown"} {
		onStand(t, func(s *stand) {
			v := s.make("v", drivebay.VolumeRequest{FSType: fs, Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: fs}})
			s.must(s.stage(v), s.publish(v, "pod"))
			time.Sleep(5 * time.Second)
			if c := s.of(v).Condition; c.Abnormal() {
				t.Fatalf("%s, sound: %s", fs, c.Message())
			}
			s.inject(target(v, "pod"), "fs-read-only")
			time.Sleep(5 * time.Second)
			got, err := s.stats(v, target(v, "pod"))
			if err != nil || !strings.Contains(reasons(got.Condition), want) || !strings.Contains(reasons(s.of(v).Condition), want) || s.of(v).OperationalStatus != states[fs] {
				t.Errorf("%s: %s, of the set %s, %v, %v", fs, reasons(got.Condition), reasons(s.of(v).Condition), s.of(v).OperationalStatus, err)
			}
			s.must(s.unpublish(v, "pod"), s.unstage(v))
			time.Sleep(5 * time.Second)
			if strings.Contains(reasons(s.of(v).Condition), want) {
				t.Errorf("%s is unmounted, and: %s", fs, reasons(s.of(v).Condition))
			}
		})
	}
	onStand(t, func(s *stand) { // nobody is accused of what was asked for
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v, func(r *drivebay.StageRequest) { r.Options = []string{"ro"} }))
		time.Sleep(5 * time.Second)
		if c := s.of(v).Condition; c.Abnormal() {
			t.Errorf("mounted read-only because we were told to: %s", c.Message())
		}
	})
}
