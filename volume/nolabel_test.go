package volume_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestLabelKeepsPartition: the label of a physical volume turns up, sound, damaged or
// unreadable, after the last volume group of a drive was removed. The partition stays in
// the table, with every byte.
func TestLabelKeepsPartition(t *testing.T) {
	t.Parallel()
	for name, label := range map[string]string{
		"sound": "LABELONE\x01\x00\x00\x00\x00\x00\x00\x00", "one wrong bit": "LABELONF\x01\x00\x00\x00\x00\x00\x00\x00", "no word of it": "x", "unreadable": "",
	} {
		for at := int64(0); at < 4; at += 3 {
			t.Run(name, func(t *testing.T) {
				var do atomic.Pointer[func()]
				onMachine(t, tinyDrives(1), volume.Options{After: func(_, step string) error {
					if f := do.Load(); step == "group" && f != nil {
						(*f)()
					}
					return nil
				}}, func(s *stand) {
					v := s.make("last", rawVolume(drivebay.BackingLVM))
					d := s.driveOf(v)
					var p gpt.Partition
					s.onDrive(d.Name, func(_ host.Disk, t *gpt.Table) { p = t.Partitions[0] })
					f := func() {
						if label == "" {
							s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "unreadable", Args: map[string]string{"sector": fmt.Sprint(p.Start/512 + uint64(at)), "n": "1"}}))
							return
						}
						disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+d.Name, false)
						s.must(err)
						_, err = disk.WriteAt([]byte(label), int64(p.Start)+512*at)
						s.must(err, disk.Close())
					}
					do.Store(&f)
					if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil {
						t.Error("the volume is deleted, and its partition with what turned up")
					}
					do.Store(nil)
					s.start()
					time.Sleep(10 * time.Minute)
					s.onDrive(d.Name, func(disk host.Disk, table *gpt.Table) {
						if len(table.Partitions) != 1 || table.Partitions[0].GUID != p.GUID {
							t.Errorf("the table has %+v", table.Partitions)
						}
						b := make([]byte, len(label))
						if _, err := disk.ReadAt(b, int64(p.Start)+512*at); label != "" && (err != nil || string(b) != label) {
							t.Errorf("it reads %q, %v", b, err)
						}
					})
				})
			})
		}
	}
}

// TestMoveWithoutPhysicalVolume: LVM loses sight of the physical volume that a group
// moves off, in the middle of the move. Nothing of it is moved, and its drive is not taken
// for empty.
func TestMoveWithoutPhysicalVolume(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "ext4 on thin"} {
		for after := 1; after <= 8; after += everyNth {
			k := &killer{}
			onMachine(t, sameDrives(2), volume.Options{After: k.step}, func(s *stand) {
				_, idle := s.twoOf(name)
				old := s.driveOf(idle)
				k.anew(after)
				s.must(s.mgr.Operate(s.Context(), old.ID, drivebay.LeaveRelease, ""))
				for n := 0; n < 600 && !k.dead(); n++ {
					time.Sleep(200 * time.Millisecond)
				}
				steps := k.steps()
				s.stop()
				s.stop = nil
				var p gpt.Partition
				there := false
				s.onDrive(old.Name, func(_ host.Disk, t *gpt.Table) {
					if there = len(t.Partitions) == 1; there {
						p = t.Partitions[0]
					}
				})
				s.flip(old.Name, int64(p.Start)+512, 1)
				k.arm(0)
				s.start()
				time.Sleep(20 * time.Minute)
				s.onDrive(old.Name, func(_ host.Disk, t *gpt.Table) {
					if there && (len(t.Partitions) != 1 || t.Partitions[0].GUID != p.GUID) {
						s.Errorf("%s, after %v: the table of the old drive has %+v", name, steps, t.Partitions)
					}
				})
				d, _ := s.mgr.Snapshot().Find(old.ID)
				if d.Usage == drivebay.UsageReleased {
					s.Errorf("%s, after %v: the old drive is released", name, steps)
				}
			})
		}
	}
}
