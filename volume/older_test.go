package volume_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// TestStoreOlderIsSaid: volumes were made after the backup of the store that the daemon starts
// with; they are taken in, and the store is said to be older. A store that is new says nothing
// of the kind, nor one that knows all there is, nor one that gets volumes with a claim.
func TestStoreOlderIsSaid(t *testing.T) {
	t.Parallel()
	for _, r := range some(namesakes()) {
		for _, c := range []struct {
			name  string
			newer bool
			with  func(s *stand, v drivebay.Volume)
		}{
			{"a backup", true, func(s *stand, v drivebay.Volume) { s.must(s.st.DeleteVolume(v.ID)) }},
			{"the same store", false, func(*stand, drivebay.Volume) {}},
			{"a new store", false, func(s *stand, _ drivebay.Volume) { s.st = store.Memory() }},
		} {
			t.Run(c.name, func(t *testing.T) {
				onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
					v := s.make("v", r)
					time.Sleep(5 * time.Minute)
					s.restart(func() { c.with(s, v) })
					time.Sleep(2 * time.Minute)
					if got := slices.Contains(s.e.Newer(), v.ID); got != c.newer || len(s.e.Newer()) > 1 {
						t.Errorf("%s: newer than the store: %v", c.name, s.e.Newer())
					}
					if s.of(v).CSIStatus != drivebay.CSICreated {
						t.Errorf("%s: it is %v", c.name, s.of(v).CSIStatus)
					}
					s.start()
					if len(s.e.Newer()) > 0 {
						t.Errorf("%s: after another start: %v", c.name, s.e.Newer())
					}
				})
			})
		}
	}
	t.Run("a claim", func(t *testing.T) {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			s.make("v", drivebay.VolumeRequest{})
			s.claimAll(false)
			s.restart(func() { s.st = store.Memory() })
			time.Sleep(10 * time.Minute)
			s.start()
			s.claimAll(true)
			if s.until("it is taken in", func() bool { return len(s.e.Volumes().Volumes) == 1 }); len(s.e.Newer()) > 0 {
				t.Errorf("newer than the store: %v", s.e.Newer())
			}
		})
	})
}

// TestDeletedSince: an older store says that a volume is there that was deleted since. Where
// LVM does not show that it is gone, Delete is UNAVAILABLE and names a way out that leads out,
// whether anything else is on the machine or not.
func TestDeletedSince(t *testing.T) {
	t.Parallel()
	for _, backing := range few(allBackings) {
		for _, alone := range []bool{true, false} {
			t.Run(fmt.Sprint(backing, " alone ", alone), func(t *testing.T) {
				onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
					class := drivebay.Class{Backing: backing, Wipe: drivebay.WipeZero, FSType: "ext4"}
					if !alone {
						other := class
						if backing == drivebay.BackingDrive {
							other.Backing = drivebay.BackingPartition
						}
						s.make("other", drivebay.VolumeRequest{Class: other})
					}
					before := s.free(drivebay.VolumeRequest{Class: class})
					v := s.make("v", drivebay.VolumeRequest{Class: class})
					all, err := s.st.Volumes()
					s.must(err, s.e.DeleteVolume(s.Context(), v.ID))
					s.restart(func() { s.must(s.st.PutVolume(all[v.ID])) })
					time.Sleep(11 * time.Minute)
					if is := s.of(v); is.OperationalStatus != drivebay.Missing {
						t.Errorf("it is %v: %s", is.OperationalStatus, is.Condition.Message())
					}
					switch err := s.e.DeleteVolume(s.Context(), v.ID); {
					case err == nil && v.Location.VG != "" && !alone: // LVM shows all of the group
					case !errors.Is(err, drivebay.ErrUnavailable) || !strings.Contains(err.Error(), "drivebay volume forget"):
						t.Errorf("deleted: %v", err)
					default:
						s.must(s.e.ForgetVolume(s.Context(), v.ID), s.e.DeleteVolume(s.Context(), v.ID))
					}
					if after := s.free(drivebay.VolumeRequest{Class: class}); after != before {
						t.Errorf("%d bytes were free before it was made, %d are when it is forgotten", before, after)
					}
				})
			})
		}
	}
}
