package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// requests are a volume of every kind.
func requests() map[string]drivebay.VolumeRequest {
	class := func(b drivebay.Backing, fs string) drivebay.Class {
		return drivebay.Class{Backing: b, Wipe: drivebay.WipeDiscard, FSType: fs}
	}
	return map[string]drivebay.VolumeRequest{
		"ext4 on a partition":  {Class: class(drivebay.BackingPartition, "ext4")},
		"xfs on a partition":   {Class: class(drivebay.BackingPartition, "xfs")},
		"btrfs on a partition": {Class: class(drivebay.BackingPartition, "btrfs")},
		"a partition":          {Class: class(drivebay.BackingPartition, "ext4"), Block: true},
		"a drive":              {Class: class(drivebay.BackingDrive, "ext4"), Block: true},
		"a linear volume":      {Class: class(drivebay.BackingLVM, "ext4"), Block: true},
		"xfs on linear":        {Class: class(drivebay.BackingLVM, "xfs")},
		"a thin volume":        {Class: class(drivebay.BackingThin, "ext4"), Block: true},
		"ext4 on thin":         {Class: class(drivebay.BackingThin, "ext4")},
		"a mirror":             {Class: class(drivebay.BackingMirror, "ext4"), Block: true},
		"btrfs on a mirror":    {Class: class(drivebay.BackingMirror, "btrfs")},
	}
}

// requestsOnPartitions are those that need no LVM, and leave room for others.
func requestsOnPartitions() map[string]drivebay.VolumeRequest {
	all := requests()
	for name, r := range all {
		if r.Class.Backing != drivebay.BackingPartition {
			delete(all, name)
		}
	}
	return all
}

func TestCreateDelete(t *testing.T) {
	for name, r := range some(requests()) {
		t.Run(name, func(t *testing.T) {
			onStand(t, func(s *stand) {
				v := s.make(name, r)
				if v.CSIStatus != drivebay.CSICreated || v.Usage != drivebay.VolumeInUse || v.Size < 1<<30 || len(v.Location.Drives) == 0 {
					s.Errorf("made: %+v", v)
				}
				if is := s.of(v); is.Condition.Abnormal() || is.OperationalStatus != drivebay.Operative {
					s.Errorf("it is %v, %v", is.OperationalStatus, is.Condition)
				}
				if again := s.make(name, r); again.Location.Partition != v.Location.Partition {
					s.Errorf("asked for again: %+v", again)
				}
				other := r
				other.Size.Required = v.Size + 1
				other.Name = name
				if _, err := s.e.CreateVolume(s.Context(), other); !errors.Is(err, drivebay.ErrExists) {
					s.Errorf("asked for in another size: %v", err)
				}
				for range 2 {
					if err := s.e.DeleteVolume(s.Context(), v.ID); err != nil {
						s.Fatal(err)
					}
				}
				if _, ok := s.e.Volumes().Get(v.ID); ok {
					s.Error("it is still listed")
				}
				if err := s.mgr.Refresh(s.Context()); err != nil {
					s.Fatal(err)
				}
				time.Sleep(time.Minute)
				for _, d := range s.mgr.Snapshot().Drives {
					if d.Content.Kind != drivebay.ContentBlank || len(d.Uses) > 0 {
						s.Errorf("drive %s is left %v, %v", d.ID, d.Content, d.Uses)
					}
				}
			})
		})
	}
}
