package volume_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume"
)

// TestRemovalSparesTheNextGroup: the removal of a mirror waits for one drive, and a new volume uses the other one. The removal ends once its drive
// can be used, and writes nothing to the physical volume of the new one: also if LVM does not see that because its label is erased.
func TestRemovalSparesTheNextGroup(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"staged", "unstaged", "erased label"} {
		t.Run(state, func(t *testing.T) {
			var removed func()
			after := func(_, step string) error {
				if step == "volume" && removed != nil {
					removed()
					removed = nil
				}
				return nil
			}
			onMachine(t, nvmeDrives(3), volume.Options{After: after}, func(s *stand) {
				v := s.make("v", requests()["a mirror"])
				d := s.driveOf(v)
				var undo func()
				removed = func() { undo = s.zap(d) }
				for i := range 2 {
					if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil || !strings.Contains(err.Error(), "unused group") {
						s.Fatalf("deleted without its drive: %v", err)
					}
					if i == 0 { // the kernel reads the table, and has no partition any more
						s.withDisk(d.Name, func(disk host.Disk) (int, error) { return 0, disk.RemovePartition(1) })
					}
					time.Sleep(5 * time.Minute)
				}
				r := rawVolume(drivebay.BackingMirror)
				w := s.make("w", r)
				i := slices.IndexFunc(w.Location.Drives, func(id string) bool { return slices.Contains(v.Location.Drives, id) })
				if i < 0 || slices.Contains(w.Location.Drives, d.ID) {
					s.Fatalf("the new volume is on %v, the first one on %v", w.Location.Drives, v.Location.Drives)
				}
				both, _ := s.mgr.Snapshot().Find(w.Location.Drives[i])
				s.must(s.stage(w))
				s.word(w, "acknowledged")
				if state != "staged" {
					s.must(s.unstage(w))
				}
				label := make([]byte, 1<<20)
				s.withDisk(both.Name+"p1", func(disk host.Disk) (int, error) { return disk.ReadAt(label, 0) })
				if state == "erased label" {
					s.eraseFront(both.Name + "p1")
				}
				before := s.bytesOf(both.Name)
				undo()
				s.partprobe(d)
				time.Sleep(2 * time.Minute)
				err := s.e.DeleteVolume(s.Context(), v.ID)
				if state != "erased label" {
					s.must(err)
				} else if err != nil && !errors.Is(err, drivebay.ErrUnavailable) && !errors.Is(err, drivebay.ErrRefused) {
					s.Error(err)
				}
				if !maps.Equal(before, s.bytesOf(both.Name)) {
					s.Errorf("the removal wrote to the physical volume of the next volume (%v)", err)
				}
				if state == "erased label" {
					s.withDisk(both.Name+"p1", func(disk host.Disk) (int, error) { return disk.WriteAt(label, 0) })
					time.Sleep(2 * time.Minute)
					s.must(s.e.DeleteVolume(s.Context(), v.ID), s.stage(w))
				}
				s.must(s.unstage(w), s.stage(w), s.unstage(w), s.e.DeleteVolume(s.Context(), w.ID))
			})
		})
	}
}

// zap erases the partition table of a drive behind the daemon's back, and returns what puts it back.
func (s *stand) zap(d drivebay.Drive) (undo func()) {
	s.Helper()
	const first, last = 34 * 512, 33 * 512
	was := map[int64][]byte{}
	each := func(f func(disk host.Disk, at int64, n int)) {
		disk := s.open(d.Name)
		defer disk.Close()
		f(disk, 0, first)
		f(disk, int64(disk.Size())-last, last)
		s.must(disk.Sync())
	}
	each(func(disk host.Disk, at int64, n int) {
		was[at] = make([]byte, n)
		_, err := disk.ReadAt(was[at], at)
		s.must(err)
		_, err = disk.WriteAt(make([]byte, n), at)
		s.must(err)
	})
	return func() {
		each(func(disk host.Disk, at int64, _ int) {
			_, err := disk.WriteAt(was[at], at)
			s.must(err)
		})
	}
}

// withDisk changes a device, or reads it, behind the daemon's back.
func (s *stand) withDisk(device string, f func(host.Disk) (int, error)) {
	s.Helper()
	disk := s.open(device)
	defer disk.Close()
	_, err := f(disk)
	s.must(err, disk.Sync())
}
