package volume_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
)

// TestHalfTable: of a partition table one sound copy is left, or the kernel will not look for it at its next start. The volumes on the drive
// work, and say so until the table is whole again.
func TestHalfTable(t *testing.T) {
	t.Parallel()
	last := func(disk host.Disk) uint64 { return disk.Size() - uint64(disk.BlockSize()) }
	for name, c := range map[string]struct {
		at     func(host.Disk) uint64
		damage func(block []byte)
	}{
		"no protective MBR":    {func(host.Disk) uint64 { return 0 }, func(b []byte) { clear(b) }},
		"a damaged first copy": {func(disk host.Disk) uint64 { return uint64(disk.BlockSize()) }, func(b []byte) { b[16] ^= 0x55 }},
		"a damaged backup":     {last, func(b []byte) { b[16] ^= 0x55 }},
		"no backup":            {last, func(b []byte) { clear(b) }},
	} {
		for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM} {
			onStand(t, func(s *stand) {
				v := s.make("v", rawVolume(b))
				s.must(s.stage(v))
				var was []byte
				put := func(change func([]byte)) {
					s.Helper()
					s.onDrive(s.drive(v).Name, func(disk host.Disk, _ *gpt.Table) {
						block := make([]byte, disk.BlockSize())
						_, err := disk.ReadAt(block, int64(c.at(disk)))
						s.must(err)
						change(block)
						_, err = disk.WriteAt(block, int64(c.at(disk)))
						s.must(err)
					})
					time.Sleep(15 * time.Minute)
				}
				expect := func(when string, found bool) {
					s.Helper()
					if is := s.of(v); strings.Contains(reasons(is.Condition), "PartitionTableDamaged") != found || is.Condition.Abnormal() != found {
						s.Errorf("%s, %v, %s: %q", name, b, when, is.Condition.Message())
					}
				}
				expect("before", false)
				put(func(block []byte) {
					was = append(was, block...)
					c.damage(block)
				})
				expect("damaged", true)
				s.must(s.unstage(v), s.stage(v))
				put(func(block []byte) { copy(block, was) })
				expect("whole again", false)
			})
		}
	}
}

// TestHalfTableAtStart: the damage of a partition table is reported as soon as the daemon has read the drive after a restart.
func TestHalfTableAtStart(t *testing.T) {
	t.Parallel()
	onStand(t, func(s *stand) {
		v := s.make("v", rawVolume(drivebay.BackingPartition))
		s.onDrive(s.drive(v).Name, func(disk host.Disk, _ *gpt.Table) {
			_, err := disk.WriteAt(make([]byte, disk.BlockSize()), int64(disk.Size())-int64(disk.BlockSize()))
			s.must(err)
		})
		var claim drivebay.Selectors
		s.must(claim.UnmarshalText([]byte("all")))
		s.stop()
		s.stop = nil
		s.mgr = drivemgr.New(s.sim, s.st, drivemgr.Options{Claim: claim})
		ctx, cancel := context.WithCancel(s.Context())
		done := make(chan error)
		go func() { done <- s.mgr.Run(ctx) }()
		s.Cleanup(func() { cancel(); <-done })
		s.start()
		for range 5 {
			if is := s.of(v); !strings.Contains(reasons(is.Condition), "PartitionTableDamaged") {
				s.Fatalf("after the start: %q", is.Condition.Message())
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// TestTableBeingWritten: a reading meets the table of a drive while a program writes it, one copy after the other. That is no damage.
func TestTableBeingWritten(t *testing.T) {
	t.Parallel()
	onStand(t, func(s *stand) {
		v := s.make("v", rawVolume(drivebay.BackingPartition))
		time.Sleep(15 * time.Minute)
		s.onDrive(s.drive(v).Name, func(disk host.Disk, _ *gpt.Table) {
			for range 3 {
				block, at := make([]byte, disk.BlockSize()), int64(disk.Size())-int64(disk.BlockSize())
				_, err := disk.ReadAt(block, at)
				s.must(err)
				_, err = disk.WriteAt(make([]byte, len(block)), at)
				s.must(err, s.mgr.Refresh(s.Context()))
				time.Sleep(5 * time.Second)
				_, err = disk.WriteAt(block, at)
				s.must(err)
				time.Sleep(15 * time.Minute)
			}
		})
		if all := s.kinds(v, drivebay.EventVolumeAbnormal); len(all) > 0 || s.of(v).Condition.Abnormal() {
			s.Errorf("%q, %v", all, s.of(v).Condition)
		}
	})
}
