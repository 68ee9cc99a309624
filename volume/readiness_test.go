package volume_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestReadyAfterFirstLook: with all records lost the engine is not ready before the volumes
// on the drives have records, and is ready soon after; also when one drive is slow.
func TestReadyAfterFirstLook(t *testing.T) {
	t.Parallel()
	for _, backing := range allBackings {
		for _, slow := range []time.Duration{0, 100 * time.Millisecond} {
			t.Run(fmt.Sprint(backing, " ", slow), func(t *testing.T) {
				spec := smallDrives()
				spec.Without = []string{"udev"}
				onMachine(t, spec, volume.Options{}, func(s *stand) {
					r := partitionOf(1 << 30)
					r.Class.Backing = backing
					v := s.make("kept", r)
					if slow > 0 {
						serial := s.drive(v).Serial
						s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "slow", Args: hostsim.Args{"delay": slow.String()}}))
						defer func() {
							s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "heal"}))
							time.Sleep(time.Minute)
						}()
					}
					s.reborn()
					for range 6000 {
						why, ready := s.e.Unread()
						if ready && !s.recorded(v) {
							s.Fatalf("ready before the volume has a record; unread: %v", why)
						}
						if ready {
							break
						}
						time.Sleep(5 * time.Millisecond)
					}
					if why, ready := s.e.Unread(); !ready || len(why) > 0 {
						s.Errorf("after 30 s: ready %v, unread: %v", ready, why)
					}
				})
			})
		}
	}
}

// TestReadyWithoutDrive: a drive that hangs or fails holds readiness back for seconds, is
// named, and its volumes stay unavailable; ready is not taken back.
func TestReadyWithoutDrive(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"hang", "eio"} {
		for _, backing := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM} {
			t.Run(fmt.Sprint(fault, " ", backing), func(t *testing.T) {
				onMachine(t, fourDrives, volume.Options{}, func(s *stand) {
					r := partitionOf(1 << 30)
					r.Class.Backing = backing
					v := s.make("kept", r)
					d := s.drive(v)
					s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: fault}))
					defer func() { s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "heal"})) }()
					s.reborn()
					if why, ready := s.e.Unread(); ready {
						s.Fatalf("ready at once; unread: %v", why)
					}
					time.Sleep(17 * time.Second)
					for range 10 {
						why, ready := s.e.Unread()
						if !ready || !strings.Contains(strings.Join(why, "\n"), d.ID) {
							s.Fatalf("ready %v, unread: %v", ready, why)
						}
						if err := s.e.DeleteVolume(s.Context(), v.ID); !askedAgain(err) {
							s.Fatalf("delete: %v, want unavailable", err)
						}
						time.Sleep(10 * time.Second)
					}
				})
			})
		}
	}
}
