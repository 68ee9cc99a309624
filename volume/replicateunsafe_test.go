package volume_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/volume"
)

// TestReplicationRoomInUse: a volume whose replication was cut short before its metadata were written is used like any other, and
// its filesystem grows into their room. The next call makes another one.
func TestReplicationRoomInUse(t *testing.T) {
	t.Parallel()
	for name, r := range some(replicable()) {
		t.Run(name, func(t *testing.T) {
			k := &killer{}
			onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir(), After: k.step}, func(s *stand) {
				v := s.make("v", r)
				s.makeFile(v, "before")
				k.arm(1)
				s.refuses("killed", s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)), errKilled)
				k.arm(0)
				s.start()
				time.Sleep(10 * time.Second)
				if is := s.of(v); is.Replication == nil || is.Replicated() || is.CSIStatus != drivebay.CSIResized {
					t.Fatalf("after the growth: %v, %+v", is.CSIStatus, is.Replication)
				}
				s.makeFile(v, "meanwhile")
				s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)))
				s.hasFiles(v, "", "before", "meanwhile")
			})
		})
	}
}

// TestEnableGivenUp: a replication is disabled that was cut short anywhere while it was enabled. Nothing of it is left: the volume is used
// and restored as a plain one, and can be replicated again.
func TestEnableGivenUp(t *testing.T) {
	t.Parallel()
	for name, r := range some(replicable()) {
		t.Run(name, func(t *testing.T) {
			for n, done := 1, false; !done; n += everyNth {
				k := &killer{}
				onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir(), After: k.step, Tick: time.Second}, func(s *stand) {
					v := s.make("v", r)
					s.makeFile(v, "before")
					enable := func() error { return s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)) }
					disable := func() error { return s.e.DisableReplication(s.Context(), replicationOf(v)) }
					k.arm(n)
					done = enable() == nil
					k.arm(0)
					s.start()
					s.must(s.retried(disable))
					s.start()
					time.Sleep(10 * time.Minute)
					if is := s.of(v); is.Replication != nil || is.Condition.Abnormal() {
						t.Errorf("given up after %q: %+v, %v", k.steps(), is.Replication, is.Condition)
					}
					s.makeFile(v, "after")
					s.must(enable())
					s.hasFiles(v, "", "before", "after")
					s.must(disable(), s.e.DeleteVolume(s.Context(), v.ID))
					s.blank()
				})
			}
		})
	}
}

// TestReplicationEndedDeleted: every kind of volume can be deleted whose copy was not complete.
func TestReplicationEndedDeleted(t *testing.T) {
	t.Parallel()
	for name, r := range some(replicable()) {
		t.Run(name, func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
				v := s.make("v", r)
				s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, false)))
				s.must(s.e.DisableReplication(s.Context(), replicationOf(v)))
				if r := s.of(v).Replication; r == nil || !r.Ended {
					t.Fatalf("disabled: %+v", r)
				}
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
			})
		})
	}
}

// TestReplicationEndedHalf: the daemon is killed when it has recorded the end of a replication, and before the device is gone. The
// next call takes the device down: it would stay connected to the peer that it had.
func TestReplicationEndedHalf(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(s *stand, w drivebay.Volume){
		"disabled": func(s *stand, w drivebay.Volume) {
			s.must(s.e.DisableReplication(s.Context(), replicationOf(w)))
		},
		"deleted": func(s *stand, w drivebay.Volume) { s.must(s.e.DeleteVolume(s.Context(), w.ID)) },
		"enabled with another peer": func(s *stand, w drivebay.Volume) {
			local, peer := netip.MustParseAddrPort("10.0.0.2:7900"), netip.MustParseAddrPort("10.0.0.3:7900")
			s.must(s.e.EnableReplication(s.Context(), replicateFrom(w, local, peer, false)))
		},
	} {
		onTwoSites(t, volume.Options{}, func(a, b *stand, network func(bool)) {
			ctx, t := a.Context(), a.T
			v, w := a.make("v", requests()["ext4 on a partition"]), b.make("v", requests()["ext4 on a partition"])
			a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
			network(false)
			b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
			b.stop()
			b.stop = nil
			rec := b.record(w)
			is := *rec.Volume.Replication
			is.Ended = true
			rec.Volume.Replication = &is
			b.must(b.st.PutVolume(rec))
			b.start()
			next(b, w)
			network(true)
			time.Sleep(time.Minute)
			if x := a.view(v); x.State.Connection >= drbd.Connected {
				t.Errorf("%s: connected to the peer that it had: %+v", name, x.Status)
			}
			if m, err := b.sim.ReadDir("sys/block"); name != "enabled with another peer" && (err != nil || strings.Contains(strings.Join(m, " "), "drbd")) {
				t.Errorf("%s: %v %v", name, m, err)
			}
		})
	}
}

// TestReplicationOtherRole: a target does not become a source, nor the other way round, by a call that finds it enabled.
func TestReplicationOtherRole(t *testing.T) {
	t.Parallel()
	k := &killer{}
	onMachine(t, smallDrives(), volume.Options{After: k.step}, func(s *stand) {
		v := s.make("v", requests()["ext4 on a partition"])
		enable := func(source bool) error {
			return s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, source))
		}
		for _, source := range []bool{false, true} {
			k.arm(1)
			s.refuses("killed", enable(source), errKilled)
			k.arm(0)
			s.start()
			time.Sleep(10 * time.Second)
			s.refuses("the other role, before the metadata are written", enable(!source), drivebay.ErrExists)
			s.must(s.e.DisableReplication(s.Context(), replicationOf(v)))
		}
		s.must(enable(false), enable(false))
		s.refuses("a target as the source", enable(true), drivebay.ErrExists)
	})
}

// TestReplicatedWithoutRecordIncomplete: a copy that never was complete, and whose record is lost, is not made the source, and is
// not grown, after which nothing would refuse to mount it.
func TestReplicatedWithoutRecordIncomplete(t *testing.T) {
	t.Parallel()
	for name, r := range some(replicable()) {
		t.Run(name, func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
				v := s.make("v", r)
				s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, false)))
				s.stop()
				s.stop = nil
				s.sim.PowerCut()
				s.nextBoot()
				rec := s.record(v)
				rec.Volume.Size += rec.Volume.Replication.Room
				rec.Volume.Replication = nil
				s.must(s.st.PutVolume(rec))
				s.start()
				s.refuses("enabled as the source", s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)), drivebay.ErrRefused)
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
				s.refuses("grown", err, drivebay.ErrRefused)
				s.refuses("staged", s.stage(v, with(rightKey)), drivebay.ErrRefused)
				s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, false)))
			})
		})
	}
}

// TestReplicationSmallerPeer: the device of a primary never becomes smaller than its filesystem.
func TestReplicationSmallerPeer(t *testing.T) {
	t.Parallel()
	onTwoSites(t, volume.Options{}, func(a, b *stand, _ func(bool)) {
		ctx, r := a.Context(), requests()["ext4 on a partition"]
		v := a.make("v", r)
		r.Size = drivebay.SizeRange{Required: 512 << 20}
		w := b.make("v", r)
		a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
		a.makeFile(v, "before")
		b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
		time.Sleep(time.Minute)
		if x := a.view(v); x.Bytes < v.Size || x.State.Connection >= drbd.Connected {
			a.Errorf("with a smaller peer: %+v", x.Status)
		}
		a.hasFiles(v, "", "before")
	})
}

// TestReplicationSecondaryDisabled: a complete copy that was never promoted can be used after its replication was disabled, with the
// filesystem or the encryption of the peer.
func TestReplicationSecondaryDisabled(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"plain": requests()["ext4 on a partition"], "encrypted": encryptedRequests()["ext4 on a partition"]} {
		t.Run(name, func(t *testing.T) {
			onTwoSites(t, volume.Options{Headers: t.TempDir()}, func(a, b *stand, _ func(bool)) {
				ctx := a.Context()
				v, w := a.make("v", r), b.make("v", r)
				a.makeFile(v, "from a")
				a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
				b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
				time.Sleep(time.Minute)
				b.must(b.e.DisableReplication(ctx, replicationOf(w)))
				b.hasFiles(w, "", "from a")
				a.must(a.e.DisableReplication(ctx, replicationOf(v)))
				a.hasFiles(v, "", "from a")
			})
		})
	}
}

// TestReplicationDemoteKilled: the daemon is killed when the kernel has demoted a volume, and before that is recorded; the peer is
// promoted meanwhile. The same call completes, and the volume is not staged before.
func TestReplicationDemoteKilled(t *testing.T) {
	t.Parallel()
	onTwoSites(t, volume.Options{}, func(a, b *stand, _ func(bool)) {
		ctx := a.Context()
		v, w := a.make("v", requests()["ext4 on a partition"]), b.make("v", requests()["ext4 on a partition"])
		a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
		b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
		time.Sleep(time.Minute)
		a.must(a.e.DemoteVolume(ctx, replicationOf(v)))
		a.stop()
		a.stop = nil
		rec := a.record(v)
		is := *rec.Volume.Replication
		is.Primary = true
		rec.Volume.Replication = &is
		a.must(a.st.PutVolume(rec))
		time.Sleep(time.Second)
		b.must(b.e.PromoteVolume(ctx, replicationOf(w)))
		a.start()
		time.Sleep(time.Minute)
		a.refuses("staged beside the primary", a.stage(v), drivebay.ErrRefused)
		if _, err := a.e.ReplicationInfo(ctx, v.ID); err != nil {
			a.Error(err)
		}
		a.must(a.e.DemoteVolume(ctx, replicationOf(v)))
		if ready, err := a.e.ResyncVolume(ctx, replicationOf(v)); err != nil || !ready || a.of(v).Replication.Primary {
			a.Errorf("demoted again: %v, %v, %+v", ready, err, a.of(v).Replication)
		}
	})
}
