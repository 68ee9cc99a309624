package volume_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// TestRemainsSpareTheRecorded: a move of a volume was called off. What it would have left stays in the records. Then LVM shows the volume no
// more (vgcfgrestore of an older backup, lvremove by hand). Its record reserves its bytes: nothing is written there.
func TestRemainsSpareTheRecorded(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "a mirror"} {
		for _, wipe := range everyWipe[1:] {
			k := &killer{}
			onMachine(t, fourSmall(), volume.Options{After: k.step}, func(s *stand) {
				r := requests()[name]
				r.Class.Wipe = wipe
				r.Size.Required = 1 << 30
				v := s.make("v", r)
				s.must(s.stage(v))
				s.withDevice(v, func(dev string) {
					disk := s.open(dev[len("/dev/"):])
					defer disk.Close()
					for at := int64(0); at < int64(v.Size); at += 1 << 20 {
						_, err := disk.WriteAt(bytes.Repeat([]byte("acked!! "), 512), at)
						s.must(err)
					}
				})
				from := v.Location.Drives[0]
				k.anew(0)
				s.must(s.mgr.Operate(s.Context(), from, drivebay.LeaveRelease, ""))
				s.until("it moves", func() bool {
					return slices.ContainsFunc(k.steps(), func(step string) bool { return strings.HasPrefix(step, "move ") })
				})
				s.must(s.mgr.Operate(s.Context(), from, drivebay.LeaveCancel, ""))
				s.until("it is back", func() bool {
					return slices.Equal(s.of(v).Location.Drives, v.Location.Drives) && s.of(v).Usage == drivebay.VolumeInUse
				})
				s.must(s.unstage(v))
				time.Sleep(10 * time.Minute)
				count := func() (n int) {
					for _, id := range v.Location.Drives {
						d, _ := s.mgr.Snapshot().Find(id)
						disk := s.open(d.Name)
						b := make([]byte, 8)
						for at := int64(0); at < int64(d.Size)-(1<<20); at += 1 << 20 {
							if _, err := disk.ReadAt(b, at); err == nil && string(b) == "acked!! " {
								n++
							}
						}
						disk.Close()
					}
					return n
				}
				before := count()
				var devs []string
				for _, id := range v.Location.Drives {
					d, _ := s.mgr.Snapshot().Find(id)
					devs = append(devs, "/dev/"+d.Name+"p1")
				}
				_, err := s.sim.Run(s.Context(), "lvm", "lvremove", "--devices", strings.Join(devs, ","), "--yes", v.Location.VG+"/"+v.Location.LV)
				s.must(err)
				rep, err := lvm.New(s.sim, "").Read(s.Context(), devs)
				s.must(err)
				if rep.LV(v.Location.VG, v.Location.LV) != nil {
					t.Fatal("it is there")
				}
				time.Sleep(time.Hour)
				if after := count(); after != before || before == 0 {
					t.Errorf("%s, wipe %s: of %d pages of a recorded volume that LVM does not show, %d are left; it says: %s", name, wipe, before, after, s.of(v).Condition.Message())
				}
			})
		}
	}
}
