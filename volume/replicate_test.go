package volume_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/replication"
	"github.com/drivebay/drivebay/volume"
)

var (
	replicationSecret = drivebay.Secrets{drivebay.SecretReplication: "correct-horse"}
	siteA             = netip.MustParseAddrPort("10.0.0.1:7800")
	siteB             = netip.MustParseAddrPort("10.0.0.2:7800")
)

func replicateFrom(v drivebay.Volume, local, peer netip.AddrPort, holdsData bool) drivebay.ReplicationRequest {
	return drivebay.ReplicationRequest{Volume: v.ID, ReplicationLink: drivebay.ReplicationLink{Local: local, Peer: peer, Protocol: "C"}, HoldsData: holdsData, Secrets: replicationSecret}
}

func replicateFromAs(r drivebay.ReplicationRequest, pair string) drivebay.ReplicationRequest {
	r.Pair = pair
	return r
}

func replicationOf(v drivebay.Volume) drivebay.ReplicationCall {
	return drivebay.ReplicationCall{Volume: v.ID, Secrets: replicationSecret}
}

func byForce(c drivebay.ReplicationCall) drivebay.ReplicationCall {
	c.Force = true
	return c
}

// use stages and publishes a volume, calls do with the path, and ends that. Secrets are those of an encrypted volume.
func (s *stand) use(v drivebay.Volume, do func(at string)) {
	s.Helper()
	s.must(s.stage(v, with(rightKey)), s.publish(v, "pod"))
	do(target(v, "pod"))
	s.must(s.unpublish(v, "pod"), s.unstage(v))
}

func (s *stand) makeFile(v drivebay.Volume, name string) {
	s.Helper()
	s.use(v, func(at string) { s.must(s.sim.MakeFolder(place(at + "/" + name))) })
}

// hasFiles wants files on a volume, on the device that it is to have.
func (s *stand) hasFiles(v drivebay.Volume, on string, names ...string) {
	s.Helper()
	s.use(v, func(at string) {
		for _, name := range names {
			if s.look(at+"/"+name) != host.PlaceFolder {
				s.Errorf("%s: file %s is not there", on, name)
			}
		}
		if m := s.mounts(staging(v)); on != "" && (len(m) != 1 || !strings.HasPrefix(m[0].Source, on)) {
			s.Errorf("mounted is %+v, want %s", m, on)
		}
	})
}

// refuses wants a call to fail with an error.
func (s *stand) refuses(what string, err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%s: %v, want %v", what, err, want)
	}
}

// notYet wants an error that is asked again: the drives do not let it happen, or the daemon is at work on the volume at that moment.
func (s *stand) notYet(what string, err error) {
	s.Helper()
	if !askedAgain(err) {
		s.Errorf("%s: %v, want unavailable", what, err)
	}
}

func askedAgain(err error) bool {
	return errors.Is(err, drivebay.ErrUnavailable) || errors.Is(err, drivebay.ErrPending)
}

func (s *stand) view(v drivebay.Volume) replication.View {
	s.Helper()
	view, err := s.e.ReplicationView(s.Context(), v.ID)
	s.must(err)
	if view == nil {
		s.Fatalf("volume %s is not replicated", v.ID)
	}
	return *view
}

// conditions returns what the view of a volume says is wrong with it.
func (s *stand) conditions(id string) drivebay.Condition {
	for _, v := range s.e.Volumes().Volumes {
		if v.Volume.ID == id {
			return v.Condition
		}
	}
	s.Fatalf("volume %s is not in the set", id)
	return nil
}

// replicable are the requests of volumes that have room to grow.
func replicable() map[string]drivebay.VolumeRequest {
	out := map[string]drivebay.VolumeRequest{}
	for _, name := range []string{"ext4 on a partition", "btrfs on a partition", "xfs on linear", "ext4 on thin", "a mirror"} {
		out[name] = requests()[name]
	}
	mirror := out["a mirror"]
	mirror.Block = false
	out["a mirror"] = mirror
	for _, name := range []string{"ext4 on a partition", "xfs on linear"} {
		out["encrypted "+name] = encryptedRequests()[name]
	}
	return out
}

// TestReplicationAlone: a volume with data gets a DRBD device under its filesystem, and loses it again, on every kind of
// piece; roles, restarts and a power cut in between.
func TestReplicationAlone(t *testing.T) {
	t.Parallel()
	for name, r := range some(replicable()) {
		t.Run(name, func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
				v := s.make("v", r)
				s.makeFile(v, "before")
				device := "/dev/drbd0"
				if r.Class.Encryption != "" {
					device = "" // the plain device
				}

				s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)))
				s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)))
				s.refuses("enabled in another way", s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, netip.MustParseAddrPort("10.0.0.3:7800"), true)), drivebay.ErrExists)
				if is := s.of(v); is.Size != v.Size || is.CSIStatus != drivebay.CSICreated || !is.Replicated() {
					s.Errorf("after enable: size %d, was %d; %v; %+v", is.Size, v.Size, is.CSIStatus, is.Replication)
				}
				if x := s.view(v); x.State.Role != drbd.RolePrimary || x.State.Disk != drbd.UpToDate || x.Bytes < v.Size || x.State.Connection != drbd.WFConnection {
					s.Errorf("after enable: %+v", x.Status)
				}
				s.hasFiles(v, device, "before")
				s.makeFile(v, "replicated")
				s.refuses("deleted", s.e.DeleteVolume(s.Context(), v.ID), drivebay.ErrBusy)

				s.must(s.stage(v, with(rightKey)))
				s.refuses("demoted in use", s.e.DemoteVolume(s.Context(), replicationOf(v)), drivebay.ErrRefused)
				s.refuses("disabled in use", s.e.DisableReplication(s.Context(), replicationOf(v)), drivebay.ErrRefused)
				s.must(s.unstage(v), s.e.DemoteVolume(s.Context(), replicationOf(v)), s.e.DemoteVolume(s.Context(), replicationOf(v)))
				s.refuses("staged as secondary", s.stage(v, with(rightKey)), drivebay.ErrRefused)
				s.refuses("staged as secondary, read-only", s.stage(v, with(rightKey), func(r *drivebay.StageRequest) { r.Options = []string{"ro"} }), drivebay.ErrRefused)
				s.refuses("promoted without its peer", s.e.PromoteVolume(s.Context(), replicationOf(v)), drivebay.ErrRefused)
				s.must(s.e.PromoteVolume(s.Context(), byForce(replicationOf(v))), s.e.PromoteVolume(s.Context(), byForce(replicationOf(v))))
				s.hasFiles(v, device, "before", "replicated")

				s.start()
				s.hasFiles(v, device, "before", "replicated")
				s.stop()
				s.stop = nil
				s.sim.PowerCut()
				s.nextBoot()
				s.start()
				if x := s.view(v); x.State.Role != drbd.RolePrimary || x.State.Connection != drbd.StandAlone {
					s.Errorf("after a power cut: %+v", x.Status)
				}
				s.hasFiles(v, device, "before", "replicated")

				s.must(s.e.DisableReplication(s.Context(), replicationOf(v)), s.e.DisableReplication(s.Context(), replicationOf(v)))
				if is := s.of(v); is.Replication != nil {
					s.Errorf("after disable: %+v", is.Replication)
				}
				s.hasFiles(v, "", "before", "replicated")
				if m, err := s.sim.ReadDir("sys/block"); err != nil || strings.Contains(strings.Join(m, " "), "drbd") {
					s.Errorf("after disable: %v %v", m, err)
				}
				s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)))
				s.hasFiles(v, device, "before", "replicated")
				s.must(s.e.DisableReplication(s.Context(), replicationOf(v)), s.e.DeleteVolume(s.Context(), v.ID))
			})
		})
	}
}

// onTwoSites runs a test on two machines with a network between them.
func onTwoSites(t *testing.T, opt volume.Options, test func(a, b *stand, network func(up bool))) {
	t.Helper()
	onTwoSitesWith(t, smallDrives(), opt, test)
}

// onTwoSitesWith is the same on machines with other drives.
func onTwoSitesWith(t *testing.T, drives hostsim.Spec, opt volume.Options, test func(a, b *stand, network func(up bool))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, end := newStand(t, drives, opt)
		defer end()
		b, end := newStand(t, drives, opt)
		defer end()
		test(a, b, hostsim.Join(a.sim, b.sim))
	})
}

// TestReplicationOfTwoSites: full copy, failover and failback, and a split brain that only force on the loser ends.
func TestReplicationOfTwoSites(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"xfs on linear": requests()["xfs on linear"], "encrypted": encryptedRequests()["ext4 on a partition"]} {
		t.Run(name, func(t *testing.T) {
			onTwoSites(t, volume.Options{Headers: t.TempDir()}, func(a, b *stand, network func(bool)) {
				ctx, t := a.Context(), a.T
				v, w := a.make("v", r), b.make("v", r)
				a.makeFile(v, "from a")
				b.makeFile(w, "lost on b")
				a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
				b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
				time.Sleep(time.Minute)
				for _, s := range []*stand{a, b} {
					if x := s.view(v); x.State.Connection != drbd.Connected || x.State.Disk != drbd.UpToDate || x.State.PeerDisk != drbd.UpToDate {
						t.Fatalf("after the first copy: %+v", x.Status)
					}
				}
				b.refuses("two primaries", b.e.PromoteVolume(ctx, byForce(replicationOf(w))), drivebay.ErrRefused)
				b.refuses("staged beside the primary", b.stage(w, with(rightKey)), drivebay.ErrRefused)

				a.must(a.e.DemoteVolume(ctx, replicationOf(v)))
				time.Sleep(time.Second)
				b.must(b.e.PromoteVolume(ctx, replicationOf(w)))
				b.hasFiles(w, "", "from a")
				b.makeFile(w, "from b")
				time.Sleep(time.Second)
				if ready, err := a.e.ResyncVolume(ctx, replicationOf(v)); err != nil || !ready {
					t.Errorf("resync of the side that was demoted: %v %v", ready, err)
				}

				// Failover without a: b goes on alone, and a too.
				network(false)
				time.Sleep(time.Second)
				a.must(a.e.PromoteVolume(ctx, byForce(replicationOf(v))))
				a.makeFile(v, "split a")
				b.makeFile(w, "split b")
				network(true)
				time.Sleep(time.Minute)
				for _, s := range []*stand{a, b} {
					if x := s.view(v); x.State.Connection >= drbd.Connected {
						t.Errorf("connected after a split brain: %+v", x.Status)
					}
				}
				a.hasFiles(v, "", "from a", "from b", "split a")
				b.hasFiles(w, "", "from a", "from b", "split b")
				for _, s := range []*stand{a, b} {
					if r := s.of(v).Replication; r.Conflict != drivebay.SplitBrain || r.Past.LastSync.IsZero() {
						t.Errorf("recorded of the split brain: %+v", r)
					}
					if c := s.conditions(v.ID); len(c) != 1 || c[0].Reason != "ReplicationConflict" {
						t.Errorf("after a split brain: %+v", c)
					}
					if info, err := s.e.ReplicationInfo(ctx, v.ID); err != nil || info.Status != drivebay.ReplicationError || info.LastSync.IsZero() {
						t.Errorf("info after a split brain: %+v, %v", info, err)
					}
				}
				if _, err := a.e.ResyncVolume(ctx, byForce(replicationOf(v))); !errors.Is(err, drivebay.ErrRefused) {
					t.Errorf("a primary gives its data up: %v", err)
				}
				a.must(a.e.DemoteVolume(ctx, replicationOf(v)))
				if _, err := a.e.ResyncVolume(ctx, replicationOf(v)); !errors.Is(err, drivebay.ErrRefused) {
					t.Errorf("data are given up without force: %v", err)
				}
				if ready, err := a.e.ResyncVolume(ctx, byForce(replicationOf(v))); err != nil || ready {
					t.Errorf("resync by force: %v, %v", ready, err)
				}
				b.must(b.e.PromoteVolume(ctx, replicationOf(w)))
				time.Sleep(time.Minute)
				if ready, err := a.e.ResyncVolume(ctx, byForce(replicationOf(v))); err != nil || !ready {
					t.Errorf("after the resync: %v, %v", ready, err)
				}
				for _, s := range []*stand{a, b} {
					r, info := s.of(v).Replication, drivebay.ReplicationInfo{}
					info, err := s.e.ReplicationInfo(ctx, v.ID)
					if err != nil || info.Status != drivebay.ReplicationHealthy || info.OutOfSync != 0 || r.Conflict != "" || len(s.conditions(v.ID)) != 0 {
						t.Errorf("after the resync: %+v, %+v, %+v, %v", r, info, s.conditions(v.ID), err)
					}
				}
				b.must(b.e.DemoteVolume(ctx, replicationOf(w)))
				time.Sleep(time.Second)
				a.must(a.e.PromoteVolume(ctx, replicationOf(v)))
				a.use(v, func(at string) {
					if a.look(at+"/split b") != host.PlaceFolder || a.look(at+"/split a") == host.PlaceFolder {
						t.Error("a has not the data of b")
					}
				})
			})
		})
	}
}

// TestReplicationRefusedByPeer: of a split brain, only one side may have the reason in its log: that of the machine which was there
// already when the other one came back. The other one says that it was refused, and where to look, and gives its data up by force.
func TestReplicationRefusedByPeer(t *testing.T) {
	t.Parallel()
	onTwoSites(t, volume.Options{}, func(a, b *stand, network func(bool)) {
		ctx, t := a.Context(), a.T
		r := requests()["ext4 on a partition"]
		v, w := a.make("v", r), b.make("v", r)
		a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
		b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
		time.Sleep(time.Minute)
		network(false)
		time.Sleep(time.Second)
		a.makeFile(v, "lost")
		a.stop()
		a.stop = nil
		a.sim.PowerCut()
		b.must(b.e.PromoteVolume(ctx, byForce(replicationOf(w))))
		b.makeFile(w, "kept")
		network(true)
		a.nextBoot()
		a.start()
		a.must(a.e.PromoteVolume(ctx, replicationOf(v)))
		time.Sleep(time.Minute)

		if info, err := b.e.ReplicationInfo(ctx, v.ID); err != nil || info.Conflict != drivebay.SplitBrain {
			t.Errorf("the side that was there: %+v, %v", info, err)
		}
		info, err := a.e.ReplicationInfo(ctx, v.ID)
		if err != nil || info.Conflict != drivebay.RefusedByPeer || info.Status != drivebay.ReplicationDegraded || !strings.Contains(info.Message, "on the other machine") {
			t.Errorf("the side that came back: %+v, %v", info, err)
		}
		if c := a.conditions(v.ID); len(c) != 1 || c[0].Reason != "ReplicationDegraded" {
			t.Errorf("the side that came back: %+v", c)
		}
		a.start() // what it knows outlives the daemon
		a.must(a.e.DemoteVolume(ctx, replicationOf(v)))
		if info, err := a.e.ReplicationInfo(ctx, v.ID); err != nil || info.Conflict != drivebay.RefusedByPeer {
			t.Errorf("after a restart of the daemon: %+v, %v", info, err)
		}
		if ready, err := a.e.ResyncVolume(ctx, byForce(replicationOf(v))); err != nil || ready {
			t.Errorf("resync by force: %v, %v", ready, err)
		}
		b.must(b.e.PromoteVolume(ctx, replicationOf(w)))
		time.Sleep(time.Minute)
		if ready, err := a.e.ResyncVolume(ctx, replicationOf(v)); err != nil || !ready || len(a.conditions(v.ID)) != 0 {
			t.Errorf("after the resync: %v, %v, %+v", ready, err, a.conditions(v.ID))
		}
		b.must(b.e.DemoteVolume(ctx, replicationOf(w)))
		time.Sleep(time.Second)
		a.must(a.e.PromoteVolume(ctx, replicationOf(v)))
		a.use(v, func(at string) {
			if a.look(at+"/kept") != host.PlaceFolder || a.look(at+"/lost") == host.PlaceFolder {
				t.Error("a has not the data of b")
			}
		})
	})
}

// TestReplicationConnectsAgain: the kernel stops trying to connect a volume when a machine calls that does not know the secret. An engine that
// has it begins again after a minute.
func TestReplicationConnectsAgain(t *testing.T) {
	t.Parallel()
	onTwoSites(t, ownSecret(), func(a, b *stand, _ func(bool)) {
		ctx := a.Context()
		v, w := a.make("v", requests()["ext4 on a partition"]), b.make("v", requests()["ext4 on a partition"])
		a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
		b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
		time.Sleep(time.Minute)
		wrong, err := drbd.NewSecret("wrong")
		k, err2 := b.sim.DRBD()
		b.must(err, err2, k.Disconnect(ctx, siteB, siteA, true))
		b.must(k.Connect(ctx, "drivebay-"+v.ID, drbd.Peer{Local: siteB, Remote: siteA, Protocol: drbd.ProtocolC, Secret: wrong}))
		time.Sleep(10 * time.Second)
		if x := a.view(v); x.State.Connection != drbd.StandAlone {
			a.Errorf("called without the secret: %+v", x.Status)
		}
		time.Sleep(3 * time.Minute)
		for _, s := range []*stand{a, b} {
			if info, err := s.e.ReplicationInfo(ctx, v.ID); err != nil || info.Status != drivebay.ReplicationHealthy {
				s.Errorf("some minutes later: %+v, %v", info, err)
			}
		}
	})
}

// TestReplicationOfAPairOnly: with crossed ports, a volume gets no data of another one; volumes with different names are a
// pair if both calls say so.
func TestReplicationOfAPairOnly(t *testing.T) {
	t.Parallel()
	onTwoSites(t, volume.Options{}, func(a, b *stand, _ func(bool)) {
		ctx, t := a.Context(), a.T
		v, w := a.make("v", requests()["ext4 on a partition"]), b.make("w", requests()["ext4 on a partition"])
		a.makeFile(v, "from a")
		b.makeFile(w, "from b")
		from, to := replicateFrom(v, siteA, siteB, true), replicateFrom(w, siteB, siteA, false)
		for _, pair := range []string{"", "one"} {
			to.Pair = pair
			a.must(a.e.EnableReplication(ctx, from))
			b.must(b.e.EnableReplication(ctx, to))
			time.Sleep(time.Minute)
			for _, s := range []*stand{a, b} {
				if x := s.view(map[*stand]drivebay.Volume{a: v, b: w}[s]); x.State.Connection >= drbd.Connected || x.State.PeerDisk == drbd.UpToDate {
					t.Errorf("pair %q: connected to another volume: %+v", pair, x.Status)
				}
			}
			b.refuses("enabled as another pair", b.e.EnableReplication(ctx, replicateFromAs(to, "other")), drivebay.ErrExists)
			b.must(b.e.DisableReplication(ctx, replicationOf(w)), b.e.AcceptLoss(ctx, w.ID))
			b.hasFiles(w, "", "from b")
		}
		a.must(a.e.DisableReplication(ctx, replicationOf(v)))
		from.Pair, to.Pair = "both", "both"
		a.must(a.e.EnableReplication(ctx, from))
		b.must(b.e.EnableReplication(ctx, to))
		time.Sleep(time.Minute)
		a.must(a.e.DemoteVolume(ctx, replicationOf(v)))
		time.Sleep(time.Second)
		b.must(b.e.PromoteVolume(ctx, replicationOf(w)))
		b.hasFiles(w, "", "from a")
	})
}

// TestReplicationPeerTooSmall: the kernel refuses a peer that has less room than the data, which it says in its log only. The
// volume of the peer grows, and both connect.
func TestReplicationPeerTooSmall(t *testing.T) {
	t.Parallel()
	onTwoSites(t, volume.Options{}, func(a, b *stand, _ func(bool)) {
		ctx, t, r := a.Context(), a.T, requests()["ext4 on a partition"]
		v := a.make("v", r)
		r.Size.Required = 1 << 29
		w := b.make("v", r)
		a.makeFile(v, "from a")
		a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
		b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
		time.Sleep(time.Minute)
		if info, err := a.e.ReplicationInfo(ctx, v.ID); err != nil || info.Conflict != drivebay.PeerTooSmall || !strings.Contains(info.Message, "too small") {
			t.Errorf("%+v, %v", info, err)
		}
		if c := a.conditions(v.ID); len(c) != 1 || c[0].Reason != "ReplicationDegraded" || !strings.Contains(c[0].Message, "too small") {
			t.Errorf("%+v", c)
		}
		_, _, err := b.e.ExpandVolume(ctx, w.ID, drivebay.SizeRange{Required: v.Size})
		b.must(err)
		_, err = b.e.ResyncVolume(ctx, replicationOf(w))
		b.must(err, a.e.PromoteVolume(ctx, replicationOf(v)))
		time.Sleep(time.Minute)
		if info, err := a.e.ReplicationInfo(ctx, v.ID); err != nil || info.Status != drivebay.ReplicationHealthy || info.Conflict != "" {
			t.Errorf("after the growth: %+v, %v", info, err)
		}
	})
}

// TestReplicationEnded: where the replication ends before the copy is complete, the volume is not used like any other: not staged,
// not grown, not the source of a copy. It is deleted, gets another copy, or is used when an operator accepts its data.
func TestReplicationEnded(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]func(a, b *stand, v, w drivebay.Volume){
		"deleted": func(a, b *stand, v, w drivebay.Volume) { b.must(b.e.DeleteVolume(b.Context(), w.ID)) },
		"accepted": func(a, b *stand, v, w drivebay.Volume) {
			b.must(b.e.AcceptLoss(b.Context(), w.ID))
			if r := b.of(w).Replication; r != nil {
				b.Errorf("accepted, and replicated: %+v", r)
			}
			b.refuses("accepted twice", b.e.AcceptLoss(b.Context(), w.ID), drivebay.ErrInvalid)
			b.hasFiles(w, "/dev/sd")
		},
		"copied again": func(a, b *stand, v, w drivebay.Volume) {
			ctx := a.Context()
			b.refuses("enabled as the source", b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, true)), drivebay.ErrRefused)
			a.must(a.e.PromoteVolume(ctx, replicationOf(v)))
			b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
			time.Sleep(time.Minute)
			a.must(a.e.DemoteVolume(ctx, replicationOf(v)))
			time.Sleep(time.Second)
			b.must(b.e.PromoteVolume(ctx, replicationOf(w)), b.e.DisableReplication(ctx, replicationOf(w)))
			b.hasFiles(w, "/dev/sd", "from a")
		},
	} {
		onTwoSites(t, volume.Options{}, func(a, b *stand, network func(bool)) {
			ctx := a.Context()
			v, w := a.make("v", requests()["ext4 on a partition"]), b.make("v", requests()["ext4 on a partition"])
			a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
			a.makeFile(v, "from a")
			network(false)
			b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
			time.Sleep(time.Minute)
			b.must(b.e.DisableReplication(ctx, replicationOf(w)), b.e.DisableReplication(ctx, replicationOf(w)))
			network(true)
			b.stop()
			b.stop = nil
			b.sim.PowerCut()
			b.nextBoot()
			b.start()
			time.Sleep(time.Minute)
			if c := b.conditions(w.ID); len(c) != 1 || c[0].Reason != "ReplicaIncomplete" {
				t.Errorf("%s: %+v", name, c)
			}
			b.refuses("staged", b.stage(w), drivebay.ErrRefused)
			_, _, err := b.e.ExpandVolume(ctx, w.ID, drivebay.SizeRange{Required: 2 << 30})
			b.refuses("grown", err, drivebay.ErrRefused)
			_, err = b.e.ReplicationInfo(ctx, w.ID)
			b.refuses("info", err, drivebay.ErrRefused)
			b.refuses("promoted", b.e.PromoteVolume(ctx, byForce(replicationOf(w))), drivebay.ErrRefused)
			way(a, b, v, w)
		})
	}
}

// TestReplicationKilled ends the daemon after each step of enable and of disable: the same call, repeated, completes it,
// and the data stay.
func TestReplicationKilled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "xfs on linear"} {
		for _, disable := range []bool{false, true} {
			k := &killer{}
			onMachine(t, smallDrives(), volume.Options{After: k.step}, func(s *stand) {
				v := s.make("v", requests()[name])
				s.makeFile(v, "before")
				enable := func() error { return s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)) }
				off := func() error { return s.e.DisableReplication(s.Context(), replicationOf(v)) }
				call, back := enable, off
				if disable {
					s.must(enable())
					call, back = off, enable
				}
				kills := 0
				for n := 1; ; n++ {
					k.arm(n)
					err := call()
					k.arm(0)
					if err == nil {
						break
					}
					s.refuses("killed", err, errKilled)
					kills++
					if n%2 == 0 {
						s.stop()
						s.stop = nil
						s.sim.PowerCut()
						s.nextBoot()
					}
					s.start()
					s.must(call(), call())
					s.hasFiles(v, "", "before")
					s.must(back())
				}
				if kills < 2 {
					t.Errorf("%s: killed %d times", name, kills)
				}
				s.hasFiles(v, "", "before")
			})
		}
	}
}

// TestReplicationGrows: the device of a replicated volume grows once both sides have: first the one that is not in use, or
// first the one that is.
func TestReplicationGrows(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "xfs on linear"} {
		for _, secondaryFirst := range []bool{true, false} {
			onTwoSites(t, volume.Options{}, func(a, b *stand, _ func(bool)) {
				ctx := a.Context()
				v, w := a.make("v", requests()[name]), b.make("v", requests()[name])
				a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
				b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
				time.Sleep(time.Minute)
				a.makeFile(v, "before")
				a.must(a.stage(v))
				size := uint64(2 << 30)
				expand := func(s *stand) {
					_, _, err := s.e.ExpandVolume(ctx, v.ID, drivebay.SizeRange{Required: size})
					s.must(err)
				}
				node := func() error {
					_, err := a.e.ExpandNode(ctx, v.ID, staging(v), drivebay.SizeRange{}, nil)
					return err
				}
				if secondaryFirst {
					expand(b)
					time.Sleep(time.Second)
				}
				expand(a)
				if !secondaryFirst {
					a.refuses("grown before the peer", node(), drivebay.ErrPending)
					expand(b)
					time.Sleep(time.Minute)
				}
				a.must(node())
				time.Sleep(time.Minute)
				for _, s := range []*stand{a, b} {
					if x := s.view(v); x.Bytes < size || x.State.Connection != drbd.Connected || x.State.Disk != drbd.UpToDate {
						s.Errorf("%s: after the growth: %+v", name, x.Status)
					}
					if is := s.of(v).Replication; is.Disk < size {
						s.Errorf("%s: the metadata are at %d", name, is.Disk)
					}
				}
				a.must(a.unstage(v), a.e.DemoteVolume(ctx, replicationOf(v)))
				time.Sleep(time.Second)
				b.must(b.e.PromoteVolume(ctx, replicationOf(w)))
				b.hasFiles(w, "/dev/drbd0", "before")
			})
		}
	}
}

// TestReplicationGrowthCutShort: the piece has grown, and the machine stops before the kernel moved the metadata. They are
// moved when the disk is attached again; the volume can be used before its peer has grown, and the plain one comes back.
func TestReplicationGrowthCutShort(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "xfs on linear"} {
		for _, attachFirst := range []bool{true, false} {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				v := s.make("v", requests()[name])
				s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)))
				s.makeFile(v, "before")
				was := s.of(v).Replication.Disk
				size := uint64(2 << 30)
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: size})
				s.must(err)
				if is := s.of(v).Replication.Disk; is != was {
					s.Fatalf("%s: the metadata are recorded at %d, they were at %d", name, is, was)
				}
				s.stop()
				s.stop = nil
				s.sim.PowerCut()
				s.nextBoot()
				if !attachFirst {
					s.opt.DRBD = nil // the daemon does not attach it by itself
				}
				s.start()
				if !attachFirst { // who asks does not attach it either
					if info, err := s.e.ReplicationInfo(s.Context(), v.ID); err != nil || info.Status != drivebay.ReplicationDegraded || info.State != "not attached" {
						s.Errorf("%s: not attached: %+v, %v", name, info, err)
					}
				}
				if attachFirst {
					s.must(s.mgr.Refresh(s.Context()))
					time.Sleep(10 * time.Minute)
					if is := s.of(v).Replication.Disk; is < size {
						s.Errorf("%s: attached again, the metadata are recorded at %d", name, is)
					}
					s.hasFiles(v, "/dev/drbd0", "before")
					_, err = s.e.ExpandNode(s.Context(), v.ID, staging(v), drivebay.SizeRange{}, nil)
					s.refuses("grown where it is not staged", err, drivebay.ErrNotFound)
				} else {
					s.refuses("staged without DRBD", s.stage(v), drivebay.ErrNoSupport)
					s.opt.DRBD = s.sim.DRBD
					s.start()
				}
				s.must(s.e.DisableReplication(s.Context(), replicationOf(v)))
				s.hasFiles(v, "", "before")
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
			})
		}
	}
}

// TestReplicationRefused: what replication cannot be enabled on, and the ports that volumes cannot share.
func TestReplicationRefused(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v, w := s.make("v", requests()["ext4 on a partition"]), s.make("w", requests()["xfs on linear"])
		enable := func(r drivebay.ReplicationRequest) error { return s.e.EnableReplication(s.Context(), r) }
		r := replicateFrom(v, siteA, siteB, true)
		s.must(s.stage(v))
		s.refuses("in use", enable(r), drivebay.ErrRefused)
		s.must(s.unstage(v))
		without := r
		without.Secrets = nil
		s.refuses("without a secret", enable(without), drivebay.ErrSecret)
		s.refuses("no volume", enable(replicateFrom(drivebay.Volume{ID: "none"}, siteA, siteB, true)), drivebay.ErrNotFound)
		s.refuses("promoted", s.e.PromoteVolume(s.Context(), byForce(replicationOf(v))), drivebay.ErrRefused)
		s.refuses("demoted", s.e.DemoteVolume(s.Context(), replicationOf(v)), drivebay.ErrRefused)
		s.must(enable(r))
		s.refuses("the port of another volume", enable(replicateFrom(w, siteA, netip.MustParseAddrPort("10.0.0.2:7801"), true)), drivebay.ErrInvalid)
		s.refuses("the peer port of another volume", enable(replicateFrom(w, netip.MustParseAddrPort("10.0.0.1:7801"), siteB, true)), drivebay.ErrInvalid)
		s.must(enable(replicateFrom(w, netip.MustParseAddrPort("10.0.0.1:7801"), netip.MustParseAddrPort("10.0.0.2:7801"), true)))
		if a, b := s.of(v).Replication.Minor, s.of(w).Replication.Minor; a == b {
			s.Errorf("both volumes have minor %d", a)
		}
		full := s.make("full", requests()["a drive"])
		s.refuses("no room", enable(replicateFrom(full, netip.MustParseAddrPort("10.0.0.1:7802"), netip.MustParseAddrPort("10.0.0.2:7802"), true)), drivebay.ErrNoSpace)
		s.must(s.stage(full), s.unstage(full))
		away := s.make("away", requests()["ext4 on a partition"])
		s.inject(away.Location.Drives[0], "vanish")
		time.Sleep(time.Minute)
		s.refuses("its drive is away", enable(replicateFrom(away, netip.MustParseAddrPort("10.0.0.1:7803"), netip.MustParseAddrPort("10.0.0.2:7803"), true)), drivebay.ErrUnavailable)
	})
	spec := smallDrives()
	spec.Without = []string{"drbd"}
	onMachine(t, spec, volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["ext4 on a partition"])
		s.refuses("without the module", s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)), drivebay.ErrNoSupport)
		s.must(s.stage(v))
	})
}

// TestReplicatedWithoutRecord: a volume whose record is lost is not mounted beside its DRBD device, which would not see the
// writes. The same bytes inside of a filesystem are data.
func TestReplicatedWithoutRecord(t *testing.T) {
	t.Parallel()
	for name, r := range some(replicable()) {
		onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
			v := s.make("v", r)
			s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)))
			s.stop()
			s.stop = nil
			s.sim.PowerCut()
			s.nextBoot()
			rec := s.record(v)
			rec.Volume.Replication = nil
			s.must(s.st.PutVolume(rec))
			s.start()
			if err := s.stage(v, with(rightKey)); !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "accept-loss") {
				s.Errorf("%s: staged without its record: %v", name, err)
			}
		})
	}
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["ext4 on a partition"])
		super := make([]byte, drbd.SuperblockBytes)
		binary.BigEndian.PutUint32(super[60:], 0x83740267+4)
		binary.BigEndian.PutUint32(super[80:], 4096)
		if m, err := drbd.DecodeMetadata(super); err != nil {
			s.Fatal(m, err)
		}
		s.write(v, super, int64(v.Size)-drbd.SuperblockBytes)
		s.must(s.stage(v))
	})
}
