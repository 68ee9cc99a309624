package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestHealMirror: a leg that was away is taken back while the volume is in use, and
// then serves alone.
func TestHealMirror(t *testing.T) {
	t.Parallel()
	for _, write := range []bool{false, true} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingMirror, Wipe: drivebay.WipeNone, FSType: "ext4"}})
			s.must(s.stage(v), s.publish(v, "pod"))
			leg, _ := s.mgr.Snapshot().Find(v.Location.Drives[0])
			s.inject(leg.ID, "vanish")
			time.Sleep(10 * time.Second)
			if write {
				s.must(s.sim.MakeFolder(place(target(v, "pod") + "/meanwhile")))
			}
			if got := s.heal(v); got != "" {
				s.Errorf("without the leg: %q", got)
			}
			s.must(s.sim.Inject(hostsim.Fault{Drive: leg.Serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
			time.Sleep(time.Minute)
			if got := s.heal(v); got != "restore mirror legs" {
				s.Errorf("written to %v: healed by %q", write, got)
			}
			if got := s.heal(v); got != "" {
				s.Errorf("again: %q", got)
			}
			s.inject(v.Location.Drives[1], "vanish")
			time.Sleep(time.Minute)
			s.inUse(v, target(v, "pod"), false)
			if kind := s.look(target(v, "pod") + "/meanwhile"); write && kind != host.PlaceFolder {
				s.Errorf("what was written meanwhile is %v", kind)
			}
		})
	}
}

// TestHealHalfMirror: both legs went, and one is back: it serves alone.
func TestHealHalfMirror(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingMirror, Wipe: drivebay.WipeNone, FSType: "ext4"}})
		s.must(s.stage(v), s.publish(v, "pod"), s.sim.MakeFolder(place(target(v, "pod")+"/before")))
		leg, _ := s.mgr.Snapshot().Find(v.Location.Drives[1])
		for _, id := range v.Location.Drives {
			s.inject(id, "vanish")
		}
		time.Sleep(10 * time.Second)
		s.must(s.sim.Inject(hostsim.Fault{Drive: leg.Serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
		time.Sleep(time.Minute)
		if got := s.heal(v); got != "unmount dead mounts, activate the logical volume, mount the filesystem, restore the bind mounts of pods" {
			s.Errorf("healed by %q", got)
		}
		s.inUse(v, target(v, "pod"), false)
		if kind := s.look(target(v, "pod") + "/before"); kind != host.PlaceFolder {
			s.Errorf("what was there before is %v", kind)
		}
	})
}

// TestHealPool: a full pool gets what its group has; one without says why not.
func TestHealPool(t *testing.T) {
	t.Parallel()
	onMachine(t, drivesOf("10GB"), volume.Options{}, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{Size: drivebay.SizeRange{Required: 9 << 30}, Class: drivebay.Class{Drives: drivebay.TypeNVMe, Backing: drivebay.BackingThin, Wipe: drivebay.WipeNone, FSType: "ext4"}, Block: true})
		s.must(s.stage(v), s.publish(v, "pod"))
		dev := "/dev/" + s.active(v)
		disk, err := s.sim.OpenDisk(s.Context(), dev, false)
		s.must(err)
		for at := int64(0); at < 9<<30*95/100; at += 64 << 10 {
			if _, err = disk.WriteAt([]byte("used"), at); err != nil {
				break
			}
		}
		s.must(err)
		defer disk.Close()
		time.Sleep(time.Minute)
		if is := s.of(v); !strings.Contains(reasons(is.Condition), "ThinPoolLowOnDataSpace") || is.Condition.Severity() != drivebay.SeverityDegraded {
			s.Errorf("it takes writes still, and this is said of it: %v", is.Condition.Message())
		}
		if got := s.heal(v); got != "!extend the thin pool" {
			s.Errorf("the group is full as well: %q", got)
		}
		// Somebody makes room: what a repair of the pool would have been made with.
		pv := s.drive(v).Name + "p1"
		_, err = s.sim.Run(s.Context(), "lvm", "lvremove", "--devices", "/dev/"+pv, "--yes", v.Location.VG+"/lvol0_pmspare")
		s.must(err)
		time.Sleep(time.Minute)
		if got := s.heal(v); got != "extend the thin pool" {
			s.Errorf("the group has room: %q", got)
		}
		for _, at := range []int64{0, 4 << 30, 8 << 30} {
			text := make([]byte, 4)
			if _, err := disk.ReadAt(text, at); err != nil || string(text) != "used" {
				s.Errorf("at %d it reads %q, %v", at, text, err)
			}
		}
	})
}

// TestHealPoolMetadata: so does the bookkeeping of a pool.
func TestHealPoolMetadata(t *testing.T) {
	t.Parallel()
	onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "20GB"}}}, volume.Options{}, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{Size: drivebay.SizeRange{Required: 14 << 30}, Class: drivebay.Class{Backing: drivebay.BackingThin, Wipe: drivebay.WipeNone, FSType: "ext4"}, Block: true})
		s.must(s.stage(v), s.publish(v, "pod"))
		disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+s.active(v), false)
		s.must(err)
		defer disk.Close()
		for at := int64(0); at < 13<<30; at += 64 << 10 {
			if _, err = disk.WriteAt([]byte("used"), at); err != nil {
				break
			}
		}
		s.must(err)
		time.Sleep(time.Minute)
		if is := s.of(v); !strings.Contains(reasons(is.Condition), "ThinPoolLowOnMetadataSpace") || is.Condition.Severity() != drivebay.SeverityDegraded {
			s.Errorf("it takes writes still, and this is said of it: %v", is.Condition.Message())
		}
		if got := s.heal(v); got != "!extend the metadata of the thin pool" {
			s.Errorf("the group is full: %q", got)
		}
		_, err = s.sim.Run(s.Context(), "lvm", "lvremove", "--devices", "/dev/"+s.drive(v).Name+"p1", "--yes", v.Location.VG+"/lvol0_pmspare")
		s.must(err)
		time.Sleep(time.Minute)
		if got := s.heal(v); got != "extend the metadata of the thin pool" {
			s.Errorf("the group has room: %q", got)
		}
		if stats, err := s.stats(v, target(v, "pod")); err != nil || stats.Condition.Abnormal() {
			s.Errorf("right after it: %s, %v", stats.Condition.Message(), err)
		}
	})
}

// TestHealFsck: a filesystem is repaired only when nobody has it mounted, and only
// for who asks.
func TestHealFsck(t *testing.T) {
	ask := func(r *drivebay.HealRequest) { r.Fsck, r.Secrets = true, secrets(rightKey) }
	for _, fs := range []string{"ext4", "xfs", "btrfs"} {
		for _, encrypted := range []bool{false, true} {
			onStand(t, func(s *stand) {
				r := drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingThin, Wipe: drivebay.WipeNone, FSType: fs}}
				if encrypted {
					r.Class.Encryption, r.Secrets = drivebay.EncryptionLUKS2, secrets(rightKey)
				}
				v := s.make("v", r)
				s.must(s.stage(v, with(rightKey)))
				s.inject(staging(v), "fs-corrupt")
				s.must(s.e.ScrubVolume(s.Context(), v.ID))
				time.Sleep(10 * time.Minute)
				if got := s.heal(v, ask); got != "!repair the filesystem" {
					s.Errorf("%s, mounted: %q", fs, got)
				}
				s.must(s.unstage(v))
				if got := s.heal(v); got != "" {
					s.Errorf("%s, not asked for: %q", fs, got)
				}
				want := "repair the filesystem"
				if fs == "btrfs" {
					want = "!" + want
				}
				got := s.heal(v, ask)
				time.Sleep(5 * time.Second)
				if sound := !strings.Contains(reasons(s.of(v).Condition), "FilesystemCorruption"); got != want || sound != (fs != "btrfs") {
					s.Errorf("%s, asked for: %q, %s", fs, got, reasons(s.of(v).Condition))
				}
				if _, open := s.plain(v); open || s.active(v) != "" {
					s.Errorf("%s: it stays active as %s", fs, s.active(v))
				}
				s.must(s.stage(v, with(rightKey)), s.unstage(v))
			})
		}
	}
}

// TestHealKilled: a healing that was cut short anywhere is begun again by the next
// daemon, and comes to the same end.
func TestHealKilled(t *testing.T) {
	t.Parallel()
	k := &killer{}
	for after, all := 1, false; !all && !t.Failed(); after += everyNth {
		k.arm(0)
		onMachine(t, smallDrives(), volume.Options{After: k.step}, func(s *stand) {
			v := s.make("v", encryptedRequests()["xfs on linear"])
			s.must(s.stage(v, with(rightKey)), s.publish(v, "pod"))
			serial := s.drive(v).Serial
			s.inject(v.Location.Drives[0], "vanish")
			time.Sleep(10 * time.Second)
			s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
			time.Sleep(30 * time.Second)
			k.anew(after)
			_, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID, Secrets: secrets(rightKey)})
			all = !s.restarted(err)
			if got := s.heal(v, keyed); strings.Contains(got, "!") || all && got != "" {
				s.Errorf("after %q: %q", k.steps(), got)
			}
			s.inUse(v, target(v, "pod"), false)
			if is := s.of(v); is.CSIStatus != drivebay.CSIPublished || len(is.Publications) != 2 {
				s.Errorf("after %q: %v, %+v", k.steps(), is.CSIStatus, is.Publications)
			}
			s.must(s.unpublish(v, "pod"), s.unstage(v))
		})
	}
	if len(k.steps()) < 4 {
		t.Errorf("only %q", k.steps())
	}
}
