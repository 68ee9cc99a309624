package volume_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume"
)

// dropRecord stops the engine, and loses the record of a volume; the machine starts again unless it stays up.
func (s *stand) dropRecord(v drivebay.Volume, staysUp bool) {
	s.Helper()
	s.stop()
	s.stop = nil
	if !staysUp {
		s.sim.PowerCut()
		s.nextBoot()
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
	for name, r := range some(marked()) {
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
					s.refuses("staged", s.stage(v, with(rightKey)), drivebay.ErrRefused)
					s.must(s.e.AcceptLoss(ctx, v.ID))
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
	for name, r := range some(marked()) {
		t.Run(name, func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
				ctx, other, v := s.Context(), s.make("other", r), s.make("v", r)
				s.must(s.e.EnableReplication(ctx, replicateFrom(other, siteB, siteA, true))) // has minor 0
				s.must(s.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
				s.must(s.stage(v, with(rightKey)), s.publish(v, "pod"))
				s.dropRecord(v, true)
				s.refuses("accepted while it is mounted", s.e.AcceptLoss(ctx, v.ID), drivebay.ErrRefused)
				s.refuses("enabled while it is mounted", s.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, false)), drivebay.ErrRefused)
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
	for name, r := range some(replicable()) {
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
	for name, r := range some(marked()) {
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

// olderRecord starts the engine with an older record of a volume, after a power cut.
func (s *stand) olderRecord(rec drivebay.VolumeRecord) {
	s.Helper()
	s.stop()
	s.stop = nil
	s.sim.PowerCut()
	s.nextBoot()
	s.must(s.st.PutVolume(rec))
	s.start()
}

// TestReplicatedOlderRecord: the mark on the drive counts, and not a record from before the volume was replicated: the volume is not
// made the source, not copied and not moved, whichever call comes first.
func TestReplicatedOlderRecord(t *testing.T) {
	t.Parallel()
	for name, r := range some(marked()) {
		for what, call := range map[string]func(*stand, drivebay.Volume) error{
			"source": func(s *stand, v drivebay.Volume) error {
				return s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true))
			},
			"stage": func(s *stand, v drivebay.Volume) error { return s.stage(v, with(rightKey)) },
			"grow": func(s *stand, v drivebay.Volume) error {
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size + 1<<28})
				return err
			},
			"clone": func(s *stand, v drivebay.Volume) error {
				c := r
				c.Name, c.Source, c.Size.Required = "clone", drivebay.Source{Volume: v.ID}, v.Size
				if _, err := s.e.CreateVolume(s.Context(), c); !errors.Is(err, drivebay.ErrNoSupport) {
					return err
				}
				return drivebay.ErrRefused
			},
			"move": func(s *stand, v drivebay.Volume) error {
				s.must(s.mgr.Operate(s.Context(), v.Location.Drives[0], drivebay.LeaveRelease, ""))
				time.Sleep(30 * time.Minute)
				if now := s.of(v).Location; !v.Location.OnLVM() && !slices.Equal(now.Drives, v.Location.Drives) {
					t.Errorf("%s: it was moved to %v", name, now)
				}
				return s.stage(v, with(rightKey))
			},
		} {
			t.Run(what+" "+name, func(t *testing.T) {
				onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
					v := s.make("v", r)
					older := s.record(v)
					s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, false)))
					s.olderRecord(older)
					s.refuses(what, call(s, v), drivebay.ErrRefused)
					time.Sleep(10 * time.Minute)
					if is := s.of(v).Replication; is == nil || !is.Lost() {
						t.Errorf("recorded: %+v", is)
					}
					s.refuses("staged", s.stage(v, with(rightKey)), drivebay.ErrRefused)
				})
			})
		}
	}
}

// TestReplicatedLostTarget: a volume whose record was lost, and that is enabled as the target, gets all data of the peer: whatever its
// own metadata say of its own data, and whatever is on it.
func TestReplicatedLostTarget(t *testing.T) {
	t.Parallel()
	for what, harm := range map[string]func(s *stand, v drivebay.Volume){
		"newer":   func(*stand, drivebay.Volume) {},
		"damaged": func(s *stand, v drivebay.Volume) { s.write(v, make([]byte, 1<<20), 0) },
		"grown half": func(s *stand, v drivebay.Volume) {
			_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
			s.must(err)
		},
	} {
		t.Run(what, func(t *testing.T) {
			onTwoSites(t, volume.Options{}, func(a, b *stand, network func(bool)) {
				ctx, r := a.Context(), requests()["ext4 on a partition"]
				v, w := a.make("v", r), b.make("v", r)
				a.makeFile(v, "one")
				a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
				b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
				time.Sleep(time.Minute)
				network(false)
				time.Sleep(time.Minute)
				a.makeFile(v, "two")
				if what != "grown half" {
					a.stop()
					a.stop = nil
					a.sim.PowerCut()
					a.nextBoot()
				}
				harm(a, v)
				if a.stop == nil {
					a.start()
				}
				a.dropRecord(v, false)
				network(true)
				a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, false)))
				b.must(b.e.PromoteVolume(ctx, byForce(replicationOf(w))))
				time.Sleep(time.Minute)
				b.use(w, func(at string) {
					if b.look(at+"/one") != host.PlaceFolder || b.look(at+"/two") == host.PlaceFolder {
						t.Error("the data of the peer were replaced")
					}
				})
				if x := a.view(v); x.State.Disk != drbd.UpToDate || x.State.Connection != drbd.Connected {
					t.Fatalf("%+v", x.Status)
				}
				b.must(b.e.DemoteVolume(ctx, replicationOf(w)))
				time.Sleep(time.Second)
				a.must(a.e.PromoteVolume(ctx, replicationOf(v)))
				a.use(v, func(at string) {
					if a.look(at+"/one") != host.PlaceFolder || a.look(at+"/two") == host.PlaceFolder {
						t.Error("it has not the data of the peer")
					}
				})
				a.must(a.e.DisableReplication(ctx, replicationOf(v)))
				if is := a.of(v); is.Condition.Abnormal() {
					t.Error(is.Condition)
				}
			})
		})
	}
}

// TestReplicatedLostWithoutFilesystem: accepted data that have no filesystem are a fault.
func TestReplicatedLostWithoutFilesystem(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		ctx, v := s.Context(), s.make("v", requests()["ext4 on a partition"])
		s.must(s.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
		s.stop()
		s.stop = nil
		s.sim.PowerCut()
		s.nextBoot()
		s.write(v, make([]byte, 1<<20), 0)
		s.start()
		s.dropRecord(v, false)
		s.must(s.e.AcceptLoss(ctx, v.ID))
		if is := s.of(v); is.CSIStatus != drivebay.CSIFailed || !is.Condition.Abnormal() {
			t.Errorf("%v, %v", is.CSIStatus, is.Condition)
		}
		s.must(s.e.DeleteVolume(ctx, v.ID))
	})
}

// TestReplicatedLostKilled: enable is killed after each of its steps, and the record is lost: the source has its data, at once or when an
// operator accepts them.
func TestReplicatedLostKilled(t *testing.T) {
	t.Parallel()
	for name, r := range some(marked()) {
		t.Run(name, func(t *testing.T) {
			for n, done := 1, false; !done; n += everyNth {
				k := &killer{}
				onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir(), After: k.step}, func(s *stand) {
					ctx, v := s.Context(), s.make("v", r)
					if v.HasFilesystem() {
						s.makeFile(v, "before")
					}
					k.arm(n)
					done = s.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)) == nil
					k.arm(0)
					s.dropRecord(v, false)
					if _, ok := s.e.Volumes().Get(v.ID); !ok && k.steps()[len(k.steps())-1] == "table" {
						return // the drive is not trusted before the kernel reads its table again
					}
					if s.of(v).Replication != nil {
						s.must(s.e.AcceptLoss(ctx, v.ID))
					}
					if v.HasFilesystem() {
						s.hasFiles(v, "", "before")
					} else {
						s.must(s.stage(v), s.unstage(v))
					}
				})
			}
		})
	}
}
