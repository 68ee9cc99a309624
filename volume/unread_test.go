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

// reborn replaces the daemon by one that remembers nothing: records of volumes and drives
// are lost. The new one has just started when reborn returns.
func (s *stand) reborn() {
	s.Helper()
	s.stop()
	s.stop = nil
	s.newDaemon(store.Memory())
}

// newDaemon replaces the daemon by one over a store, and waits for nothing.
func (s *stand) newDaemon(st *store.Mem) {
	s.Helper()
	var claim drivebay.Selectors
	s.must(claim.UnmarshalText([]byte("all")))
	s.st = st
	s.mgr = drivemgr.New(s.sim, st, drivemgr.Options{Claim: claim, Tick: s.opt.Tick})
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan error)
	s.begin() // a daemon has its engine before the manager lists the drives
	go func() { done <- s.mgr.Run(ctx) }()
	stop := s.stop
	s.stop = func() {
		stop()
		cancel()
		s.must(<-done)
	}
}

func (s *stand) recorded(v drivebay.Volume) bool {
	all, err := s.st.Volumes()
	s.must(err)
	_, is := all[v.ID]
	return is
}

func partitionOf(size uint64) drivebay.VolumeRequest {
	return drivebay.VolumeRequest{Block: true, Size: drivebay.SizeRange{Required: size}, Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: "ext4"}}
}

var allBackings = []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive, drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror}

// TestUnknownIsNotAbsent: with all records lost, no call takes a volume for one that does
// not exist before the drives were read, and it is the same volume afterwards.
func TestUnknownIsNotAbsent(t *testing.T) {
	t.Parallel()
	early := 0 // calls before the volume was known; a busy processor may leave none for one of the machines
	for i, backing := range append(allBackings, allBackings...) {
		spec := smallDrives()
		if i < len(allBackings) { // nothing outside of the drives tells the names of partitions
			spec.Without = []string{"udev"}
		}
		onMachine(t, spec, volume.Options{}, func(s *stand) {
			r := partitionOf(1 << 30)
			r.Class.Backing = backing
			v := s.make("kept", r)
			s.reborn()
			for range 400 {
				_, known := s.e.Volumes().Get(v.ID)
				err := s.e.DeleteVolume(s.Context(), "aaaaaaaaaaaaaaaaaaaaaaaaaa") // none of ours, and not known to be none yet
				if !known {
					if err == nil {
						if errors.Is(s.e.Missing(v.ID), drivebay.ErrNotFound) && !s.recorded(v) {
							s.Fatalf("%s: DeleteVolume of an unknown id: OK before the volume on the drive is known", backing)
						}
					} else if early++; !errors.Is(err, drivebay.ErrUnavailable) {
						s.Fatalf("%s: DeleteVolume of an unknown id: %v, want unavailable", backing, err)
					}
					for what, err := range map[string]error{"stage": s.stage(v), "publish": s.publish(v, "pod"), "missing": s.e.Missing(v.ID)} {
						if errors.Is(err, drivebay.ErrNotFound) && !errors.Is(err, drivebay.ErrUnavailable) && !s.recorded(v) {
							s.Fatalf("%s: %s: %v, want unavailable", backing, what, err)
						}
					}
				}
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(time.Minute)
			if err := s.e.DeleteVolume(s.Context(), "aaaaaaaaaaaaaaaaaaaaaaaaaa"); err != nil {
				s.Errorf("%s: DeleteVolume of an unknown id when all drives are read: %v", backing, err)
			}
			if is := s.of(v); is.Location.Drives[0] != v.Location.Drives[0] {
				s.Errorf("%s: the volume was on %v, now on %v", backing, v.Location, is.Location)
			}
		})
	}
	if early == 0 {
		t.Error("the volume was always known before the first call")
	}
}

// TestUnreadDrive: with all records lost and the drive of a volume not readable, Delete and
// Create of the volume are refused until the drive is read; volumes of other drives are
// served.
func TestUnreadDrive(t *testing.T) {
	t.Parallel()
	for i, backing := range append(allBackings[:4:4], allBackings[:4]...) {
		spec := fourDrives
		if i < 4 {
			spec.Without = []string{"udev"}
		}
		for _, fault := range []string{"hang", "eio"} {
			t.Run(fmt.Sprint(backing, " ", fault, spec.Without), func(t *testing.T) {
				onMachine(t, spec, volume.Options{}, func(s *stand) {
					r := partitionOf(1 << 30)
					r.Class.Drives = drivebay.TypeNVMe
					other := s.make("other", r)
					r.Class.Backing, r.Class.Drives = backing, drivebay.TypeHDD
					v := s.make("kept", r)
					serial := s.drive(v).Serial
					s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: fault}))
					defer func() { s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "heal"})) }()
					s.reborn()
					for range 40 {
						time.Sleep(time.Duration(500+len(fault)) * time.Millisecond)
						s.unavailable(v, r)
					}
					time.Sleep(10 * time.Minute)
					s.unavailable(v, r)
					if err := s.stage(other); err != nil {
						s.Errorf("a volume of another drive: %v", err)
					}
					s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "heal"}))
					time.Sleep(90 * time.Second)
					r.Name = "kept"
					again, err := s.e.CreateVolume(s.Context(), r)
					if err != nil || again.Location.Drives[0] != v.Location.Drives[0] || again.Location.Partition != v.Location.Partition || again.Location.LV != v.Location.LV {
						s.Errorf("created again: %v on %v, was on %v", err, again.Location, v.Location)
					}
				})
			})
		}
	}
}

// unavailable holds all calls for a volume that may be on an unread drive against that.
func (s *stand) unavailable(v drivebay.Volume, r drivebay.VolumeRequest) {
	s.Helper()
	r.Name = v.Name
	_, created := s.e.CreateVolume(s.Context(), r)
	_, stats := s.stats(v, target(v, "pod"))
	_, _, grown := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
	_, healed := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID})
	for what, err := range map[string]error{"delete": s.e.DeleteVolume(s.Context(), v.ID), "create": created, "stage": s.stage(v), "stats": stats, "expand": grown,
		"heal": healed, "get": s.e.Missing(v.ID), "list": s.e.Listed(), "delete snapshot": s.e.DeleteSnapshot(s.Context(), v.ID)} {
		if !errors.Is(err, drivebay.ErrUnavailable) {
			s.Fatalf("%s: %v, want unavailable", what, err)
		}
	}
}

// TestUnreadIsNotMissing: a daemon that starts while a drive fails its reads does not say
// that the volumes on it were removed, and serves them soon after the drive answers.
func TestUnreadIsNotMissing(t *testing.T) {
	t.Parallel()
	for _, without := range [][]string{nil, {"udev"}} {
		for _, fault := range []string{"eio", "hang"} {
			spec := smallDrives()
			spec.Without = without
			onMachine(t, spec, volume.Options{}, func(s *stand) {
				v := s.make("kept", partitionOf(1<<30))
				serial := s.drive(v).Serial
				s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: fault}))
				defer func() { s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "heal"})) }()
				s.stop()
				s.stop = nil
				s.newDaemon(s.st)
				for range 30 {
					time.Sleep(time.Second)
					if set := s.e.Volumes(); set.Seq > 0 {
						if is := s.of(v); is.OperationalStatus == drivebay.Missing || strings.Contains(reasons(is.Condition), "VolumeNotFound") {
							s.Fatalf("%s: %v: %s", fault, is.OperationalStatus, is.Condition.Message())
						}
					}
				}
				if is := s.of(v); !is.Condition.Abnormal() {
					s.Errorf("%s: nothing stands against the volume", fault)
				}
				if without != nil {
					if err := s.stage(v); !errors.Is(err, drivebay.ErrUnavailable) {
						s.Errorf("%s: stage: %v, want unavailable", fault, err)
					}
				}
				s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "heal"}))
				time.Sleep(15 * time.Second)
				if err := s.stage(v); err != nil {
					s.Errorf("%s: stage 15 s after the drive answers: %v", fault, err)
				}
			})
		}
	}
}

// TestReadAfterDelete: a drive that loses its last volume is blank for placement within
// seconds, at whatever moment the drive was read in between.
func TestReadAfterDelete(t *testing.T) {
	t.Parallel()
	for _, backing := range allBackings {
		onMachine(t, smallDrives(), volume.Options{Tick: 20 * time.Second}, func(s *stand) {
			r := partitionOf(1 << 30)
			r.Class.Backing = backing
			v := s.make("short", r)
			time.Sleep(20 * time.Second)
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
			time.Sleep(5 * time.Second)
			for _, id := range v.Location.Drives {
				if d, _ := s.mgr.Snapshot().Find(id); d.Content.Kind != drivebay.ContentBlank {
					s.Errorf("%s: drive %s is %v: %v", backing, id, d.Content.Kind, d.Refusals())
				}
			}
		})
	}
}
