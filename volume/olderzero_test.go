package volume_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// recordAfter keeps the record that a volume has after a step.
type recordAfter struct {
	step  string
	armed atomic.Bool
	is    atomic.Pointer[drivebay.VolumeRecord]
}

func (k *recordAfter) after(s **stand, then func()) func(id, step string) error {
	return func(id, step string) error {
		if step == k.step && k.armed.Swap(false) {
			all, _ := (*s).st.Volumes()
			r := all[id]
			k.is.Store(&r)
			then()
		}
		return nil
	}
}

// TestOlderStoreZeroedGrowth: a store is restored from a moment when a volume had zeroed what it grows into. The growth had failed
// and was given up, and another volume was in that range since. The growth does not show what it has left there.
func TestOlderStoreZeroedGrowth(t *testing.T) {
	t.Parallel()
	var s *stand
	k := &recordAfter{step: "zero"}
	opt := volume.Options{After: k.after(&s, func() { s.inject(s.mgr.Snapshot().Drives[0].ID, "read-only") })}
	onMachine(t, nvmeDrives(1), opt, func(st *stand) {
		s = st
		r := rawVolume(drivebay.BackingPartition)
		v := s.make("v", r)
		k.armed.Store(true)
		if _, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30}); err == nil || k.is.Load() == nil {
			t.Fatalf("it has grown: %v", err)
		}
		s.inject(v.Location.Drives[0], "heal")
		time.Sleep(2 * time.Minute)
		s.must(s.e.ClearVolume(s.Context(), v.ID))
		s.strewAndDelete(r)
		s.startWith(*k.is.Load())
		if is := s.of(v); is.Size != 2<<30 || is.CSIStatus != drivebay.CSICreated {
			t.Errorf("it has not grown: %v, %d", is.CSIStatus, is.Size)
		}
		s.must(s.stage(v))
		s.without(v, "grown", 0)
	})
}

// TestOlderStoreZeroedCreation: a store is restored from a moment when a new volume was zeroed. That volume was deleted, and
// another one was in its place since. The creation that continues does not show what it has left there.
func TestOlderStoreZeroedCreation(t *testing.T) {
	t.Parallel()
	for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM} {
		var s *stand
		k := &recordAfter{step: "zero"}
		onMachine(t, nvmeDrives(1), volume.Options{After: k.after(&s, func() {})}, func(st *stand) {
			s = st
			r := rawVolume(b)
			k.armed.Store(true)
			v := s.make("v", r)
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
			s.strewAndDelete(r)
			s.startWith(*k.is.Load())
			if is := s.of(v); is.CSIStatus != drivebay.CSICreated {
				t.Fatalf("%s: it is not made: %+v", b, is.Volume)
			}
			s.must(s.stage(v))
			s.without(v, "made", 0)
		})
	}
}

// strewAndDelete makes a volume of all that is free, fills it and deletes it without a wipe.
func (s *stand) strewAndDelete(r drivebay.VolumeRequest) {
	s.Helper()
	r.Size.Required = s.free(r)
	w := s.make("w", r)
	s.must(s.stage(w))
	s.strewn(w)
	s.must(s.unstage(w), s.e.DeleteVolume(s.Context(), w.ID))
}

// startWith starts the engine again with an older record.
func (s *stand) startWith(r drivebay.VolumeRecord) {
	s.Helper()
	s.stop()
	s.stop = nil
	s.must(s.st.PutVolume(r))
	s.start()
	time.Sleep(3 * time.Minute)
}
