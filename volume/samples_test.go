package volume_test

import (
	"bytes"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/volume"
)

// fill writes old data over a range of a device behind the daemon's back.
func (s *stand) fill(dev string, at int64, n int) {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+dev, false)
	s.must(err)
	_, err = disk.WriteAt(bytes.Repeat([]byte{0x5a}, n), at)
	s.must(err, disk.Sync(), disk.Close())
}

// TestDataBetweenEnds: a drive whose ends are zero, and whose middle has data of no known
// format, is not blank: no capacity, no volume, no write, at once and at the look before the
// first write.
func TestDataBetweenEnds(t *testing.T) {
	t.Parallel()
	for _, b := range few(backings) {
		for _, noticed := range []bool{true, false} {
			onMachine(t, tinyDrives(1), volume.Options{}, func(s *stand) {
				name := s.mgr.Snapshot().Drives[0].Name
				s.fill(name, 500<<20, 40<<20)
				before := s.bytesOf(name)
				if noticed {
					time.Sleep(20 * time.Minute)
					if c, err := s.e.Capacity(s.Context(), rawVolume(b).Class); err != nil || c.Available > 0 {
						t.Errorf("%s: capacity %+v, %v", b, c, err)
					}
				}
				r := rawVolume(b)
				r.Name, r.Size.Required = "new", 64<<20
				if v, err := s.e.CreateVolume(s.Context(), r); err == nil {
					t.Errorf("%s: made at %+v", b, v.Location)
				}
				if !maps.Equal(s.bytesOf(name), before) {
					t.Errorf("%s: the drive was written to", b)
				}
			})
		}
	}
}

// TestEmptiedIsBlank: a drive of ours is blank again after its last volume was deleted, also
// where the data of volumes that are not wiped was, and after whichever step of the deletion
// the daemon was killed.
func TestEmptiedIsBlank(t *testing.T) {
	t.Parallel()
	for _, b := range few(backings) {
		killed := true
		for n := 1; killed && n < 30; n += everyNth {
			k := &killer{}
			onMachine(t, tinyDrives(1), volume.Options{After: k.step}, func(s *stand) {
				v := s.make("old", rawVolume(b))
				d := s.driveOf(v)
				for _, at := range content.Samples(d.Size) {
					s.fill(d.Name, int64(at), 8192)
				}
				k.arm(n)
				killed = s.restarted(s.e.DeleteVolume(s.Context(), v.ID))
				s.until(fmt.Sprintf("%s: it is blank, killed after step %d", b, n), func() bool {
					is, _ := s.mgr.Snapshot().Find(d.ID)
					return is.Content.Kind == drivebay.ContentBlank
				})
				if c, err := s.e.Capacity(s.Context(), rawVolume(b).Class); err != nil || c.Available < 1<<30 {
					t.Errorf("%s, killed after step %d: capacity %+v, %v", b, n, c, err)
				}
			})
		}
	}
}
