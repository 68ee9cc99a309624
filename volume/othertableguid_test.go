package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume"
)

// TestTableGUIDOfAnotherDrive: a drive has the table GUID of another drive: it was copied, its original was pulled and the records are lost, or
// another program changed the GUID (`sgdisk --randomize-guids`). Its last volume can be deleted, and the drive is blank afterwards.
func TestTableGUIDOfAnotherDrive(t *testing.T) {
	t.Parallel()
	for _, b := range backings {
		t.Run(string(b), func(t *testing.T) {
			onMachine(t, tinyDrives(2), volume.Options{}, func(s *stand) {
				v := s.make("v", rawVolume(b))
				s.mark(v)
				from, to := s.driveOf(v), s.other(v)
				s.clone(from.Name, to.Name)
				s.inject(from.ID, "vanish")
				s.forget()
				time.Sleep(15 * time.Minute)
				if is := s.of(v); is.Location.Drives[0] != to.ID {
					t.Fatalf("it is on %v", is.Location.Drives)
				}
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
				s.blank()
			})
		})
		t.Run("changed by another program, "+string(b), func(t *testing.T) {
			onMachine(t, tinyDrives(1), volume.Options{}, func(s *stand) {
				v := s.make("v", rawVolume(b))
				s.onDrive(s.driveOf(v).Name, func(disk host.Disk, table *gpt.Table) {
					table.GUID = "7a1f6b58-9f1c-4b5e-8a51-6d2e1c0a7e99"
					s.must(table.Write(disk))
				})
				time.Sleep(15 * time.Minute)
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
				s.blank()
			})
		})
	}
}
