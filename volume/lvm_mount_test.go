package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestLogicalVolumes: a logical volume is active while it is staged and no
// longer; it is grown, pulled and let go like a partition.
func TestLogicalVolumes(t *testing.T) {
	for _, backing := range []drivebay.Backing{drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror} {
		for _, block := range []bool{false, true} {
			onStand(t, func(s *stand) {
				v := s.make("v", drivebay.VolumeRequest{Block: block, Class: drivebay.Class{Backing: backing, Wipe: drivebay.WipeNone, FSType: "ext4"}})
				s.must(s.unstage(v)) // nothing to do
				for range 2 {
					s.must(s.stage(v), s.publish(v, "pod"))
				}
				if n := len(s.mounts(target(v, "pod"))); n != 1 {
					s.Errorf("%s: %d mounts are published", backing, n)
				}
				time.Sleep(time.Minute)
				got, err := s.stats(v, target(v, "pod"))
				if err != nil || got.Bytes.Total == 0 || got.Condition.Severity() > drivebay.SeverityDegraded || strings.Contains(reasons(got.Condition), "Unmounted") {
					s.Errorf("%s: %+v, %v", backing, got, err)
				}
				if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrBusy) {
					s.Errorf("%s: deleted while a pod has it: %v", backing, err)
				}
				if _, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30}); err != nil {
					s.Fatal(err)
				}
				if size, err := s.e.ExpandNode(s.Context(), v.ID, target(v, "pod"), drivebay.SizeRange{}, nil); err != nil || size != 2<<30 {
					s.Errorf("%s: grown to %d, %v", backing, size, err)
				}
				s.start()
				s.must(s.unpublish(v, "pod"), s.unstage(v))
				if active := s.active(v); active != "" {
					s.Errorf("%s: still active as %s", backing, active)
				}
				s.must(s.stage(v), s.publish(v, "pod"))
				for _, id := range v.Location.Drives {
					s.inject(id, "vanish")
				}
				time.Sleep(10 * time.Second)
				if is := s.of(v); is.OperationalStatus != drivebay.Missing {
					s.Errorf("%s, pulled: %v, %s", backing, is.OperationalStatus, is.Condition.Message())
				}
				s.must(s.unpublish(v, "pod"), s.unstage(v))
				// The device that LVM made is still there, above one that is gone for good.
				for _, id := range v.Location.Drives {
					s.inject(id, "return")
				}
				time.Sleep(time.Minute)
				s.must(s.stage(v), s.publish(v, "pod"), s.unpublish(v, "pod"), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
			})
		}
	}
}

// active is the device-mapper name of a volume's device; empty: there is none.
func (s *stand) active(v drivebay.Volume) string {
	s.Helper()
	names, err := s.sim.ReadDir("sys/block")
	s.must(err)
	for _, name := range names {
		text, _ := s.sim.ReadFile("sys/block/" + name + "/dm/name")
		if double := strings.ReplaceAll(v.Location.VG, "-", "--") + "-" + strings.ReplaceAll(v.Location.LV, "-", "--"); strings.TrimSpace(string(text)) == double {
			return name
		}
	}
	return ""
}

// TestHowSoon holds the time from a fault to the condition against the budgets.
func TestHowSoon(t *testing.T) {
	for fault, c := range map[string]struct {
		within time.Duration
		want   string
	}{
		"vanish": {time.Second, "DiskRemoved"},
		"eio":    {5 * time.Second, "RWIOError"},
		"hang":   {10 * time.Second, "HighLatency"},
	} {
		onStand(t, func(s *stand) {
			v := s.make("v", drivebay.VolumeRequest{})
			s.must(s.stage(v), s.publish(v, "pod"))
			time.Sleep(2*time.Minute + 700*time.Millisecond)
			s.inject(v.Location.Drives[0], fault)
			go s.sim.ReadFolder(s.Context(), place(target(v, "pod"))) // a pod
			time.Sleep(c.within)
			got, err := s.stats(v, target(v, "pod"))
			if err != nil || !strings.Contains(reasons(got.Condition), c.want) || reasons(s.of(v).Condition) == "" {
				s.Errorf("%s, after %v: %q, of the set %q, %v", fault, c.within, reasons(got.Condition), reasons(s.of(v).Condition), err)
			}
			s.inject(v.Location.Drives[0], "heal")
		})
	}
}
