package volume_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestLockedByHand: another program locks an encrypted block volume that is in use, and the next volume that is used gets the
// number of its device. The path of the pod shows that other volume, also where both are on one drive: it is not reported as sound,
// and shows its own volume again after a repair.
func TestLockedByHand(t *testing.T) {
	t.Parallel()
	one := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "20GB"}}}
	for _, name := range []string{"a partition", "a linear volume", "a thin volume"} {
		onMachine(t, one, volume.Options{}, func(s *stand) {
			v, other := s.make("v", encryptedRequests()[name]), s.make("other", encryptedRequests()[name])
			s.must(s.stage(v, with(rightKey)), s.publish(v, "pod"))
			was, _ := s.plain(v)
			s.first(was, "the data of v!!!")
			_, err := s.sim.Run(s.Context(), "cryptsetup", "close", "drivebay-"+v.ID)
			s.must(err, s.stage(other, with(rightKey)))
			if _, err := s.sim.ReadFile("sys/block/" + filepath.Base(was) + "/dev"); err != nil {
				t.Fatalf("%s: nothing of the other volume has the number of %s: %v", name, was, err)
			}
			time.Sleep(2 * time.Minute)
			if is := s.of(v).Condition; !strings.Contains(reasons(is), "VolumeUnmounted") {
				t.Errorf("%s: its path shows another volume, and it is said: %s", name, is.Message())
			}
			if st, err := s.stats(v, target(v, "pod")); err == nil && !st.Condition.Abnormal() {
				t.Errorf("%s: its path shows another volume, and the answer for it is: %s", name, st.Condition.Message())
			}
			_, err = s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID, Secrets: secrets(rightKey)})
			s.must(err)
			dev, _ := s.plain(v)
			if on := s.mounts(target(v, "pod")); len(on) != 1 || "/dev"+on[0].Root != dev || s.first(dev, "") != "the data of v!!!" {
				t.Errorf("%s: repaired, its path shows %+v, and it is %s", name, on, dev)
			}
		})
	}
}

// TestLockedWhileStaged: an encrypted block volume that another program locks while it is staged, and no pod has it, is not reported as sound:
// no pod can get it before a repair. After the machine was restarted it is locked as well, which is no finding: no path is lost.
func TestLockedWhileStaged(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a partition", "a linear volume"} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			v := s.make("v", encryptedRequests()[name])
			s.must(s.stage(v, with(rightKey)))
			time.Sleep(2 * time.Minute)
			if is := s.of(v).Condition; is.Abnormal() {
				t.Errorf("%s: staged, it is said: %s", name, is.Message())
			}
			_, err := s.sim.Run(s.Context(), "cryptsetup", "close", "drivebay-"+v.ID)
			s.must(err)
			time.Sleep(2 * time.Minute)
			if is := s.of(v).Condition; !strings.Contains(reasons(is), "VolumeUnmounted") {
				t.Errorf("%s: it is locked, and it is said: %s", name, is.Message())
			}
			_, err = s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID, Secrets: secrets(rightKey)})
			s.must(err, s.publish(v, "pod"), s.unpublish(v, "pod"))
			time.Sleep(2 * time.Minute)
			if is := s.of(v).Condition; is.Abnormal() {
				t.Errorf("%s: repaired, it is said: %s", name, is.Message())
			}
			s.stop()
			s.stop = nil
			s.nextBoot()
			s.start()
			time.Sleep(2 * time.Minute)
			if is := s.of(v).Condition; strings.Contains(reasons(is), "VolumeUnmounted") {
				t.Errorf("%s: restarted, it is said: %s", name, is.Message())
			}
			s.must(s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
		})
	}
}

// TestReopenedByHand: the device of a block volume that is published read-only is made again with the same number, so that the removed node
// at the path of the pod opens it, for writing as well. That is a finding, and a repair makes it read-only again.
func TestReopenedByHand(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"encrypted": encryptedRequests()["a partition"], "encrypted, linear": encryptedRequests()["a linear volume"], "linear": requests()["a linear volume"]} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			v := s.make("v", r)
			s.must(s.stage(v, with(rightKey)), s.publish(v, "pod", func(r *drivebay.PublishRequest) { r.ReadOnly = true }))
			dev := strings.TrimSuffix(strings.TrimPrefix(s.mounts(target(v, "pod"))[0].Root, "/"), "//deleted")
			readOnly := func() string {
				ro, err := s.sim.ReadFile("sys/block/" + dev + "/ro")
				s.must(err)
				return strings.TrimSpace(string(ro))
			}
			if readOnly() != "1" {
				t.Fatalf("%s: %s is published read-only, and can be written", name, dev)
			}
			if v.Encrypted() {
				_, err := s.sim.Run(s.Context(), "cryptsetup", "close", "drivebay-"+v.ID)
				s.must(err)
			} else {
				_, err := s.sim.Run(s.Context(), "lvm", "lvchange", "-an", v.Location.VG+"/"+v.Location.LV)
				s.must(err)
				time.Sleep(time.Minute)
			}
			s.must(s.stage(v, with(rightKey)))
			if readOnly() != "0" {
				t.Fatalf("%s: %s was made again, and is read-only", name, dev)
			}
			time.Sleep(6 * time.Minute)
			if is := s.of(v).Condition; !strings.Contains(reasons(is), "VolumeUnmounted") {
				t.Errorf("%s: its path can be written, and it is said: %s", name, is.Message())
			}
			_, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID, Secrets: secrets(rightKey)})
			s.must(err)
			if is := s.of(v).Condition; readOnly() != "1" || is.Abnormal() {
				t.Errorf("%s: repaired, its path can be written: %s; %s", name, readOnly(), is.Message())
			}
		})
	}
}
