package volume_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestReplicationOlderThanCutGrowth: a store is restored from the moment when a replication was being enabled, before its metadata were written.
// Since then the piece of the copy has grown, and the daemon was killed before the kernel moved the metadata to its new end. The copy, which misses
// what was written at its source, is used neither by a stage nor after its replication was disabled.
func TestReplicationOlderThanCutGrowth(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{
		"a partition": marked()["a block volume on a partition"], "linear": marked()["a linear block volume"], "ext4": requests()["ext4 on a partition"],
	} {
		for _, disable := range []bool{false, true} {
			var s *stand
			var kill atomic.Bool
			k := &recordAfter{step: "mark replicated"}
			record := k.after(&s, func() {})
			onTwoSitesWith(t, sameDrives(2), ownSecret(), func(a, b *stand, network func(bool)) {
				b.opt.After = func(id, step string) error {
					if kill.Load() && (strings.HasPrefix(step, "kernel ") || step == "volume") {
						return errKilled
					}
					return record(id, step)
				}
				b.start()
				s = b
				ctx, v, w := a.Context(), a.make("v", r), b.make("v", r)
				a.must(a.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
				k.armed.Store(true)
				b.must(b.e.EnableReplication(ctx, replicateFrom(w, siteB, siteA, false)))
				time.Sleep(time.Minute)
				network(false)
				time.Sleep(time.Minute)
				a.must(a.stage(v))
				kill.Store(true)
				_, _, err := b.e.ExpandVolume(ctx, w.ID, drivebay.SizeRange{Required: 2 << 30})
				if err == nil {
					t.Errorf("%s: its growth was not cut short", name)
				}
				kill.Store(false)
				b.olderRecord(*k.is.Load())
				time.Sleep(10 * time.Minute)
				if disable {
					err = b.e.DisableReplication(ctx, replicationOf(w))
				}
				staged := b.stage(w)
				if staged == nil {
					t.Errorf("%s: the old copy is staged as the volume; disabled %v: %v", name, disable, err)
				}
				if is := b.of(w); !is.Condition.Abnormal() {
					t.Errorf("%s: disabled %v, staged: %v: %s", name, disable, staged, is.Condition.Message())
				}
			})
		}
	}
}
