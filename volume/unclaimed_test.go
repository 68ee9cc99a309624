package volume_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

var twoNVMe = hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "20GB"}}}

// claimAll has the configuration claim all drives, or none.
func (s *stand) claimAll(on bool) {
	s.Helper()
	var claim drivebay.Selectors
	if on {
		s.must(claim.UnmarshalText([]byte("all")))
	}
	s.must(s.mgr.Configure(s.Context(), drivemgr.Options{Claim: claim}))
	time.Sleep(time.Minute)
	s.must(s.mgr.Refresh(s.Context()))
	time.Sleep(time.Minute)
	for _, d := range s.mgr.Snapshot().Drives {
		if (d.Claim != nil) != on {
			s.Fatalf("drive %s: claim %v", d.ID, d.Claim)
		}
	}
}

// TestUnclaimedIsUntouched: a drive without a claim is not written to, whatever is asked
// of the volumes on it; staging and publishing go on.
func TestUnclaimedIsUntouched(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "raw on a partition", "a linear volume", "ext4 on thin", "a mirror", "an encrypted partition"} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, twoNVMe, volume.Options{Heal: true}, func(s *stand) {
				r := unclaimedRequest(name)
				v := s.make("v", r)
				s.claimAll(false)
				before := s.sums()
				refused := func(what string, err error) {
					s.Helper()
					if !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "drivebay claim ") {
						s.Errorf("%s: %v", what, err)
					}
				}
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size + 1<<28})
				refused("expand", err)
				refused("delete", s.e.DeleteVolume(s.Context(), v.ID))
				if is := s.of(v); is.CSIStatus != drivebay.CSICreated {
					s.Errorf("it is %v: %s", is.CSIStatus, is.Condition.Message())
				}
				if v.Location.Kind == drivebay.LocationThin {
					_, err := s.e.CreateSnapshot(s.Context(), "s", v.ID)
					refused("snapshot", err)
				}
				s.heal(v)
				_ = s.mgr.Operate(s.Context(), v.Location.Drives[0], drivebay.LeaveRelease, "")
				time.Sleep(30 * time.Minute)
				s.start()
				time.Sleep(30 * time.Minute)
				if after := s.sums(); !maps.Equal(before, after) {
					s.Error("a drive was written to that is not claimed")
				}
				_ = s.mgr.Operate(s.Context(), v.Location.Drives[0], drivebay.LeaveCancel, "")
				time.Sleep(time.Minute) // the volume follows its drive, and is taken meanwhile
				trim := func() {
					if v.Mode == drivebay.ModeFS && v.LUKSUUID == "" {
						_, err := s.e.Reclaim(s.Context(), drivebay.ReclaimRequest{Volume: v.ID})
						refused("reclaim", err)
					}
				}
				trim()
				s.must(s.stage(v, with(r.Secrets[drivebay.SecretPassphrase])), s.publish(v, "pod"))
				trim()
				s.must(s.unpublish(v, "pod"), s.unstage(v))
			})
		})
	}
}

func unclaimedRequest(name string) drivebay.VolumeRequest {
	r := drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeZero, FSType: "ext4"}}
	switch name {
	case "raw on a partition":
		r.Block = true
	case "a linear volume":
		r.Block, r.Class.Backing = true, drivebay.BackingLVM
	case "ext4 on thin":
		r.Class.Backing = drivebay.BackingThin
	case "a mirror":
		r.Class.Backing = drivebay.BackingMirror
	case "an encrypted partition":
		r.Class.Encryption, r.Secrets = drivebay.EncryptionLUKS2, secrets(rightKey)
	}
	return r
}

// TestFoundOnUnclaimed: volumes on drives that are not claimed, of which nothing is
// recorded here, are shown, and nothing is done to them until they are claimed or adopted.
func TestFoundOnUnclaimed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"raw on a partition", "a linear volume", "ext4 on thin", "a mirror"} {
		for _, verb := range []string{"claim", "adopt"} {
			t.Run(verb+" "+name, func(t *testing.T) {
				onMachine(t, twoNVMe, volume.Options{}, func(s *stand) {
					r := unclaimedRequest(name)
					v := s.make("v", r)
					s.stop()
					s.stop = nil
					s.must(s.st.DeleteVolume(v.ID))
					s.claimAll(false)
					before := s.sums()
					s.start()
					time.Sleep(10 * time.Minute)
					if n := len(s.e.Volumes().Volumes); n != 0 {
						s.Fatalf("%d volumes were taken in", n)
					}
					if !slices.ContainsFunc(s.e.Volumes().Found, func(f drivebay.FoundVolume) bool { return f.ID == v.ID }) {
						s.Errorf("it is not shown: %+v", s.e.Volumes().Found)
					}
					if n := len(s.events(drivebay.EventVolumeFound)); n == 0 {
						s.Error("there is no event")
					}
					if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrRefused) {
						s.Errorf("delete: %v", err)
					}
					r.Name, r.Size.Required = "v", 1<<30
					if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrRefused) {
						s.Errorf("a second one: %v", err)
					}
					if after := s.sums(); !maps.Equal(before, after) {
						s.Error("a drive was written to that is not claimed")
					}
					if verb == "adopt" {
						s.must(s.e.AdoptVolume(s.Context(), v.ID))
						if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrRefused) {
							s.Errorf("delete: %v", err)
						}
						if after := s.sums(); !maps.Equal(before, after) {
							s.Error("a drive was written to that is not claimed")
						}
						s.must(s.stage(v), s.unstage(v))
						return
					}
					s.claimAll(true)
					s.must(s.stage(v), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
				})
			})
		}
	}
}

// TestOthersMove: a volume group that was killed in the middle of a move on another
// machine is not moved on here while its drives are not claimed.
func TestOthersMove(t *testing.T) {
	t.Parallel()
	for after := 1; after <= 6; after++ {
		k := &killer{}
		onMachine(t, twoNVMe, volume.Options{After: k.step}, func(s *stand) {
			v := s.make("v", unclaimedRequest("a linear volume"))
			k.arm(after)
			s.must(s.mgr.Operate(s.Context(), v.Location.Drives[0], drivebay.LeaveRelease, ""))
			s.until("killed", k.dead)
			s.stop()
			s.stop = nil
			s.must(s.st.DeleteVolume(v.ID), s.mgr.Operate(s.Context(), v.Location.Drives[0], drivebay.LeaveCancel, ""))
			s.claimAll(false)
			before := s.sums()
			k.arm(0)
			s.start()
			time.Sleep(30 * time.Minute)
			if !maps.Equal(before, s.sums()) || len(s.e.Volumes().Volumes) > 0 {
				s.Errorf("killed after %q: drives that are not claimed were written to, or %+v taken in", k.steps(), s.e.Volumes().Volumes)
			}
			if err := s.e.AdoptVolume(s.Context(), v.ID); err != nil {
				s.Fatal(err)
			}
			time.Sleep(30 * time.Minute)
			if !maps.Equal(before, s.sums()) {
				s.Errorf("killed after %q: drives that are not claimed were written to for an adopted volume", k.steps())
			}
		})
	}
}

// TestBegunIsNoPermission: after a first write that failed, what others write on the drive
// is not written over, whether its format is known or not.
func TestBegunIsNoPermission(t *testing.T) {
	t.Parallel()
	for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM} {
		for _, at := range []int64{40 << 10, 64 << 10, 1<<20 - 512, -64 << 10} {
			spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}}}
			onMachine(t, spec, volume.Options{}, func(s *stand) {
				d := s.mgr.Snapshot().Drives[0]
				r := drivebay.VolumeRequest{Name: "v", Size: drivebay.SizeRange{Required: 1 << 30}, Block: true, Class: drivebay.Class{Backing: b, Wipe: drivebay.WipeNone, FSType: "ext4"}}
				s.inject(d.ID, "read-only")
				if _, err := s.e.CreateVolume(s.Context(), r); err == nil {
					s.Fatal("it was made on a drive that takes no writes")
				}
				s.inject(d.ID, "heal")
				disk := s.open(d.Name)
				defer disk.Close()
				if at < 0 {
					at += int64(d.Size)
				}
				_, err := disk.WriteAt([]byte("a database in a format that is not known"), at)
				s.must(err, disk.Sync(), s.mgr.Refresh(s.Context()))
				time.Sleep(time.Minute)
				before := s.sums()
				if _, err := s.e.CreateVolume(s.Context(), r); err == nil {
					s.Errorf("%s, at %d: it was made over what others have written", b, at)
				}
				if !maps.Equal(before, s.sums()) {
					s.Errorf("%s, at %d: the drive was written to", b, at)
				}
			})
		}
	}
}

// TestZeroBehindReadsTheTable: while a partition's new room is zeroed, a partition that
// others add there ends the work before the next piece.
func TestZeroBehindReadsTheTable(t *testing.T) {
	t.Parallel()
	spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "100GB"}}}
	onMachine(t, spec, volume.Options{}, func(s *stand) {
		v := s.make("v", unclaimedRequest("raw on a partition"))
		d := s.drive(v)
		disk := s.open(d.Name)
		defer disk.Close()
		table, err := gpt.Read(disk)
		s.must(err)
		own, _ := table.FindName("drivebay-" + v.ID)
		behind := int64(own.Start+own.Size) + 2<<30 // in the third piece that is zeroed
		_, err = disk.WriteAt([]byte("left by a volume of before"), behind)
		s.must(err, s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "slow", Args: hostsim.Args{"delay": "100ms"}}))
		came := make(chan error, 1)
		go func() {
			_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size + 40<<30})
			came <- err
		}()
		for b := []byte{1}; b[0] != 0; {
			_, err := disk.ReadAt(b, behind)
			s.must(err)
		}
		table, err = gpt.Read(disk)
		s.must(err)
		at := own.Start + own.Size + 38<<30
		table.Partitions = append(table.Partitions, gpt.Partition{Number: 9, Start: at, Size: 1 << 30, Type: "0fc63daf-8483-4772-8e79-3d69d8477de4", GUID: gpt.NewGUID(), Name: "home of the operator"})
		s.must(table.Write(disk))
		text := "what the operator has put there"
		_, err = disk.WriteAt([]byte(text), int64(at)+4096)
		s.must(err, disk.Sync())
		if err := <-came; !errors.Is(err, drivebay.ErrRefused) {
			s.Errorf("expand: %v", err)
		}
		b := make([]byte, len(text))
		if _, err := disk.ReadAt(b, int64(at)+4096); err != nil || string(b) != text {
			s.Errorf("in the partition of others: %q, %v", b, err)
		}
		s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "heal"}))
		time.Sleep(5 * time.Minute)
	})
}

// TestUnclaimedVerbs: the same for the passphrase, snapshots and the replication of a volume on drives without a claim, and for the first
// stage of one that awaits its passphrase.
func TestUnclaimedVerbs(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"mirror": encryptedRequests()["a mirror"], "thin": encryptedRequests()["a thin volume"], "keyless": keylessRequests()["ext4 on a partition"], "replicated": requests()["xfs on linear"]} {
		onMachine(t, twoNVMe, volume.Options{Headers: t.TempDir()}, func(s *stand) {
			v := s.make("v", r)
			var snap drivebay.VolumeSnapshot
			var err error
			switch name {
			case "thin":
				snap, err = s.e.CreateSnapshot(s.Context(), "snap", v.ID)
				s.must(err)
			case "replicated":
				s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)), s.e.DemoteVolume(s.Context(), replicationOf(v)))
			}
			s.claimAll(false)
			before := s.sums()
			refused := func(what string, err error) {
				s.Helper()
				if !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "drivebay claim ") {
					s.Errorf("%s: %s: %v", name, what, err)
				}
				if !maps.Equal(before, s.sums()) {
					s.Fatalf("%s: %s: a drive was written to that is not claimed", name, what)
				}
			}
			if name == "keyless" {
				refused("first stage", s.stage(v, with(rightKey)))
			} else if v.Encrypted() {
				refused("rotate key", s.e.RotateKey(s.Context(), drivebay.KeyRequest{Volume: v.ID, Secrets: secrets(rightKey), New: secrets(nextKey)}))
			}
			switch name {
			case "thin":
				refused("delete snapshot", s.e.DeleteSnapshot(s.Context(), snap.ID))
			case "replicated":
				refused("disable replication", s.e.DisableReplication(s.Context(), replicationOf(v)))
			default:
				refused("enable replication", s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)))
			}
		})
	}
}
