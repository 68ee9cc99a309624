package volume_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume"
)

// rename gives the partition of one volume the name of that of another one, as another program can.
func (s *stand) rename(drive drivebay.Drive, from, to string) {
	s.Helper()
	s.onDrive(drive.Name, func(disk host.Disk, t *gpt.Table) {
		for i := range t.Partitions {
			t.Partitions[i].Name = strings.ReplaceAll(t.Partitions[i].Name, from, to)
		}
		s.must(t.Write(disk))
	})
	time.Sleep(15 * time.Minute)
}

// TestRenamedByHand: another program gives a partition that a record names the name of another volume, which may have a record as well. It is not
// taken in under that name, and nothing of it is written or removed. With its old name back all is as before.
func TestRenamedByHand(t *testing.T) {
	t.Parallel()
	for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive} {
		for _, known := range []bool{false, true} {
			t.Run(fmt.Sprint(b, known), func(t *testing.T) {
				onMachine(t, sameDrives(2), volume.Options{Tick: time.Second}, func(s *stand) {
					v, w := s.make("v", rawVolume(b)), rawVolume(b)
					s.mark(v)
					w.Name, w.Size.Required = "w", 1<<30
					id := drivebay.VolumeID("w")
					if known {
						s.make("w", w)
					}
					drive := s.driveOf(v)
					s.rename(drive, v.ID, id)
					if !known {
						_, err := s.e.CreateVolume(s.Context(), w)
						s.refuses("created under its new name", err, drivebay.ErrUnavailable)
						if f := s.e.Volumes().Found; len(f) != 1 || f[0].ID != id || !strings.Contains(f[0].Next, "the name drivebay-"+v.ID+" back") {
							s.Errorf("found: %+v", f)
						}
						s.notYet("deleted under its new name", s.e.DeleteVolume(s.Context(), id))
					} else {
						s.must(s.e.DeleteVolume(s.Context(), id)) // the other one
					}
					if !s.anywhere(drive.ID, "acknowledged data") || !s.of(v).Condition.Abnormal() {
						t.Fatalf("its data are there: %v; it is %v", s.anywhere(drive.ID, "acknowledged data"), s.of(v).Condition)
					}
					s.rename(drive, id, v.ID)
					if is := s.of(v); is.Condition.Abnormal() {
						t.Errorf("with its old name it is %v", is.Condition)
					}
					s.must(s.stage(v), s.unstage(v))
					s.rename(drive, v.ID, id)
					s.refuses("deleted under its old name", s.e.DeleteVolume(s.Context(), v.ID), drivebay.ErrRefused)
					s.rename(drive, id, v.ID)
					s.must(s.e.DeleteVolume(s.Context(), v.ID))
					s.blank()
				})
			})
		}
	}
}
