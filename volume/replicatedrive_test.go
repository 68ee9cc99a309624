package volume_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// onReplica runs a test on two sites that have the same data, of a volume that is primary on a.
func onReplica(t *testing.T, name string, test func(a, b *stand, v drivebay.Volume)) {
	t.Helper()
	onTwoSites(t, volume.Options{}, func(a, b *stand, _ func(bool)) {
		test(a, b, replicated(a, b, requests()[name]))
	})
}

// replicated makes a volume with a file on a, replicates it to b, and waits until both have the same data.
func replicated(a, b *stand, r drivebay.VolumeRequest) drivebay.Volume {
	a.Helper()
	v, w := a.make("v", r), b.make("v", r)
	a.makeFile(v, "before")
	a.must(a.e.EnableReplication(a.Context(), replicateFrom(v, siteA, siteB, true)))
	b.must(b.e.EnableReplication(b.Context(), replicateFrom(w, siteB, siteA, false)))
	time.Sleep(time.Minute)
	return a.of(v).Volume
}

// bothReady wants both sides to have the same data, and nothing to be wrong with the volume.
func bothReady(when string, v drivebay.Volume, sites ...*stand) {
	for _, s := range sites {
		s.Helper()
		if info, err := s.e.ReplicationInfo(s.Context(), v.ID); err != nil || info.Status != drivebay.ReplicationHealthy || len(s.conditions(v.ID)) != 0 {
			s.Errorf("%s: %+v, %v, %+v", when, info, err, s.conditions(v.ID))
		}
	}
}

// failOver makes the other site primary.
func failOver(from, to *stand, v drivebay.Volume) {
	from.Helper()
	from.must(from.e.DemoteVolume(from.Context(), replicationOf(v)))
	time.Sleep(time.Second)
	to.must(to.e.PromoteVolume(to.Context(), replicationOf(v)))
}

// TestReplicationDriveBack: a drive that is gone for a while is detached, so that no side counts it as a copy. When it is back it gets what
// was written meanwhile.
func TestReplicationDriveBack(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "xfs on linear"} {
		t.Run(name, func(t *testing.T) {
			onReplica(t, name, func(a, b *stand, v drivebay.Volume) {
				b.inject(v.Location.Drives[0], "vanish")
				time.Sleep(time.Minute)
				if x := a.view(v); x.State.PeerDisk != drbd.Diskless {
					a.Errorf("the drive of the peer is gone: %+v", x.Status)
				}
				for _, s := range []*stand{a, b} {
					if info, err := s.e.ReplicationInfo(s.Context(), v.ID); err != nil || info.Status != drivebay.ReplicationDegraded {
						s.Errorf("the drive of a side is gone: %+v, %v", info, err)
					}
				}
				b.refuses("promoted without a drive", b.e.PromoteVolume(b.Context(), byForce(replicationOf(v))), drivebay.ErrRefused)
				a.makeFile(v, "alone")
				b.inject(v.Location.Drives[0], "return")
				time.Sleep(2 * time.Minute)
				bothReady("the drive is back", v, a, b)
				failOver(a, b, v)
				b.hasFiles(v, "", "before", "alone")
			})
		})
	}
}

// TestReplicationDriveGone: when a drive is gone for good, its side of the volume is made again on another one, and the peer sends all data:
// of the secondary, and of the primary after a failover. The old drive may come back later.
func TestReplicationDriveGone(t *testing.T) {
	t.Parallel()
	for _, primary := range []bool{false, true} {
		onReplica(t, "ext4 on a partition", func(a, b *stand, v drivebay.Volume) {
			lost, kept, from, to := b, a, siteB, siteA
			if primary {
				lost, kept, from, to = a, b, siteA, siteB
			}
			was := lost.of(v).Volume
			lost.inject(was.Location.Drives[0], "vanish")
			time.Sleep(time.Minute)
			if primary {
				failOver(a, b, v)
			}
			kept.makeFile(v, "alone")
			if err := lost.e.DeleteVolume(lost.Context(), v.ID); !errors.Is(err, drivebay.ErrBusy) {
				lost.Errorf("a replicated volume is deleted: %v", err)
			}
			lost.must(lost.e.ForgetVolume(lost.Context(), v.ID))
			is := lost.make("v", requests()["ext4 on a partition"])
			lost.must(lost.e.EnableReplication(lost.Context(), replicateFrom(is, from, to, false)))
			time.Sleep(time.Minute)
			bothReady("made again", v, a, b)

			lost.inject(was.Location.Drives[0], "return")
			time.Sleep(2 * time.Minute)
			bothReady("the old drive is back", v, a, b)
			if now := lost.of(v).Location; now.Partition != is.Location.Partition {
				lost.Errorf("the volume is at %+v, was made again at %+v", now, is.Location)
			}
			failOver(kept, lost, v)
			lost.hasFiles(v, "", "before", "alone")
		})
	}
}

// TestReplicationEvacuated: a volume on LVM moves off a leaving drive while it is replicated. One on a partition stays there where the daemon
// has no secret to connect it again, and the drive says what it waits for, until its replication is disabled.
func TestReplicationEvacuated(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"xfs on linear", "a mirror", "ext4 on a partition"} {
		t.Run(name, func(t *testing.T) {
			r := replicable()[name]
			onTwoSitesWith(t, sameDrives(4), volume.Options{}, func(a, b *stand, _ func(bool)) {
				v := replicated(a, b, r)
				for _, s := range []*stand{a, b} {
					id := s.of(v).Location.Drives[0]
					s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
					if !v.Location.OnLVM() {
						time.Sleep(time.Minute)
						if d, _ := s.mgr.Snapshot().Find(id); d.Usage != drivebay.UsageReleasing || d.Leaving == nil || !strings.Contains(fmt.Sprint(*d.Leaving), "docs/replication.md") {
							s.Errorf("%s: %v, %+v", name, d.Usage, d.Leaving)
						}
						if s == a {
							bothReady("its drive is leaving", v, a, b)
						}
						s.must(s.e.DisableReplication(s.Context(), replicationOf(v)))
					}
					s.usage(id, drivebay.UsageReleased, 10*time.Minute)
					time.Sleep(10 * time.Second)
					if is := s.of(v); slices.Contains(is.Location.Drives, id) || is.Usage != drivebay.VolumeInUse {
						s.Errorf("%s: %+v, %v", name, is.Location, is.Usage)
					}
					s.blankDrive(id)
				}
				if !v.Location.OnLVM() {
					a.hasFiles(v, "", "before")
					b.hasFiles(v, "", "before")
					return
				}
				a.makeFile(v, "moved")
				time.Sleep(time.Minute)
				bothReady("moved", v, a, b)
				failOver(a, b, v)
				b.hasFiles(v, "", "before", "moved")
			})
		})
	}
}

// TestReplicationCopiedAway: a volume on a partition is copied off a leaving drive while it is replicated: on the secondary while the primary is written
// to, and on the primary once it is not in use. After that both sides have the same data.
func TestReplicationCopiedAway(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "encrypted ext4 on a partition"} {
		t.Run(name, func(t *testing.T) {
			onTwoSitesWith(t, sameDrives(4), ownSecret(), func(a, b *stand, _ func(bool)) {
				v := replicated(a, b, replicable()[name])
				away := func(s *stand, leaving string) {
					s.usage(leaving, drivebay.UsageReleased, 10*time.Minute)
					time.Sleep(time.Minute)
					if is := s.of(v); slices.Contains(is.Location.Drives, leaving) || is.Usage != drivebay.VolumeInUse {
						s.Errorf("%s: %+v, %v", name, is.Location, is.Usage)
					}
					s.blankDrive(leaving)
					bothReady("it has moved", v, a, b)
				}
				leaving := b.of(v).Location.Drives[0]
				b.must(b.mgr.Operate(b.Context(), leaving, drivebay.LeaveRelease, ""))
				a.makeFile(v, "meanwhile")
				away(b, leaving)

				leaving = a.of(v).Location.Drives[0]
				a.use(v, func(string) {
					a.must(a.mgr.Operate(a.Context(), leaving, drivebay.LeaveRelease, ""))
					time.Sleep(time.Minute)
					if d, _ := a.mgr.Snapshot().Find(leaving); d.Leaving == nil || !strings.Contains(fmt.Sprint(*d.Leaving), "stop the pod") {
						a.Errorf("in use: %+v", d.Leaving)
					}
					bothReady("in use", v, a, b)
				})
				away(a, leaving)
				a.makeFile(v, "after")
				failOver(a, b, v)
				b.hasFiles(v, "", "before", "meanwhile", "after")
			})
		})
	}
}

// TestReplicationCopyKilled ends the daemon of the secondary, or cuts its power, after each step of the copy: it is replicated again, and the copy comes
// to its end.
func TestReplicationCopyKilled(t *testing.T) {
	t.Parallel()
	for n, ended := 1, false; !ended && !t.Failed(); n += everyNth {
		k := &killer{}
		onTwoSitesWith(t, sameDrives(2), ownSecret(), func(a, b *stand, _ func(bool)) {
			b.opt.After = k.step
			b.start()
			v := replicated(a, b, requests()["ext4 on a partition"])
			leaving := b.of(v).Location.Drives[0]
			k.anew(n)
			b.must(b.mgr.Operate(b.Context(), leaving, drivebay.LeaveRelease, ""))
			time.Sleep(3 * time.Minute)
			a.makeFile(v, "meanwhile")
			if ended = !k.dead(); !ended {
				b.stop()
				b.stop = nil
				if n%2 == 0 {
					b.sim.PowerCut()
					b.nextBoot()
				}
			}
			steps := k.steps()
			k.arm(0)
			if !ended {
				b.start()
			}
			b.usage(leaving, drivebay.UsageReleased, 10*time.Minute)
			time.Sleep(2 * time.Minute)
			b.blankDrive(leaving)
			bothReady(fmt.Sprintf("killed after %q", steps), v, a, b)
			failOver(a, b, v)
			b.hasFiles(v, "", "before", "meanwhile")
			if ended && n < 10 {
				t.Errorf("only %d steps: %q", n, steps)
			}
		})
	}
}

// TestReplicationCopyRefused: what the old drive cannot read is not given up, because the peer has it; and where no other drive has room, the volume stays
// replicated where it is.
func TestReplicationCopyRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		drives int
		want   string
	}{{2, "which its peer has"}, {1, "no other drive"}} {
		onTwoSitesWith(t, sameDrives(c.drives), ownSecret(), func(a, b *stand, _ func(bool)) {
			v := replicated(a, b, requests()["ext4 on a partition"])
			leaving := b.of(v).Location.Drives[0]
			if c.drives > 1 {
				b.badSectors(b.of(v).Volume, 900<<20, 512)
			}
			b.must(b.mgr.Operate(b.Context(), leaving, drivebay.LeaveRelease, ""))
			time.Sleep(5 * time.Minute)
			if d, _ := b.mgr.Snapshot().Find(leaving); d.Leaving == nil || !strings.Contains(fmt.Sprint(*d.Leaving), c.want) {
				b.Errorf("%+v, want %q", d.Leaving, c.want)
			}
			if is := b.of(v).Location.Drives[0]; is != leaving {
				b.Errorf("it is on %s", is)
			}
			for _, s := range []*stand{a, b} {
				if info, err := s.e.ReplicationInfo(s.Context(), v.ID); err != nil || info.Status != drivebay.ReplicationHealthy {
					s.Errorf("%+v, %v", info, err)
				}
			}
		})
	}
}

// ownSecret are the options of a daemon that has the secret of its replications.
func ownSecret() volume.Options {
	return volume.Options{ReplicationSecret: func() (string, error) { return replicationSecret[drivebay.SecretReplication], nil }}
}

// TestReplicationReturns: a machine that was primary and comes back meets its peer before it is primary again. If the peer was promoted
// meanwhile it is secondary, and gets what it missed; if not, or without an answer of the peer, it is primary as before.
func TestReplicationReturns(t *testing.T) {
	t.Parallel()
	opt := volume.Options{ReplicationSecret: func() (string, error) { return replicationSecret[drivebay.SecretReplication], nil }}
	for name, c := range map[string]struct{ promoted, wrote, cut bool }{
		"the peer was promoted":                        {promoted: true},
		"the peer was not promoted":                    {},
		"it wrote alone before, and peer was promoted": {promoted: true, wrote: true},
		"the peer was promoted and does not answer":    {promoted: true, cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			onTwoSites(t, opt, func(a, b *stand, network func(bool)) {
				ctx, t := a.Context(), a.T
				v := replicated(a, b, requests()["ext4 on a partition"])
				a.makeFile(v, "both")
				time.Sleep(time.Second)
				if c.wrote {
					network(false)
					time.Sleep(time.Second)
					a.makeFile(v, "alone-a")
				}
				a.stop()
				a.stop = nil
				a.sim.PowerCut()
				time.Sleep(time.Second)
				if c.promoted {
					b.must(b.e.PromoteVolume(ctx, byForce(replicationOf(v))))
					b.makeFile(v, "alone-b")
				}
				network(!c.cut)
				a.nextBoot()
				a.start()
				time.Sleep(2 * time.Minute)
				network(true)
				time.Sleep(2 * time.Minute)
				primary, split := !c.promoted || c.wrote || c.cut, c.promoted && (c.wrote || c.cut)
				if is := a.of(v).Replication; is.Primary != primary {
					t.Errorf("the machine that came back is primary: %v", is.Primary)
				}
				if info, err := b.e.ReplicationInfo(ctx, v.ID); err != nil || (info.Conflict == drivebay.SplitBrain) != split {
					t.Errorf("the other machine: %+v, %v", info, err)
				}
				switch {
				case split:
				case c.promoted:
					bothReady("the machine came back", v, a, b)
					a.refuses("used beside the primary", a.stage(v), drivebay.ErrRefused)
					b.must(b.e.DemoteVolume(ctx, replicationOf(v)))
					time.Sleep(time.Second)
					a.must(a.e.PromoteVolume(ctx, replicationOf(v)))
					a.hasFiles(v, "", "both", "alone-b")
				default:
					bothReady("the machine came back", v, a, b)
					a.hasFiles(v, "", "both")
				}
			})
		})
	}
}

// TestReplicationHealed: a disk that DRBD has detached, after a request that failed, is attached again by heal, and gets what it missed. On
// a BAD drive it is not.
func TestReplicationHealed(t *testing.T) {
	t.Parallel()
	onReplica(t, "ext4 on a partition", func(a, b *stand, v drivebay.Volume) {
		heal := func() drivebay.HealReport {
			for range 20 { // a listing attaches it as well
				k, err := b.sim.DRBD()
				b.must(err, k.Detach(b.Context(), b.of(v).Replication.Minor, true))
				time.Sleep(3 * time.Second) // the engine looks
				report, err := b.e.Heal(b.Context(), drivebay.HealRequest{Volume: v.ID})
				b.must(err)
				if len(report.Steps) > 0 {
					return report
				}
				time.Sleep(7 * time.Second)
			}
			b.Fatal("nothing is healed")
			return drivebay.HealReport{}
		}
		a.makeFile(v, "alone")
		if report := heal(); len(report.Steps) != 1 || report.Steps[0].Repair != "attach the disk of a replicated volume" || report.Steps[0].Failed != "" {
			b.Errorf("%+v", report)
		}
		time.Sleep(time.Minute)
		bothReady("healed", v, a, b)

		b.inject(v.Location.Drives[0], "fail")
		time.Sleep(20 * time.Minute)
		if report := heal(); len(report.Steps) != 1 || !strings.Contains(report.Steps[0].Failed, "its drive is BAD") {
			b.Errorf("healed on a BAD drive: %+v", report)
		}
		a.must(a.e.DemoteVolume(a.Context(), replicationOf(v)))
	})
}

// TestReplicationBehind: a primary that worked with the disk of its peer has old data on its own. After a restart it is not primary with them
// before it has met the peer, or an operator uses force.
func TestReplicationBehind(t *testing.T) {
	t.Parallel()
	opt := volume.Options{ReplicationSecret: func() (string, error) { return replicationSecret[drivebay.SecretReplication], nil }}
	for _, force := range []bool{false, true} {
		onTwoSites(t, opt, func(a, b *stand, network func(bool)) {
			ctx := a.Context()
			v := replicated(a, b, requests()["ext4 on a partition"])
			serial := a.serialOf(v.Location.Drives[0])
			a.inject(v.Location.Drives[0], "vanish")
			time.Sleep(time.Minute)
			if info, err := a.e.ReplicationInfo(ctx, v.ID); err != nil || !info.Remote || !a.of(v).Replication.Behind {
				a.Errorf("the drive is gone: %+v, %v, %+v", info, err, a.of(v).Replication)
			}
			a.refuses("disabled without its disk", a.e.DisableReplication(ctx, replicationOf(v)), drivebay.ErrUnavailable)
			a.stop()
			a.stop = nil
			a.sim.PowerCut()
			network(false)
			a.nextBoot()
			a.must(a.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
			a.start()
			time.Sleep(2 * time.Minute)
			a.refuses("staged with old data", a.stage(v), drivebay.ErrUnavailable)
			if x := a.view(v); x.State.Role == drbd.RolePrimary {
				a.Errorf("primary with old data: %+v", x.Status)
			}
			if force {
				a.must(a.e.PromoteVolume(ctx, byForce(replicationOf(v))))
			} else {
				network(true)
				time.Sleep(2 * time.Minute)
			}
			a.hasFiles(v, "", "before")
			if a.of(v).Replication.Behind {
				a.Error("it is behind still")
			}
		})
	}
}

// TestReplicationMoveTargetGone: a volume on LVM that was moving to a drive which is pulled is whole on the one that it leaves, and stays
// attached.
func TestReplicationMoveTargetGone(t *testing.T) {
	t.Parallel()
	onTwoSitesWith(t, sameDrives(2), volume.Options{}, func(a, b *stand, _ func(bool)) {
		v := replicated(a, b, requests()["xfs on linear"])
		a.must(a.stage(v))
		_, spare := a.idle(v.Location.Drives[0])
		a.must(a.mgr.Operate(a.Context(), v.Location.Drives[0], drivebay.LeaveRelease, ""))
		for end := time.Now().Add(time.Minute); len(a.of(v).Location.Drives) < 2; time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				a.Fatalf("it does not move: %+v", a.of(v).Location)
			}
		}
		a.inject(spare, "vanish")
		for range 8 {
			time.Sleep(15 * time.Second)
			k, err := a.sim.DRBD()
			a.must(err)
			if x, err := k.Status(a.Context(), a.of(v).Replication.Minor); err != nil || x.State.Disk != drbd.UpToDate {
				a.Fatalf("its disk is here: %+v, %v", x, err)
			}
		}
	})
}

// TestReplicationReplugged: a drive that is pulled and put back between two listings is attached again as the device that it is now.
func TestReplicationReplugged(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "xfs on linear", "ext4 on thin"} {
		t.Run(name, func(t *testing.T) {
			onReplica(t, name, func(a, b *stand, v drivebay.Volume) {
				drive := b.of(v).Location.Drives[0]
				b.inject(drive, "vanish")
				b.inject(drive, "return")
				time.Sleep(2 * time.Minute)
				bothReady("replugged", v, a, b)
				a.makeFile(v, "after")
				failOver(a, b, v)
				b.hasFiles(v, "", "before", "after")
			})
		})
	}
}

// TestReplicationRepluggedAlone: a primary without its peer keeps the disk that it has, and can be asked for its state.
func TestReplicationRepluggedAlone(t *testing.T) {
	t.Parallel()
	onTwoSites(t, volume.Options{}, func(a, b *stand, network func(bool)) {
		v := replicated(a, b, requests()["ext4 on a partition"])
		network(false)
		time.Sleep(time.Second)
		a.inject(v.Location.Drives[0], "vanish")
		a.inject(v.Location.Drives[0], "return")
		time.Sleep(2 * time.Minute)
		if x := a.view(v); x.State.Role != drbd.RolePrimary || x.State.Disk != drbd.UpToDate || a.of(v).Replication.Behind {
			a.Errorf("a primary alone: %+v, behind %v", x.Status, a.of(v).Replication.Behind)
		}
	})
}

// TestReplicationAlonePulled: the drive of a primary is pulled and put back while its peer is away. DRBD has the device that is gone, and lets go of it once
// nothing has that open: the volume is used again with what its drive has, without its peer and without a command, and the peer gets what it missed.
func TestReplicationAlonePulled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "xfs on linear"} {
		for _, used := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", used ", used), func(t *testing.T) {
				onTwoSites(t, ownSecret(), func(a, b *stand, network func(bool)) {
					v := replicated(a, b, requests()[name])
					network(false)
					time.Sleep(20 * time.Second)
					a.makeFile(v, "alone")
					if used {
						a.must(a.stage(v), a.publish(v, "pod"))
					}
					a.inject(v.Location.Drives[0], "vanish")
					time.Sleep(time.Minute)
					a.inject(v.Location.Drives[0], "return")
					time.Sleep(2 * time.Minute)
					if used {
						a.must(a.unpublish(v, "pod"), a.unstage(v))
						time.Sleep(time.Minute)
					}
					a.hasFiles(v, "/dev/drbd", "before", "alone")
					if r := a.of(v).Replication; !r.Primary || r.Behind {
						a.Errorf("it has all data: %+v", r)
					}
					network(true)
					time.Sleep(2 * time.Minute)
					if info, err := a.e.ReplicationInfo(a.Context(), v.ID); err != nil || info.Status != drivebay.ReplicationHealthy {
						a.Errorf("the peer is back: %+v, %v", info, err)
					}
					failOver(a, b, v)
					b.hasFiles(v, "", "before", "alone")
				})
			})
		}
	}
}

// TestReplicationEncryptedWithoutDrive: an encrypted volume is used with the disk of its peer, and nothing unmounts it.
func TestReplicationEncryptedWithoutDrive(t *testing.T) {
	t.Parallel()
	onTwoSites(t, volume.Options{Headers: t.TempDir(), Heal: true}, func(a, b *stand, _ func(bool)) {
		v := replicated(a, b, encryptedRequests()["ext4 on a partition"])
		a.must(a.stage(v, with(rightKey)), a.publish(v, "pod"))
		k, err := a.sim.DRBD()
		a.must(err)
		for _, fault := range []string{"a failed request", "a drive that went"} {
			if fault == "a failed request" {
				a.must(k.Detach(a.Context(), a.of(v).Replication.Minor, true))
			} else {
				a.inject(v.Location.Drives[0], "vanish")
			}
			time.Sleep(time.Minute)
			if c := a.conditions(v.ID); c.Severity() >= drivebay.SeverityInaccessible {
				a.Errorf("%s: %+v", fault, c)
			}
			if len(a.mounts(staging(v))) != 1 || len(a.mounts(target(v, "pod"))) != 1 {
				a.Errorf("%s: it is not mounted any more", fault)
			}
		}
	})
}

// TestReplicationUsedWithoutDrive: a primary whose drive is gone is given to further pods, with the data of its peer, and staged again. What was
// written meanwhile is on both sides once the drive is back.
func TestReplicationUsedWithoutDrive(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"ext4 on a partition": requests()["ext4 on a partition"], "xfs on linear": requests()["xfs on linear"],
		"encrypted": encryptedRequests()["ext4 on a partition"]} {
		t.Run(name, func(t *testing.T) {
			onTwoSites(t, volume.Options{Headers: t.TempDir()}, func(a, b *stand, _ func(bool)) {
				v := replicated(a, b, r)
				a.must(a.stage(v, with(rightKey)), a.publish(v, "first"))
				a.inject(v.Location.Drives[0], "vanish")
				time.Sleep(time.Minute)
				a.must(a.publish(v, "second"))
				a.must(a.unpublish(v, "second"), a.unpublish(v, "first"), a.unstage(v))
				a.must(a.stage(v, with(rightKey)), a.publish(v, "third"), a.sim.MakeFolder(place(target(v, "third")+"/alone")))
				a.inject(v.Location.Drives[0], "return")
				time.Sleep(2 * time.Minute)
				if len(a.mounts(staging(v))) != 1 || len(a.mounts(target(v, "third"))) != 1 {
					a.Error("it was unmounted when its drive came back")
				}
				a.must(a.unpublish(v, "third"), a.unstage(v))
				bothReady("the drive is back", v, a, b)
				a.hasFiles(v, "", "before", "alone")
				failOver(a, b, v)
				b.hasFiles(v, "", "before", "alone")
			})
		})
	}
}

// TestReplicationGrowsWithoutDrive: what was asked to grow before the drive was gone has not grown, and grows when the drive is back.
func TestReplicationGrowsWithoutDrive(t *testing.T) {
	t.Parallel()
	onReplica(t, "ext4 on a partition", func(a, b *stand, v drivebay.Volume) {
		a.must(a.stage(v))
		size := 2 * v.Size
		for _, s := range []*stand{b, a} {
			_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: size})
			s.must(err)
		}
		a.inject(v.Location.Drives[0], "vanish")
		time.Sleep(time.Minute)
		_, err := a.e.ExpandNode(a.Context(), v.ID, staging(v), drivebay.SizeRange{}, nil)
		a.refuses("grown without its drive", err, drivebay.ErrPending)
		a.inject(v.Location.Drives[0], "return")
		time.Sleep(2 * time.Minute)
		got, err := a.e.ExpandNode(a.Context(), v.ID, staging(v), drivebay.SizeRange{}, nil)
		if a.must(err); got != size {
			a.Errorf("it has %d bytes, want %d", got, size)
		}
		bothReady("grown", v, a, b)
	})
}

// TestReplicationForgottenWithoutDRBD: a volume whose drive is gone is given up where the kernel has no DRBD 8.4 any more.
func TestReplicationForgottenWithoutDRBD(t *testing.T) {
	t.Parallel()
	for _, why := range []error{drbd.ErrUnavailable, drbd.ErrOtherVersion} {
		onReplica(t, "ext4 on a partition", func(a, b *stand, v drivebay.Volume) {
			b.stop()
			b.stop = nil
			b.sim.PowerCut()
			b.nextBoot()
			b.opt.DRBD = func() (drbd.Kernel, error) { return nil, fmt.Errorf("drbd: %w", why) }
			b.inject(v.Location.Drives[0], "vanish")
			b.start()
			time.Sleep(time.Minute)
			b.must(b.e.ForgetVolume(b.Context(), v.ID))
		})
	}
}

// TestReplicationInterruptedGrowthAndDriveGone: work that waits for a drive does not keep the kernel from losing it.
func TestReplicationInterruptedGrowthAndDriveGone(t *testing.T) {
	t.Parallel()
	k := &killer{}
	onTwoSites(t, volume.Options{After: k.step}, func(a, b *stand, _ func(bool)) {
		v := replicated(a, b, requests()["ext4 on a partition"])
		k.arm(1)
		if _, _, err := b.e.ExpandVolume(b.Context(), v.ID, drivebay.SizeRange{Required: 2 * v.Size}); !errors.Is(err, errKilled) {
			b.Fatalf("its growth is not cut short: %v", err)
		}
		k.arm(0)
		b.inject(v.Location.Drives[0], "vanish")
		b.start()
		time.Sleep(time.Minute)
		if b.record(v).Work == nil {
			b.Fatal("no work is recorded")
		}
		for _, s := range []*stand{a, b} {
			if info, err := s.e.ReplicationInfo(s.Context(), v.ID); err != nil || info.Status != drivebay.ReplicationDegraded {
				s.Errorf("the drive of a side is gone: %+v, %v", info, err)
			}
		}
	})
}
