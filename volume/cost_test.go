package volume_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

var manyDrives = hostsim.Spec{Drives: []hostsim.Group{{Count: 25, Kind: hostsim.KindNVMe, Size: "400GB"}}}

// multiply remembers many volumes, staged and published. Only the one that they
// are made of has a partition: the others are mounts of it, which for whoever
// looks after them comes to the same.
func multiply(tb testing.TB, sim *hostsim.Machine, mgr *drivemgr.Manager, st *store.Mem, v drivebay.Volume, volumes int) (ids []string) {
	tb.Helper()
	records, err := st.Volumes()
	if err != nil {
		tb.Fatal(err)
	}
	for i := range volumes {
		r := records[v.ID]
		r.Volume.ID = fmt.Sprintf("v%06d", i)
		r.Volume.Location.Drives = []string{mgr.Snapshot().Drives[i%25].ID}
		p := r.Volume.Publications[0]
		for _, path := range []string{staging(r.Volume), target(r.Volume, "pod")} {
			if err := errors.Join(sim.MakeFolder(place(path)), sim.Bind(tb.Context(), place(staging(v)), place(path), false)); err != nil {
				tb.Fatal(err)
			}
		}
		p.Path = staging(r.Volume)
		pod := drivebay.Publication{Path: target(r.Volume, "pod"), Device: p.Device, Access: p.Access, Flags: p.Flags}
		r.Volume.Publications, r.Volume.CSIStatus = []drivebay.Publication{p, pod}, drivebay.CSIPublished
		if err := st.PutVolume(r); err != nil {
			tb.Fatal(err)
		}
		ids = append(ids, r.Volume.ID)
	}
	return ids
}

// crowd is an engine with many volumes on the wall's clock, for benchmarks.
func crowd(b *testing.B, volumes int) (e *volume.Engine, sim *hostsim.Machine, ids []string) {
	b.Helper()
	must := func(errs ...error) {
		b.Helper()
		if err := errors.Join(errs...); err != nil {
			b.Fatal(err)
		}
	}
	sim, err := hostsim.New(manyDrives)
	must(err)
	var claim drivebay.Selectors
	must(claim.UnmarshalText([]byte("all")))
	st := store.Memory()
	mgr := drivemgr.New(sim, st, drivemgr.Options{Claim: claim})
	ctx, cancel := context.WithCancel(context.Background())
	first, stop := context.WithCancel(ctx)
	ended := make(chan error, 3)
	go func() { ended <- mgr.Run(ctx) }()
	run := func(ctx context.Context) {
		e, err = volume.New(sim, mgr, st, nil, volume.Options{Tick: time.Hour})
		must(err)
		go func() { ended <- e.Run(ctx) }()
	}
	b.Cleanup(func() {
		cancel()
		sim.Close()
		must(<-ended, <-ended, <-ended)
	})
	run(first)
	var v drivebay.Volume
	for range 200 { // until the drives have been looked at
		r := drivebay.VolumeRequest{Name: "v", Size: drivebay.SizeRange{Required: 1 << 30}, Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: "ext4"}}
		if v, err = e.CreateVolume(ctx, r); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	must(err, e.StageVolume(ctx, drivebay.StageRequest{Volume: v.ID, Path: staging(v)}))
	stop()
	ids = multiply(b, sim, mgr, st, v, volumes)
	run(ctx)
	for len(e.Volumes().Volumes) < volumes {
		time.Sleep(20 * time.Millisecond)
	}
	for range 10 { // probed, each of them
		e.Tick(ctx)
		time.Sleep(50 * time.Millisecond)
	}
	return e, sim, ids
}

// TestCostOfTick: a tick in which nothing happens costs next to nothing for each
// volume, however many there are. Allocations stand for time: they are the same
// on every machine.
func TestCostOfTick(t *testing.T) {
	cost := func(volumes int) (each float64) {
		onMachine(t, manyDrives, volume.Options{Tick: time.Minute}, func(s *stand) {
			v := s.make("v", drivebay.VolumeRequest{})
			s.must(s.stage(v))
			multiply(s, s.sim, s.mgr, s.st, v, volumes)
			s.start()
			time.Sleep(5 * time.Minute)
			tick := func() { s.e.Tick(s.Context()); synctest.Wait() }
			tick() // what is due now is done
			mounts := testing.AllocsPerRun(20, func() { _, _ = s.sim.Mounts(s.Context()) })
			each = (testing.AllocsPerRun(20, tick) - mounts) / float64(volumes)
		})
		return each
	}
	few, many := cost(50), cost(400)
	t.Logf("a tick allocates %.2f times for each of 50 volumes and %.2f for each of 400", few, many)
	if slope := math.Log(many/few) / math.Log(400.0/50); many > 4 || slope > 0.1 {
		t.Errorf("slope %.2f", slope)
	}
}

func BenchmarkIdleTick(b *testing.B) {
	for _, n := range []int{125, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e, sim, _ := crowd(b, n)
			b.Run("all", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					e.Tick(b.Context())
				}
			})
			b.Run("mount table of the simulator", func(b *testing.B) {
				for b.Loop() {
					_, _ = sim.Mounts(b.Context())
				}
			})
		})
	}
}

func BenchmarkStats(b *testing.B) {
	for _, n := range []int{125, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e, _, ids := crowd(b, n)
			b.ResetTimer()
			b.SetParallelism(8) // 16 on two cores
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					v := drivebay.Volume{ID: ids[i%len(ids)]}
					if _, err := e.Stats(b.Context(), drivebay.StatsRequest{Volume: v.ID, Path: target(v, "pod"), Staging: staging(v)}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
