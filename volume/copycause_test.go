package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestCopyRefusedWithCause: the drive of a source takes no copy. A copy of the volume or of its snapshot has no other place: the answer names the cause,
// and is a lack of space only where a drive that takes volumes again needs an operator.
func TestCopyRefusedWithCause(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]struct {
		code  error
		cause string
	}{
		"read-only": {drivebay.ErrUnavailable, "write-protected"}, "permission": {drivebay.ErrUnavailable, "health or content is unknown"},
		"shrank": {drivebay.ErrRefused, "the drive shrank"}, "unclaimed": {drivebay.ErrRefused, "`drivebay claim "},
		"cordoned": {drivebay.ErrNoSpace, "it is cordoned"}, "BAD": {drivebay.ErrNoSpace, "its health is BAD"},
	} {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			r := requests()["ext4 on thin"]
			v := s.make("v", r)
			snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
			s.must(err)
			id := v.Location.Drives[0]
			switch fault {
			case "shrank":
				s.resize(id, s.driveOf(v).Size-500<<20)
			case "unclaimed":
				s.claimAll(false)
			case "cordoned":
				s.must(s.mgr.Cordon(s.Context(), id, true))
			case "BAD":
				s.inject(id, "critical-warning")
				s.must(s.mgr.Refresh(s.Context()))
			default:
				s.inject(id, fault)
			}
			for _, wait := range []time.Duration{time.Minute, time.Hour} {
				time.Sleep(wait)
				for name, source := range map[string]drivebay.Source{"copy": {Volume: v.ID}, "copy of the snapshot": {Snapshot: snap.ID}} {
					c := r
					c.Name, c.Source, c.Size.Required = name, source, v.Size
					_, err := s.e.CreateVolume(s.Context(), c)
					if !errors.Is(err, want.code) || !strings.Contains(err.Error(), want.cause) || want.code != drivebay.ErrNoSpace && errors.Is(err, drivebay.ErrNoSpace) {
						t.Errorf("%s: %s: %v", fault, name, err)
					}
				}
			}
		})
	}
}

// TestSnapshotOnReadOnlyDrive: a drive takes no writes. A snapshot of a volume on it is UNAVAILABLE, and no fault of drivebay; it is made once the
// drive takes writes again.
func TestSnapshotOnReadOnlyDrive(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(1), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["ext4 on thin"])
		s.inject(v.Location.Drives[0], "read-only")
		for _, wait := range []time.Duration{0, time.Minute, time.Hour} {
			time.Sleep(wait)
			if _, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID); !errors.Is(err, drivebay.ErrUnavailable) {
				t.Errorf("after %v: %v", wait, err)
			}
		}
		s.inject(v.Location.Drives[0], "heal")
		time.Sleep(time.Minute)
		_, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
		s.must(err)
	})
}

// TestGrowthOfGroupNotOurs: a volume group has lost the tag of drivebay. A growth of its volume is UNAVAILABLE: OUT_OF_RANGE would be final.
func TestGrowthOfGroupNotOurs(t *testing.T) {
	t.Parallel()
	for _, b := range []drivebay.Backing{drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror} {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			v := s.make("v", rawVolume(b))
			s.must(s.byHand("vgchange", "--deltag", "drivebay", v.Location.VG))
			time.Sleep(5 * time.Minute)
			larger := func() error {
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size + 1<<30})
				return err
			}
			if err := larger(); !errors.Is(err, drivebay.ErrUnavailable) || errors.Is(err, drivebay.ErrRange) {
				t.Errorf("%s: %v", b, err)
			}
			s.must(s.byHand("vgchange", "--addtag", "drivebay", v.Location.VG))
			time.Sleep(5 * time.Minute)
			s.must(s.retried(larger))
		})
	}
}
