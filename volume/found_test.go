package volume_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// forget loses the store: new engines begin with nothing but the configuration.
func (s *stand) forget() {
	s.Helper()
	s.stop()
	s.stop = nil
	var claim drivebay.Selectors
	if err := claim.UnmarshalText([]byte("all")); err != nil {
		s.Fatal(err)
	}
	s.st = store.Memory()
	s.mgr = drivemgr.New(s.sim, s.st, drivemgr.Options{Claim: claim})
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan error)
	mgr := s.mgr
	go func() { done <- mgr.Run(ctx) }()
	s.Cleanup(func() { cancel(); <-done })
	time.Sleep(30 * time.Second)
	s.start()
}

// TestFound: what the store has forgotten is found again on the drives, those who
// use it never noticing.
func TestFound(t *testing.T) {
	t.Parallel()
	spec := smallDrives()
	spec.Drives[0].Count = 6
	onMachine(t, spec, volume.Options{}, func(s *stand) {
		made := map[string]drivebay.Volume{}
		for _, name := range []string{"a drive", "a mirror", "a thin volume", "a linear volume"} { // they want drives that are blank
			made[name] = s.make(name, requests()[name])
		}
		for name, r := range requests() {
			made[name] = s.make(name, r)
		}
		fs := made["ext4 on a partition"]
		s.stage(fs)
		s.forget()
		if n := len(s.e.Volumes().Volumes); n != len(made) {
			s.Fatalf("%d volumes are found, of %d", n, len(made))
		}
		for _, d := range s.mgr.Snapshot().Drives {
			if d.Claim == nil {
				s.Errorf("drive %s is not claimed: %v", d.ID, d.Refusals())
			}
		}
		for name, v := range made {
			is := s.of(v)
			want := drivebay.CSICreated
			if name == "ext4 on a partition" {
				want = drivebay.CSIVolumeReady
			}
			if is.Size != v.Size || is.Mode != v.Mode || is.FSType != v.FSType || is.FSUUID != v.FSUUID || is.CSIStatus != want || is.Location.Partition != v.Location.Partition {
				s.Errorf("%s: made %+v\nfound %+v", name, v, is.Volume)
			}
			r := requests()[name]
			if again := s.make(name, r); again.Name != name || again.Size != v.Size || again.CSIStatus != want {
				s.Errorf("%s: asked for again: %+v", name, again)
			}
		}
		s.unstage(fs)
		for _, v := range made {
			if err := s.e.DeleteVolume(s.Context(), v.ID); err != nil {
				s.Error(err)
			}
		}
		s.blank()
	})
}

// TestFoundHalf: what was half made when its record was lost is never taken for
// sound; asked for again by its name it is made, and it can be removed.
func TestFoundHalf(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		if strings.HasPrefix(name, "xfs") || strings.HasPrefix(name, "btrfs") { // the steps of ext4
			continue
		}
		for after, all := 1, false; !all; after += everyNth {
			k := &killer{}
			for _, again := range []bool{true, false} {
				k.anew(after)
				onMachine(t, smallDrives(), volume.Options{After: k.step}, func(s *stand) {
					r := r
					r.Name, r.Size.Required = name, 1<<30
					_, err := s.e.CreateVolume(s.Context(), r)
					if all = err == nil; all {
						return
					}
					last := k.steps()[len(k.steps())-1]
					s.forget()
					found := s.e.Volumes().Volumes
					if len(found) > 1 || len(found) == 1 && last != "finish" && (found[0].CSIStatus != drivebay.CSIFailed || found[0].State().Before != drivebay.CSICreating) {
						s.Fatalf("%s, after %q: found %+v", name, last, found)
					}
					if again || len(found) == 0 {
						v, err := s.e.CreateVolume(s.Context(), r)
						if err != nil || v.CSIStatus != drivebay.CSICreated || v.Name != name {
							s.Fatalf("%s, after %q: made again: %+v, %v", name, last, v, err)
						}
						found = s.e.Volumes().Volumes
					}
					if err := s.e.DeleteVolume(s.Context(), found[0].ID); err != nil {
						s.Fatalf("%s, after %q: %v", name, last, err)
					}
					s.blank()
					if s.Failed() {
						s.Logf("%s, after %q, again %v", name, last, again)
					}
				})
			}
		}
	}
}

// TestListedAgain: what could not be listed is listed with the next ticks, without
// news of its drive.
func TestListedAgain(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["ext4 on a partition"])
		s.stop()
		s.stop = nil
		s.st = store.Memory()
		s.inject(v.Location.Drives[0], "permission") // to read whose partition it is
		s.start()
		if n := len(s.e.Volumes().Volumes); n != 0 {
			s.Fatalf("%d volumes are found on a drive that cannot be read", n)
		}
		seq := s.mgr.Snapshot().Seq
		s.inject(v.Location.Drives[0], "heal")
		time.Sleep(10 * time.Second)
		if set := s.e.Volumes(); len(set.Volumes) != 1 {
			s.Errorf("%d volumes are found 10 s later, drives at %d, then at %d", len(set.Volumes), seq, s.mgr.Snapshot().Seq)
		}
	})
}

// TestFoundTooLate: what was seen and then deleted is not found, whether or not
// anything else is left beside it.
func TestFoundTooLate(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		for _, alone := range []bool{true, false} {
			onStand(t, func(s *stand) {
				v := s.make("v", r)
				if !alone && r.Class.Backing != drivebay.BackingDrive {
					s.make("beside it", r)
				}
				if name == "a thin volume" {
					_, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
					s.must(err)
				}
				take, err := s.e.Adopting(s.Context())
				s.must(err)
				for _, snap := range s.e.Volumes().Snapshots {
					s.must(s.e.DeleteSnapshot(s.Context(), snap.ID))
				}
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
				left := len(s.e.Volumes().Volumes)
				s.must(take())
				if set := s.e.Volumes(); len(set.Volumes) != left || len(set.Snapshots) > 0 {
					s.Errorf("%s, alone %v: found are %d volumes and %d snapshots, there are %d and none", name, alone, len(set.Volumes), len(set.Snapshots), left)
				}
			})
		}
	}
}

// TestCapacityIsExact: the largest volume can be made, and one piece more cannot.
func TestCapacityIsExact(t *testing.T) {
	t.Parallel()
	for _, spec := range []hostsim.Group{
		{Count: 2, Kind: hostsim.KindNVMe, Size: "20GB"},
		{Count: 3, Kind: hostsim.KindSATAHDD, Size: "31.234GB"}, {Count: 2, Kind: hostsim.KindSASSSD, Size: "12.345GB", Block: 4096},
	} {
		onMachine(t, hostsim.Spec{Drives: []hostsim.Group{spec}}, volume.Options{}, func(s *stand) {
			for name, r := range some(requests()) {
				if !r.Block {
					continue
				}
				for range 3 { // of an empty machine, then of a fuller one
					s.largest(name, r)
				}
				for _, v := range s.e.Volumes().Volumes {
					if err := s.e.DeleteVolume(s.Context(), v.ID); err != nil {
						s.Fatal(err)
					}
				}
				s.blank()
			}
		})
	}
}

// largest holds what is said of the capacity against what can be made, and leaves
// less of it behind.
func (s *stand) largest(name string, r drivebay.VolumeRequest) {
	s.Helper()
	c, err := s.e.Capacity(s.Context(), r.Class)
	if err != nil {
		s.Fatal(err)
	}
	unit := uint64(1 << 20)
	if b := r.Class.Backing; b != drivebay.BackingPartition && b != drivebay.BackingDrive {
		unit = 4 << 20
	}
	if c.Largest == 0 || c.Largest%unit != 0 || c.Available < c.Largest {
		s.Fatalf("%s: capacity %+v", name, c)
	}
	r.Name, r.Size.Required = "more", c.Largest+unit
	if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrNoSpace) && !errors.Is(err, drivebay.ErrRange) { // of an empty machine
		s.Fatalf("%s: one unit more than %+v: %v", name, c, err)
	}
	r.Name, r.Size.Required = "whole", c.Largest
	v, err := s.e.CreateVolume(s.Context(), r)
	if err != nil || v.Size != c.Largest {
		s.Fatalf("%s: %+v: %d bytes, %v", name, c, v.Size, err)
	}
	if err := s.e.DeleteVolume(s.Context(), v.ID); err != nil {
		s.Fatal(err)
	}
	if r.Class.Backing == drivebay.BackingDrive {
		return
	}
	r.Name, r.Size.Required = fmt.Sprint("part", c.Largest), c.Largest/3
	if _, err := s.e.CreateVolume(s.Context(), r); err != nil {
		s.Fatal(err)
	}
}
