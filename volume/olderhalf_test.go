package volume_test

import (
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// halfRemovedRequests are volumes of every kind.
func halfRemovedRequests() map[string]drivebay.VolumeRequest {
	all := requests()
	all["encrypted xfs on linear"] = encryptedRequests()["xfs on linear"]
	all["encrypted ext4 on a partition"] = encryptedRequests()["ext4 on a partition"]
	return some(all)
}

// used writes to a new volume.
func (s *stand) used(v drivebay.Volume) {
	s.Helper()
	if v.Mode == drivebay.ModeFS {
		s.hasMark(v, true)
		return
	}
	s.must(s.stage(v))
	s.strewn(v)
	s.must(s.unstage(v))
}

// TestOlderStoreHalfRemoved: a removal was cut short, and the store is restored from before it. What is left of the volume is not used, also
// not by a call that comes before the drives are listed again, and it is reported. A request for the name gets a new volume.
func TestOlderStoreHalfRemoved(t *testing.T) {
	t.Parallel()
	for name, r := range halfRemovedRequests() {
		r.Class.Wipe = drivebay.WipeZero
		for _, at := range []string{"mark", "erase", "wipe"} {
			removing := false
			opt := volume.Options{After: func(_, step string) error {
				if removing && step == at {
					return errKilled
				}
				return nil
			}}
			t.Run(name+" after "+at, func(t *testing.T) {
				onMachine(t, smallDrives(), opt, func(s *stand) {
					v := s.make(name, r)
					s.used(v)
					was := s.record(v)
					removing = true
					if s.e.DeleteVolume(s.Context(), v.ID) == nil { // without that step
						return
					}
					removing = false
					s.startWith(was)
					if is := s.of(v); is.CSIStatus != drivebay.CSIFailed || !is.Condition.Abnormal() {
						t.Errorf("it is %v, %v", is.CSIStatus, is.Condition)
					}
					s.refuses("staged", s.stage(v, with(rightKey)), drivebay.ErrRefused)
					v = s.make(name, r)
					s.isNew(v)
					s.used(v)
					s.must(s.e.DeleteVolume(s.Context(), v.ID))
					s.blank()
				})
			})
		}
	}
}

// TestOlderStoreCreatingHalfRemoved: the same with a store from the middle of the creation of the volume. The creation does not continue: it
// would hand out the data that were being removed.
func TestOlderStoreCreatingHalfRemoved(t *testing.T) {
	t.Parallel()
	for name, r := range halfRemovedRequests() {
		r.Class.Wipe = drivebay.WipeNone
		for _, step := range []string{"volume", "zero", "mkfs", "finish"} {
			var s *stand
			removing := false
			k := &recordAfter{step: step}
			keep := k.after(&s, func() {})
			opt := volume.Options{After: func(id, step string) error {
				if removing {
					return errKilled
				}
				return keep(id, step)
			}}
			t.Run(name+" from "+step, func(t *testing.T) {
				onMachine(t, smallDrives(), opt, func(st *stand) {
					s = st
					k.armed.Store(true)
					v := s.make(name, r)
					if k.is.Load() == nil { // without that step
						return
					}
					s.used(v)
					removing = true
					_ = s.e.DeleteVolume(s.Context(), v.ID)
					removing = false
					s.startWith(*k.is.Load())
					if is := s.of(v); is.CSIStatus != drivebay.CSIFailed || !is.Condition.Abnormal() {
						t.Errorf("it is %v, %v", is.CSIStatus, is.Condition)
					}
					_ = s.e.RetryVolume(s.Context(), v.ID)
					s.isNew(s.make(name, r))
				})
			})
		}
	}
}
