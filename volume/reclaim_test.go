package volume_test

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestReclaim: what nobody uses goes back to the pool, whether the volume is mounted
// or not; what was not mounted before is not after it.
func TestReclaim(t *testing.T) {
	t.Parallel()
	for _, fs := range drivebay.FSTypes {
		for _, used := range []bool{true, false} {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingThin, Wipe: drivebay.WipeNone, FSType: fs}})
				s.must(s.stage(v), s.publish(v, "pod"))
				s.first("/dev/"+s.active(v), "")
				disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+s.active(v), false)
				s.must(err)
				for at := int64(512 << 20); at < 768<<20; at += 1 << 20 {
					_, err := disk.WriteAt([]byte("deleted since"), at)
					s.must(err)
				}
				s.must(disk.Close())
				r := drivebay.ReclaimRequest{Volume: v.ID, Path: target(v, "pod"), Staging: staging(v)}
				if !used {
					s.must(s.unpublish(v, "pod"), s.unstage(v))
					r.Path, r.Staging = "", ""
				}
				mounts, _ := s.sim.Mounts(s.Context())
				got, err := s.e.Reclaim(s.Context(), r)
				if err != nil || got.Before == nil || got.After == nil || *got.Before < *got.After+8<<20 {
					s.Fatalf("%s, used %v: %+v, %v", fs, used, got, err)
				}
				again, err := s.e.Reclaim(s.Context(), r)
				if err != nil || *again.Before != *got.After || *again.After != *got.After {
					s.Errorf("%s, used %v, again: %d to %d, %v", fs, used, *again.Before, *again.After, err)
				}
				if now, _ := s.sim.Mounts(s.Context()); len(now) != len(mounts) {
					s.Errorf("%s, used %v: %d mounts, %d before", fs, used, len(now), len(mounts))
				}
				if !used && s.active(v) != "" {
					s.Errorf("%s: it stays active", fs)
				}
				s.must(s.stage(v), s.publish(v, "pod"))
			})
		}
	}
}

// TestReclaimNot: where nothing can be discarded that is said.
func TestReclaimNot(t *testing.T) {
	t.Parallel()
	disks := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindSATAHDD, Serial: "DISK{n}", Size: "10GB"}}}
	for name, c := range map[string]struct {
		r    drivebay.VolumeRequest
		path string
		want error
	}{
		"a hard disk":    {path: "", want: drivebay.ErrNoSupport},
		"a block volume": {r: drivebay.VolumeRequest{Block: true}, want: drivebay.ErrNoSupport},
		"an encrypted one": {r: drivebay.VolumeRequest{Secrets: secrets(rightKey),
			Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: "ext4", Encryption: drivebay.EncryptionLUKS2}}, want: drivebay.ErrNoSupport},
		"another path": {path: kubelet + "/elsewhere", want: drivebay.ErrNotFound},
	} {
		onMachine(t, disks, volume.Options{}, func(s *stand) {
			v := s.make("v", c.r)
			s.must(s.stage(v, with(rightKey)))
			got, err := s.e.Reclaim(s.Context(), drivebay.ReclaimRequest{Volume: v.ID, Path: c.path})
			if !errors.Is(err, c.want) || got.Before != nil {
				s.Errorf("%s: %+v, %v", name, got, err)
			}
		})
	}
}
