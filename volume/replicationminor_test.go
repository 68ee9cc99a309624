package volume_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// onSharedMinor runs a test on a site whose store is restored from the time when its volume v was replicated. Since then that was disabled, and
// the minor became that of the volume x, which is replicated, and is not in use.
func onSharedMinor(t *testing.T, test func(a, b *stand, v, x drivebay.Volume)) {
	t.Helper()
	onTwoSitesWith(t, sameDrives(2), ownSecret(), func(a, b *stand, _ func(bool)) {
		ctx, r := a.Context(), requests()["ext4 on a partition"]
		v := replicated(a, b, r)
		olderV := a.record(v)
		a.must(a.e.DisableReplication(ctx, replicationOf(v)))
		b.must(b.e.DisableReplication(ctx, replicationOf(v)))

		x, y := a.make("x", r), b.make("x", r)
		olderX := a.record(x)
		siteX, siteY := netip.AddrPortFrom(siteA.Addr(), 7801), netip.AddrPortFrom(siteB.Addr(), 7801)
		a.must(a.e.EnableReplication(ctx, replicateFrom(x, siteX, siteY, true)))
		b.must(b.e.EnableReplication(ctx, replicateFrom(y, siteY, siteX, false)))
		time.Sleep(time.Minute)
		bothReady("x", x, a, b)

		a.stop()
		a.stop = nil
		a.must(a.st.PutVolume(olderV), a.st.PutVolume(olderX))
		a.start()
		time.Sleep(10 * time.Minute)
		test(a, b, v, x)
	})
}

// TestReplicationOfAnotherMinor: what the kernel says of the device of another volume is no state of this one.
func TestReplicationOfAnotherMinor(t *testing.T) {
	t.Parallel()
	onSharedMinor(t, func(a, _ *stand, v, _ drivebay.Volume) {
		info, err := a.e.ReplicationInfo(a.Context(), v.ID)
		if err == nil && (info.Status == drivebay.ReplicationHealthy || info.Connected) {
			t.Errorf("ReplicationInfo: %+v", info)
		}
		if is := a.of(v); !is.Condition.Abnormal() {
			t.Errorf("no fault is known: %+v", is.Replication)
		}
	})
}

// TestReplicationOfAnotherMinorWithoutDrive: a volume whose drive is gone demotes no other one.
func TestReplicationOfAnotherMinorWithoutDrive(t *testing.T) {
	t.Parallel()
	onSharedMinor(t, func(a, b *stand, v, x drivebay.Volume) {
		if v.Location.Drives[0] == x.Location.Drives[0] {
			t.Fatal("both are on one drive")
		}
		a.inject(v.Location.Drives[0], "vanish")
		time.Sleep(time.Minute)
		if err := a.e.DemoteVolume(a.Context(), replicationOf(v)); err == nil {
			t.Error("a volume is demoted that has no device")
		}
		time.Sleep(time.Minute)
		if info, err := b.e.ReplicationInfo(b.Context(), x.ID); err != nil || b.view(x).State.Peer.String() != "Primary" {
			t.Errorf("x is demoted with it: %+v, %v", info, err)
		}
	})
}
