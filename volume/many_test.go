package volume_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Size: "10GB"}}}, volume.Options{}, func(s *stand) {
		fs, raw := requests()["ext4 on a partition"], requests()["a partition"]
		a := s.make("a", fs)
		b := s.make("b", raw)
		grow := func(v drivebay.Volume, r drivebay.SizeRange) (drivebay.Volume, bool, error) {
			return s.e.ExpandVolume(s.Context(), v.ID, r)
		}
		for name, c := range map[string]struct {
			v    drivebay.Volume
			r    drivebay.SizeRange
			want error
		}{
			"another is behind it": {a, drivebay.SizeRange{Required: 9 << 30}, drivebay.ErrRange}, // and has no room elsewhere
			"more than there is":   {b, drivebay.SizeRange{Required: 11 << 30}, drivebay.ErrRange},
			"made smaller":         {a, drivebay.SizeRange{Required: 1 << 20, Limit: 1 << 29}, drivebay.ErrRange},
			"nothing fits":         {b, drivebay.SizeRange{Required: 1<<30 + 1, Limit: 1<<30 + 2}, drivebay.ErrRange},
			"no range":             {b, drivebay.SizeRange{Required: 2, Limit: 1}, drivebay.ErrInvalid},
			"beyond numbers":       {b, drivebay.SizeRange{Required: 1<<64 - 1}, drivebay.ErrRange},
			"large enough":         {a, drivebay.SizeRange{Required: 1 << 20}, nil},
		} {
			v, _, err := grow(c.v, c.r)
			if !errors.Is(err, c.want) || err == nil && v.Size != c.v.Size {
				s.Errorf("%s: %v, %d bytes, want %v", name, err, v.Size, c.want)
			}
			if is := s.of(c.v); is.CSIStatus != drivebay.CSICreated || is.Work != "" {
				s.Errorf("%s has left it %v", name, is.CSIStatus)
			}
		}
		s.must(s.stage(b), s.publish(b, "pod"))
		v, node, err := grow(b, drivebay.SizeRange{Required: 2 << 30})
		if err != nil || node || v.Size != 2<<30 || v.CSIStatus != drivebay.CSIPublished {
			s.Errorf("a block volume in use: %v, %v, node %v", v.CSIStatus, err, node)
		}
		s.must(s.unpublish(b, "pod"), s.unstage(b), s.e.DeleteVolume(s.Context(), b.ID))
		v, node, err = grow(a, drivebay.SizeRange{Required: 3 << 30})
		if err != nil || !node || v.Size != 3<<30 || v.CSIStatus != drivebay.CSIResized {
			s.Errorf("a filesystem: %v, %v, node %v", v.CSIStatus, err, node)
		}
	})
}

// TestRoomToGrow: partitions that are made one after the other can all grow, and what
// cannot be had says so in a way that is not tried again.
func TestRoomToGrow(t *testing.T) {
	t.Parallel()
	onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Size: "20GB"}}}, volume.Options{}, func(s *stand) {
		raw := requests()["a partition"]
		var all []drivebay.Volume
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, s.make(name, raw))
		}
		for _, v := range all {
			if _, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 4 << 30}); err != nil {
				s.Error(err)
			}
		}
		for _, v := range all[:2] {
			s.must(s.stage(v))
		}
		if _, _, err := s.e.ExpandVolume(s.Context(), all[0].ID, drivebay.SizeRange{Required: 5 << 30}); !errors.Is(err, drivebay.ErrRange) {
			s.Errorf("a growth into another volume: %v", err)
		}
		for _, backing := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM, drivebay.BackingThin} {
			r := rawVolume(backing)
			r.Name, r.Size.Required = "huge", 21<<30
			if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrRange) {
				s.Errorf("more than any drive has, as %s: %v", backing, err)
			}
			r.Size.Required = 15 << 30
			if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrNoSpace) {
				s.Errorf("more than is free, as %s: %v", backing, err)
			}
		}
	})
}

// TestInUse: nothing that is mounted is removed, whatever the record says.
func TestInUse(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v))
		if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrBusy) {
			s.Errorf("staged: %v", err)
		}
		if is := s.of(v); is.CSIStatus != drivebay.CSIVolumeReady || is.Condition.Abnormal() {
			s.Errorf("it is %v, %v", is.CSIStatus, is.Condition)
		}
		s.must(s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
	})
}

// TestMany makes volumes of a kind at the same time, and removes them at the same
// time: each gets its place, none has another's, and the last takes along what was
// made for all of them.
func TestMany(t *testing.T) {
	t.Parallel()
	spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 4, Kind: hostsim.KindNVMe, Size: "20GB"}}}
	onMachine(t, spec, volume.Options{}, func(s *stand) {
		for _, name := range []string{"a partition", "a linear volume", "a thin volume", "a mirror", "ext4 on thin"} {
			const n = 8
			var all sync.WaitGroup
			made := make([]drivebay.Volume, n)
			for i := range n {
				all.Go(func() {
					r := requests()[name]
					r.Name, r.Size.Required = fmt.Sprint(name, i), 1<<30
					var err error
					if made[i], err = s.e.CreateVolume(s.Context(), r); err != nil {
						s.Error(err)
					}
				})
			}
			if all.Wait(); s.Failed() {
				return
			}
			used := map[string]uint64{}
			for _, v := range made {
				if is := s.of(v); is.Condition.Abnormal() || is.Work != "" || is.CSIStatus != drivebay.CSICreated {
					s.Errorf("%s is %v, %v", v.Name, is.CSIStatus, is.Condition)
				}
				for _, id := range v.Location.Drives {
					used[id] += v.Size
				}
			}
			for id, size := range used {
				if size > 20e9 {
					s.Errorf("%s: %d bytes of volumes on drive %s", name, size, id)
				}
			}
			for _, v := range made {
				all.Go(func() {
					if err := s.e.DeleteVolume(s.Context(), v.ID); err != nil {
						s.Error(err)
					}
				})
			}
			all.Wait()
			s.blank()
		}
	})
}

// TestRemovalsThatEndTogether: the logical volumes of a group are all removed before any removal
// goes on. One of the removals gives the drives back, and none fails.
func TestRemovalsThatEndTogether(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "a thin volume", "a mirror"} {
		const n = 4
		var removing atomic.Bool
		var removed atomic.Int32
		after := func(_, step string) error {
			if step == "volume" && removing.Load() {
				removed.Add(1)
				for removed.Load() < n {
					time.Sleep(time.Millisecond)
				}
			}
			return nil
		}
		spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindNVMe, Size: "20GB"}}}
		onMachine(t, spec, volume.Options{After: after}, func(s *stand) {
			var made []drivebay.Volume
			for i := range n {
				r := requests()[name]
				r.Size.Required = 1 << 30
				made = append(made, s.make(fmt.Sprint(i), r))
			}
			removing.Store(true)
			var all sync.WaitGroup
			for _, v := range made {
				all.Go(func() {
					if err := s.e.DeleteVolume(s.Context(), v.ID); err != nil {
						s.Error(name, err)
					}
				})
			}
			all.Wait()
			s.blank()
		})
	}
}

// TestMakingOnAHungDrive: a drive that never answers costs who asks for it his time, and
// nobody else anything.
func TestMakingOnAHungDrive(t *testing.T) {
	t.Parallel()
	onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindSASHDD, Serial: "D{n}", Size: "10GB"}}}, volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["ext4 on a partition"])
		sick, _ := s.mgr.Snapshot().Find(v.Location.Drives[0])
		if err := s.sim.Inject(hostsim.Fault{Drive: sick.Serial, Fault: "hang"}); err != nil {
			s.Fatal(err)
		}
		deleted := make(chan error)
		go func() { deleted <- s.e.DeleteVolume(s.Context(), v.ID) }()
		time.Sleep(time.Second)
		if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrPending) {
			s.Errorf("a second call: %v", err)
		}
		before := time.Now()
		other := s.make("other", requests()["xfs on a partition"])
		if took := time.Since(before); other.Location.Drives[0] == sick.ID || took > time.Second {
			s.Errorf("made on %s after %v", other.Location.Drives[0], took)
		}
		if err := <-deleted; !errors.Is(err, drivebay.ErrTimeout) {
			s.Errorf("the hung one: %v", err)
		}
		if is := s.of(v); is.CSIStatus != drivebay.CSIFailed || is.Failure == nil || is.Failure.Cause == "" {
			s.Errorf("it is %v", is.CSIStatus)
		}
		ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
		defer cancel()
		before = time.Now()
		if err := s.e.DeleteVolume(ctx, v.ID); err == nil || time.Since(before) > 6*time.Second {
			s.Errorf("again: %v after %v", err, time.Since(before))
		}
		s.must(s.sim.Inject(hostsim.Fault{Drive: sick.Serial, Fault: "heal"}))
		time.Sleep(5 * time.Minute)
		s.must(s.e.DeleteVolume(s.Context(), v.ID))
	})
}

// TestGoAndCome: while the last volume of a group takes its physical volume along, the
// first one of another group comes to the same drive, and counts on it.
func TestGoAndCome(t *testing.T) {
	t.Parallel()
	spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Size: "20GB"}}}
	for _, name := range []string{"a linear volume", "ext4 on thin"} {
		for _, when := range []string{"group", "kernel without physical volume"} {
			var old string
			var once sync.Once
			var come, came, gone chan bool
			after := func(id, step string) error {
				switch {
				case old == "":
				case id == old && strings.HasPrefix(step, when):
					close(come)
					<-came
				case id != old:
					once.Do(func() { close(came); <-gone })
				}
				return nil
			}
			onMachine(t, spec, volume.Options{After: after}, func(s *stand) {
				come, came, gone = make(chan bool), make(chan bool), make(chan bool)
				v := s.make("old", requests()[name])
				var all sync.WaitGroup
				all.Go(func() {
					<-come
					r := requests()[name]
					r.Name, r.Size.Required = "new", 1<<30
					if _, err := s.e.CreateVolume(s.Context(), r); err != nil {
						s.Error(err)
					}
				})
				old = v.ID
				err := s.e.DeleteVolume(s.Context(), v.ID)
				close(gone)
				all.Wait()
				if s.must(err); len(s.e.Volumes().Volumes) != 1 {
					s.Fatalf("%s, after %s: there are %+v", name, when, s.e.Volumes().Volumes)
				}
				s.must(s.e.DeleteVolume(s.Context(), s.e.Volumes().Volumes[0].ID))
				s.blank()
			})
		}
	}
}

// TestManyOnUsed: several make the same physical volume at the same time where something
// was written before. None clears what another has made by then.
func TestManyOnUsed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "a thin volume"} {
		for range 5 {
			onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Size: "8GB"}}}, volume.Options{}, func(s *stand) {
				d := s.driveOf(s.make("keeps the table", requests()["a partition"]))
				p := s.open(d.Name + "p1")
				size := int64(p.Size())
				p.Close()
				disk := s.open(d.Name)
				for at := int64(1 << 20); at < 8e9-4<<20; at += 1 << 20 {
					if at > size+1<<20 {
						_, err := disk.WriteAt([]byte("SWAPSPACE2"), at+4086)
						s.must(err)
					}
				}
				s.must(disk.Close())
				var all sync.WaitGroup
				for i := range 6 {
					all.Go(func() {
						r := requests()[name]
						r.Name, r.Size.Required = fmt.Sprint(i), 128<<20
						v, err := s.e.CreateVolume(s.Context(), r)
						if err != nil {
							s.Errorf("%s: %v", name, err)
							return
						}
						if err := s.stage(v); err != nil {
							s.Errorf("%s: %v", name, err)
						}
					})
				}
				all.Wait()
			})
		}
	}
}
