package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
	"github.com/drivebay/drivebay/volume/internal/groups"
)

// halfRemoved calls f with volumes whose removal was cut short after each of its steps, when their records are lost. made is the record
// of the removal.
func halfRemoved(t *testing.T, some map[string]drivebay.VolumeRequest, f func(s *stand, v drivebay.Volume, r drivebay.VolumeRequest, made drivebay.VolumeRecord)) {
	t.Helper()
	for name, r := range some {
		r.Class.Wipe = drivebay.WipeNone
		for after, all := 1, false; !all; after += everyNth {
			k := &killer{}
			t.Run(name, func(t *testing.T) {
				onMachine(t, smallDrives(), volume.Options{After: k.step}, func(s *stand) {
					v := s.make(name, r)
					if r.Block {
						s.must(s.stage(v))
						s.strewn(v)
						s.must(s.unstage(v))
					} else {
						s.hasMark(v, true)
					}
					k.anew(after)
					err := s.e.DeleteVolume(s.Context(), v.ID)
					if all = err == nil; all {
						return
					}
					s.Logf("after %q", k.steps()[after-1])
					k.arm(0)
					made := s.record(v)
					s.forget()
					f(s, v, r, made)
				})
			})
			all = all || t.Failed()
		}
	}
}

// isNew wants a volume without data.
func (s *stand) isNew(v drivebay.Volume) {
	s.Helper()
	if v.Mode == drivebay.ModeFS {
		if s.hasMark(v, false) {
			s.Error("it has the data of the volume before it")
		}
		return
	}
	s.must(s.stage(v))
	s.without(v, "made again", 0)
	s.must(s.unstage(v))
}

// TestFoundHalfRemoved: the records are lost in the middle of a removal. A volume that is made by the same name afterwards has
// nothing of the old one. A store that is restored from the time of the removal does not remove it.
func TestFoundHalfRemoved(t *testing.T) {
	t.Parallel()
	all := requests()
	all["encrypted xfs on linear"] = encryptedRequests()["xfs on linear"]
	halfRemoved(t, some(all), func(s *stand, v drivebay.Volume, r drivebay.VolumeRequest, made drivebay.VolumeRecord) {
		_ = s.e.RetryVolume(s.Context(), v.ID)
		v = s.make(v.Name, r)
		s.isNew(v)
		if v.Mode != drivebay.ModeFS {
			return
		}
		s.hasMark(v, true)
		s.startWith(made)
		if !s.hasMark(v, false) {
			s.Error("an older store has removed it")
		}
	})
}

// TestFoundHalfRemovedEarlier: an earlier version has adopted what is left of a removal, and recorded it like a creation of its own.
func TestFoundHalfRemovedEarlier(t *testing.T) {
	t.Parallel()
	all := requests()
	some := map[string]drivebay.VolumeRequest{}
	for _, name := range []string{"ext4 on a partition", "xfs on linear", "a thin volume", "a mirror"} {
		some[name] = all[name]
	}
	halfRemoved(t, some, func(s *stand, v drivebay.Volume, r drivebay.VolumeRequest, _ drivebay.VolumeRecord) {
		if _, there := s.e.Volumes().Get(v.ID); !there {
			return
		}
		found := s.record(v)
		found.Work.Made, found.Volume.CSIStatus, found.Volume.Failure = nil, drivebay.CSICreating, nil
		found.Volume.Mode, found.Volume.FSType, found.Volume.FSUUID = v.Mode, v.FSType, v.FSUUID // as it had recorded them for a request
		if v.Location.OnLVM() {                                                                  // its removal had no mark of its own
			_, err := s.sim.Run(s.Context(), "lvm", "lvchange", "--deltag", groups.RemovingTag(), v.Location.VG+"/"+v.Location.LV)
			s.must(err)
		}
		s.startWith(found)
		s.isNew(s.make(v.Name, r))
	})
}

// TestFoundHalfRemovedUnseen: what is left of a removal is not deleted while LVM does not see it.
func TestFoundHalfRemovedUnseen(t *testing.T) {
	t.Parallel()
	some := map[string]drivebay.VolumeRequest{"linear": requests()["a linear volume"], "thin": requests()["a thin volume"]}
	halfRemoved(t, some, func(s *stand, v drivebay.Volume, _ drivebay.VolumeRequest, _ drivebay.VolumeRecord) {
		if _, there := s.e.Volumes().Get(v.ID); !there {
			return
		}
		dev := s.driveOf(v).Name + "p1"
		if strings.HasPrefix(dev, "sd") {
			dev = s.driveOf(v).Name + "1"
		}
		s.eraseFront(dev)
		time.Sleep(2 * time.Minute)
		s.notYet("the label is erased", s.e.DeleteVolume(s.Context(), v.ID))
	})
}
