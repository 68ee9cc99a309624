package volume_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestFilesystemErrorBeside: an error that a filesystem has found in what it read is no failed request of the drive. It is a finding of the
// volume with that filesystem, and ends with its repair; a volume beside it on the drive is sound.
func TestFilesystemErrorBeside(t *testing.T) {
	t.Parallel()
	for fs, line := range map[string]string{
		"ext4":  "",
		"xfs":   "XFS (%s): Metadata CRC error detected at xfs_agf_read_verify+0xd3/0x100 [xfs], xfs_agf block 0x1 ",
		"btrfs": "BTRFS error (device %s): bdev /dev/sda1 errs: wr 0, rd 0, flush 0, corrupt 1, gen 0",
	} {
		onMachine(t, sameDrives(1), volume.Options{}, func(s *stand) {
			v, beside := s.make("v", ofType(fs)), s.make("beside", drivebay.VolumeRequest{})
			s.must(s.stage(v), s.publish(v, "pod"), s.stage(beside), s.publish(beside, "pod"))
			time.Sleep(time.Minute)
			if line == "" {
				s.inject(staging(v), "fs-errors")
			} else {
				s.sim.WriteKernelLog(fmt.Sprintf(line, s.device(v)))
				if fs == "btrfs" { // which logs both
					s.sim.WriteKernelLog(fmt.Sprintf("BTRFS warning (device %s): csum failed root 5 ino 257 off 0 csum 0x98f94189 expected csum 0x94e2a5fc mirror 1", s.device(v)))
				}
			}
			s.says(fs+" has found an error", v, "FilesystemCorruption")
			for _, of := range []drivebay.Volume{v, beside} {
				if is := reasons(s.of(of).Condition); strings.Contains(is, "RWIOError") {
					s.Errorf("%s has found an error, and of %s it is said: %s", fs, of.Name, is)
				}
			}
			if fs == "btrfs" { // which is never repaired
				return
			}
			s.must(s.unpublish(v, "pod"), s.unstage(v))
			_, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID, Fsck: true})
			s.must(err, s.stage(v))
			time.Sleep(10 * time.Minute)
			for _, of := range []drivebay.Volume{v, beside} {
				if is := reasons(s.of(of).Condition); strings.ReplaceAll(is, "DiskDegrading", "") != "" { // the count of ext4 is one of the drive for a while
					s.Errorf("%s is repaired, and of %s it is said: %s", fs, of.Name, is)
				}
			}
		})
	}
}
