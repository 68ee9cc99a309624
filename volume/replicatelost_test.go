package volume_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/volume"
)

// dropRecord stops the engine, and loses the record of a volume; the machine starts again unless it stays up.
func (s *stand) dropRecord(v drivebay.Volume, staysUp bool) {
	s.Helper()
	s.stop()
	s.stop = nil
	if !staysUp {
		s.sim.PowerCut()
		s.sim.NextBoot()
	}
	s.must(s.st.DeleteVolume(v.ID))
	s.start()
	time.Sleep(10 * time.Minute) // it is taken in
}

// marked are the kinds of volumes of which only a mark says that they were replicated, and the others.
func marked() map[string]drivebay.VolumeRequest {
	out := replicable()
	out["a block volume on a partition"] = drivebay.VolumeRequest{Block: true, Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: "ext4"}}
	out["a linear block volume"] = drivebay.VolumeRequest{Block: true, Class: drivebay.Class{Backing: drivebay.BackingLVM, Wipe: drivebay.WipeNone, FSType: "ext4"}}
	return out
}

// TestReplicatedLost: a volume whose record is lost is not used beside its DRBD device, of whatever kind it is. An operator accepts
// its data, or it gets those of the peer.
func TestReplicatedLost(t *testing.T) {
	t.Parallel()
	for name, r := range marked() {
		for _, source := range []bool{true, false} {
			t.Run(map[bool]string{true: "source ", false: "target "}[source]+name, func(t *testing.T) {
				onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
					ctx, v := s.Context(), s.make("v", r)
					if v.HasFilesystem() {
						s.makeFile(v, "here")
					}
					s.must(s.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, source)))
					s.dropRecord(v, false)
					for range 2 {
						s.refuses("staged", s.stage(v, with(rightKey)), drivebay.ErrRefused)
						_, _, err := s.e.ExpandVolume(ctx, v.ID, drivebay.SizeRange{Required: v.Size + 1<<28})
						s.refuses("grown", err, drivebay.ErrRefused)
					}
					if c := s.conditions(v.ID); len(c) != 1 || c[0].Reason != "ReplicaIncomplete" {
						t.Errorf("condition: %d %+v", len(c), c)
					}
					s.refuses("enabled as the source", s.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)), drivebay.ErrRefused)
					s.must(s.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, false)))
					s.must(s.e.DisableReplication(ctx, replicationOf(v)))
					if s.of(v).Replication != nil { // the metadata of a source say that its data are complete
						s.must(s.e.AcceptLoss(ctx, v.ID))
					}
					if v.HasFilesystem() {
						s.hasFiles(v, "", "here")
					} else {
						s.must(s.stage(v), s.unstage(v))
					}
					s.dropRecord(v, false)
					s.must(s.stage(v, with(rightKey)), s.unstage(v))
					s.must(s.e.DeleteVolume(ctx, v.ID))
				})
			})
		}
	}
}

// TestReplicatedLostInUse: the records are lost while a volume is mounted from its DRBD device.
func TestReplicatedLostInUse(t *testing.T) {
	t.Parallel()
	for name, r := range marked() {
		t.Run(name, func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
				ctx, other, v := s.Context(), s.make("other", r), s.make("v", r)
				s.must(s.e.EnableReplication(ctx, replicateFrom(other, siteB, siteA, true))) // has minor 0
				s.must(s.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
				s.must(s.stage(v, with(rightKey)), s.publish(v, "pod"))
				s.dropRecord(v, true)
				if v.HasFilesystem() {
					if err := s.e.AcceptLoss(ctx, v.ID); err == nil {
						t.Error("accepted while it is mounted")
					}
				}
				s.must(s.unpublish(v, "pod"), s.unstage(v))
				s.must(s.e.AcceptLoss(ctx, v.ID))
				s.must(s.stage(v, with(rightKey)), s.unstage(v), s.e.DeleteVolume(ctx, v.ID))
				if x := s.view(other); x.State.Role != drbd.RolePrimary {
					t.Errorf("the other volume: %+v", x.Status)
				}
			})
		})
	}
}

// TestReplicatedLostAndCopied: a volume whose record is lost becomes the target again, and what came from the peer is its content
// also where its record is lost after the replication has ended.
func TestReplicatedLostAndCopied(t *testing.T) {
	t.Parallel()
	for name, r := range replicable() {
		t.Run(name, func(t *testing.T) {
			onTwoSites(t, volume.Options{Headers: t.TempDir()}, func(a, b *stand, _ func(bool)) {
				ctx, v, w := a.Context(), a.make("v", r), b.make("v", r)
				a.makeFile(v, "from a")
				a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
				b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
				time.Sleep(time.Minute)
				b.dropRecord(w, false)
				a.must(a.e.PromoteVolume(ctx, replicationOf(v))) // connects again
				b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
				time.Sleep(time.Minute)
				if x := b.view(w); x.State.Disk != drbd.UpToDate || x.State.Connection != drbd.Connected {
					t.Fatalf("%+v", x.Status)
				}
				a.must(a.e.DemoteVolume(ctx, replicationOf(v)))
				time.Sleep(time.Second)
				b.must(b.e.PromoteVolume(ctx, replicationOf(w)))
				b.hasFiles(w, "", "from a")
				b.must(b.e.DisableReplication(ctx, replicationOf(w)))
				b.dropRecord(w, false)
				if is := b.of(w); is.Condition.Abnormal() || is.Replication != nil {
					t.Errorf("%v, %+v", is.Condition, is.Replication)
				}
				b.hasFiles(w, "", "from a")
			})
		})
	}
}

// TestNotReplicatedLost: the user of a block volume has metadata of DRBD at its end. They are the user's.
func TestNotReplicatedLost(t *testing.T) {
	t.Parallel()
	for name, r := range marked() {
		if !r.Block || r.Class.Backing != drivebay.BackingPartition {
			continue
		}
		t.Run(name, func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				v := s.make("v", r)
				super := make([]byte, drbd.SuperblockBytes)
				binary.BigEndian.PutUint32(super[60:], 0x83740267+4)
				binary.BigEndian.PutUint32(super[80:], 4096)
				s.must(s.stage(v))
				s.write(v, super, int64(v.Size)-drbd.SuperblockBytes)
				s.must(s.unstage(v))
				s.dropRecord(v, false)
				s.must(s.stage(v), s.unstage(v))
				if is := s.of(v); is.Replication != nil || is.Condition.Abnormal() {
					t.Errorf("%+v, %v", is.Replication, is.Condition)
				}
			})
		})
	}
}
