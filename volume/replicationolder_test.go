package volume_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/volume"
)

// writeAt writes to a block device, and reads what is there.
func (s *stand) writeAt(dev, text string, at int64) {
	s.Helper()
	disk := s.open(dev)
	_, err := disk.WriteAt([]byte(text), at)
	s.must(err, disk.Sync(), disk.Close())
}

func (s *stand) readAt(dev string, n int, at int64) string {
	s.Helper()
	disk := s.open(dev)
	defer disk.Close()
	got := make([]byte, n)
	_, err := disk.ReadAt(got, at)
	s.must(err)
	return string(got)
}

// TestReplicationOlderThanDisable: the piece of a replicated volume grows here and not at the peer. Its replication is disabled here, and the
// volume is written to. Then the store is restored from before. What the kernel left of its metadata at the old end of the piece is
// no proof that the peer has what was written since: the sides do not count as equal.
func TestReplicationOlderThanDisable(t *testing.T) {
	t.Parallel()
	onTwoSitesWith(t, sameDrives(2), ownSecret(), func(a, b *stand, _ func(bool)) {
		ctx, r := a.Context(), marked()["a block volume on a partition"]
		v, w := a.make("v", r), b.make("v", r)
		a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
		b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
		time.Sleep(time.Minute)
		a.must(a.stage(v))
		a.writeAt("drbd0", "before", 100<<20)
		a.must(a.unstage(v))
		older := a.record(v)
		_, _, err := a.e.ExpandVolume(ctx, v.ID, drivebay.SizeRange{Required: 2 << 30})
		a.must(err, a.stage(v), a.unstage(v))
		a.must(a.e.DisableReplication(ctx, replicationOf(v)), a.stage(v))
		a.writeAt(a.device(v), "after", 500<<20)
		a.must(a.unstage(v))
		a.olderRecord(older)
		time.Sleep(10 * time.Minute)
		if info, err := a.e.ReplicationInfo(ctx, v.ID); err == nil && info.Status == drivebay.ReplicationHealthy {
			t.Errorf("its replication is %v: %s", info.Status, info.State)
		}
		if is := a.of(v); !is.Condition.Abnormal() {
			t.Errorf("no fault is known: %+v", is.Replication)
		}
	})
}

// TestReplicationOlderThanMetadata: a store is restored from the moment when a replication was being enabled, before its metadata were
// written. The volume has been replicated since: it is not staged beside DRBD.
func TestReplicationOlderThanMetadata(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{
		"a partition": marked()["a block volume on a partition"], "linear": marked()["a linear block volume"], "ext4": requests()["ext4 on a partition"],
	} {
		var s *stand
		k := &recordAfter{step: "mark replicated"}
		onMachine(t, smallDrives(), volume.Options{After: k.after(&s, func() {})}, func(st *stand) {
			s = st
			v := s.make("v", r)
			k.armed.Store(true)
			s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)))
			older := *k.is.Load()
			if older.Volume.Replication == nil || older.Volume.Replicated() {
				t.Fatalf("the older record: %+v", older.Volume.Replication)
			}
			time.Sleep(time.Minute)
			s.olderRecord(older)
			time.Sleep(10 * time.Minute)
			err := s.stage(v)
			if is := s.of(v); err == nil || !is.Condition.Abnormal() {
				t.Errorf("%s: staged: %v; %s", name, err, is.Condition.Message())
			}
			if err := s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)); err == nil {
				t.Errorf("%s: enabled again with what is on it", name)
			}
		})
	}
}

// TestReplicationOlderThanCopy: the same on the side that has the copy. The peer was written to since, and is not connected: the old copy
// is not staged as the volume.
func TestReplicationOlderThanCopy(t *testing.T) {
	t.Parallel()
	var s *stand
	k := &recordAfter{step: "mark replicated"}
	onTwoSitesWith(t, sameDrives(2), ownSecret(), func(a, b *stand, network func(bool)) {
		b.opt.After = k.after(&s, func() {})
		b.start()
		s = b
		ctx, r := a.Context(), marked()["a block volume on a partition"]
		v, w := a.make("v", r), b.make("v", r)
		a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
		k.armed.Store(true)
		b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
		time.Sleep(time.Minute)
		network(false)
		time.Sleep(time.Minute)
		a.must(a.stage(v))
		a.writeAt("drbd0", "newer", 500<<20)
		b.olderRecord(*k.is.Load())
		time.Sleep(10 * time.Minute)
		if err := b.stage(w); err == nil {
			t.Errorf("the old copy is staged as the volume, and reads %q", b.readAt(b.device(w), 5, 500<<20))
		}
	})
}

// TestReplicationOlderThanCopyGivenUp: the same, and the replication is disabled by that record: its metadata were in use, so that the volume is
// not a plain one whose old copy counts as its data. An operator can accept them.
func TestReplicationOlderThanCopyGivenUp(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{
		"a partition": marked()["a block volume on a partition"], "linear": marked()["a linear block volume"], "ext4": requests()["ext4 on a partition"],
	} {
		var s *stand
		k := &recordAfter{step: "mark replicated"}
		onTwoSitesWith(t, sameDrives(2), ownSecret(), func(a, b *stand, network func(bool)) {
			b.opt.After = k.after(&s, func() {})
			b.start()
			s = b
			ctx := a.Context()
			v, w := a.make("v", r), b.make("v", r)
			a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
			k.armed.Store(true)
			b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
			time.Sleep(time.Minute)
			network(false)
			time.Sleep(time.Minute)
			a.must(a.stage(v))
			b.olderRecord(*k.is.Load())
			time.Sleep(10 * time.Minute)
			err := b.e.DisableReplication(ctx, replicationOf(w))
			if is := b.of(w); b.stage(w) == nil || !is.Condition.Abnormal() {
				t.Errorf("%s: the old copy is staged as the volume; disabled: %v; %s", name, err, is.Condition.Message())
			}
			b.must(b.e.AcceptLoss(ctx, w.ID), b.stage(w), b.unstage(w))
		})
	}
}

// TestReplicationOlderThanGrowth: a replicated volume grows, its replication is disabled, and the volume is written to where its metadata were
// before the growth. The store is restored from before. Disabling its replication again wipes nothing of that.
func TestReplicationOlderThanGrowth(t *testing.T) {
	t.Parallel()
	onTwoSitesWith(t, sameDrives(2), ownSecret(), func(a, b *stand, _ func(bool)) {
		ctx, r := a.Context(), marked()["a block volume on a partition"]
		v, w := a.make("v", r), b.make("v", r)
		a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
		b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
		time.Sleep(time.Minute)
		older := a.record(v)
		_, _, err := a.e.ExpandVolume(ctx, v.ID, drivebay.SizeRange{Required: 2 << 30})
		a.must(err, a.stage(v), a.unstage(v))
		a.must(a.e.DisableReplication(ctx, replicationOf(v)), a.stage(v))
		at := int64(older.Volume.Replication.Disk) - 16<<10 // in the log of its activity
		a.writeAt(a.device(v), "after", at)
		a.must(a.unstage(v))
		a.olderRecord(older)
		time.Sleep(10 * time.Minute)
		a.must(a.e.DisableReplication(ctx, replicationOf(v)), a.stage(v))
		if got := a.readAt(a.device(v), 5, at); got != "after" {
			t.Errorf("it reads %q", got)
		}
	})
}

// TestReplicationOlderThanRemoval: a copy is cut short, its replication is disabled, and the removal of the volume is cut short as well. The store is
// restored from before. What is left of the volume does not count as a copy: the peer sends only what differed before the removal.
func TestReplicationOlderThanRemoval(t *testing.T) {
	t.Parallel()
	for _, name := range few([]string{"a mirror", "a linear block volume", "encrypted ext4 on a partition"}) {
		r := marked()[name]
		for _, step := range []string{"mark", "erase"} {
			for _, ended := range []bool{false, true} { // in the older record
				removing := false
				opt := ownSecret()
				opt.Headers, opt.After = t.TempDir(), func(_, at string) error {
					if removing && at == step {
						return errKilled
					}
					return nil
				}
				onTwoSitesWith(t, sameDrives(2), opt, func(a, b *stand, network func(bool)) {
					ctx, v, w := a.Context(), a.make("v", r), b.make("v", r)
					a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
					b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
					time.Sleep(time.Minute)
					older := b.record(w)
					network(false)
					time.Sleep(time.Minute)
					a.must(a.stage(v, with(rightKey)))
					a.writeAt("drbd0", "newer", 500<<20)
					network(true)
					for b.view(w).State.Disk == drbd.UpToDate { // until the copy begins
						time.Sleep(10 * time.Millisecond)
					}
					network(false)
					time.Sleep(time.Minute)
					b.must(b.e.DisableReplication(ctx, replicationOf(w)))
					if ended {
						older = b.record(w)
					}
					removing = true
					err := b.e.DeleteVolume(ctx, w.ID)
					if removing = false; err == nil { // without that step
						return
					}
					b.olderRecord(older)
					network(true)
					if ended {
						b.refuses(name+" enabled", b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)), drivebay.ErrRefused)
					}
					time.Sleep(10 * time.Minute)
					if info, err := b.e.ReplicationInfo(ctx, w.ID); err == nil && info.Status == drivebay.ReplicationHealthy {
						t.Errorf("%s, removed until %s, record of one that has ended: %v: its replication is %s", name, step, ended, info.State)
					}
					if is := b.of(w); is.CSIStatus != drivebay.CSIFailed || !is.Condition.Abnormal() {
						t.Errorf("%s: it is %v, %v", name, is.CSIStatus, is.Condition)
					}
					b.refuses(name+" staged", b.stage(w, with(rightKey)), drivebay.ErrRefused)
					b.must(b.e.DeleteVolume(ctx, w.ID))
				})
			}
		}
	}
}

// TestReplicationOlderThanDemotion: a volume was primary here, was demoted, and its peer was promoted and written to. The store is restored from
// before. Without its peer it is not primary by that record: its metadata say that it was demoted. An operator can still use its data.
func TestReplicationOlderThanDemotion(t *testing.T) {
	t.Parallel()
	for _, operator := range []bool{false, true} {
		onTwoSites(t, ownSecret(), func(a, b *stand, network func(bool)) {
			v := replicated(a, b, requests()["ext4 on a partition"])
			older := a.record(v)
			failOver(a, b, v)
			network(false)
			b.makeFile(v, "newer")
			a.olderRecord(older)
			time.Sleep(10 * time.Minute)
			a.refuses("staged", a.stage(v), drivebay.ErrUnavailable)
			if operator {
				a.must(a.e.PromoteVolume(a.Context(), byForce(replicationOf(v))))
				a.hasFiles(v, "", "before")
				return
			}
			network(true)
			time.Sleep(10 * time.Minute)
			if info, err := a.e.ReplicationInfo(a.Context(), v.ID); err != nil || info.Status != drivebay.ReplicationHealthy || info.Primary {
				t.Errorf("the peer answers: %+v, %v", info, err)
			}
			a.refuses("staged", a.stage(v), drivebay.ErrRefused)
			failOver(b, a, v)
			a.hasFiles(v, "", "before", "newer")
		})
	}
}

// TestReplicationMovedAlone: the device of a primary is taken down while its volume moves to another drive, and its peer does not answer from then
// on. The volume is primary again after that.
func TestReplicationMovedAlone(t *testing.T) {
	t.Parallel()
	var cut atomic.Pointer[func(bool)]
	opt := ownSecret()
	opt.After = func(_, step string) error {
		if network := cut.Load(); network != nil && step == "down" {
			(*network)(false)
		}
		return nil
	}
	onTwoSitesWith(t, sameDrives(2), opt, func(a, b *stand, network func(bool)) {
		v := replicated(a, b, requests()["ext4 on a partition"])
		cut.Store(&network)
		from := v.Location.Drives[0]
		a.must(a.mgr.Operate(a.Context(), from, drivebay.LeaveRelease, ""))
		a.usage(from, drivebay.UsageReleased, time.Hour)
		a.hasFiles(v, "", "before")
	})
}

// TestReplicationOlderThanTarget: a volume was the source of a replication. That was disabled, and the volume is now the target of its peer, which
// has sent nothing yet. The store is restored from before. Its data do not count as the newest again.
func TestReplicationOlderThanTarget(t *testing.T) {
	t.Parallel()
	onTwoSites(t, ownSecret(), func(a, b *stand, network func(bool)) {
		v := replicated(a, b, requests()["ext4 on a partition"])
		older := a.record(v)
		failOver(a, b, v)
		b.makeFile(v, "newer")
		a.must(a.e.DisableReplication(a.Context(), replicationOf(v)))
		network(false)
		a.must(a.e.EnableReplication(a.Context(), replicateFrom(v, siteA, siteB, false)))
		time.Sleep(time.Minute)
		a.olderRecord(older)
		time.Sleep(10 * time.Minute)
		a.refuses("staged", a.stage(v), drivebay.ErrRefused)
		if is := a.of(v); is.Replication == nil || !is.Replication.Ended || !is.Condition.Abnormal() {
			t.Errorf("it is %+v, %v", is.Replication, is.Condition)
		}
		network(true)
		a.must(a.e.EnableReplication(a.Context(), replicateFrom(v, siteA, siteB, false)))
		time.Sleep(10 * time.Minute)
		bothReady("it is the target again", v, a, b)
		failOver(b, a, v)
		a.hasFiles(v, "", "before", "newer")
	})
}
