package volume_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// fullStore is a store of volumes that takes no writes while it is full.
type fullStore struct {
	*store.Mem
	mu   sync.Mutex
	full bool
}

var errFull = errors.New("no space left on device")

func (f *fullStore) fill(full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = full
}

func (f *fullStore) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return errFull
	}
	return nil
}

func (f *fullStore) write(do func() error) error {
	if err := f.err(); err != nil {
		return err
	}
	return do()
}

func (f *fullStore) PutVolume(r drivebay.VolumeRecord) error {
	return f.write(func() error { return f.Mem.PutVolume(r) })
}

func (f *fullStore) DeleteVolume(id string) error {
	return f.write(func() error { return f.Mem.DeleteVolume(id) })
}

func (f *fullStore) PutVolumeSnapshot(r drivebay.SnapshotRecord) error {
	return f.write(func() error { return f.Mem.PutVolumeSnapshot(r) })
}

func (f *fullStore) DeleteVolumeSnapshot(id string) error {
	return f.write(func() error { return f.Mem.DeleteVolumeSnapshot(id) })
}

func (f *fullStore) PutForgotten(x drivebay.ForgottenVolume) error {
	return f.write(func() error { return f.Mem.PutForgotten(x) })
}

func (f *fullStore) DeleteForgotten(key string) error {
	return f.write(func() error { return f.Mem.DeleteForgotten(key) })
}

func (f *fullStore) PutRemains(r drivebay.Remains) error {
	return f.write(func() error { return f.Mem.PutRemains(r) })
}

func (f *fullStore) DeleteRemains(partition string) error {
	return f.write(func() error { return f.Mem.DeleteRemains(partition) })
}

// onFull is a stand whose engine has a store that can be filled.
func onFull(t *testing.T, test func(*stand, *fullStore)) {
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		f := &fullStore{Mem: s.st}
		s.over = f
		s.start()
		test(s, f)
	})
}

// TestFullStore: while the record store cannot be written volumes are staged, published,
// unpublished and unstaged; what needs the record first is refused; and all that was kept in
// memory is written once the store can be.
func TestFullStore(t *testing.T) {
	for _, backing := range allBackings[:4] {
		for _, block := range []bool{false, true} {
			for _, encrypted := range []bool{false, true} {
				t.Run(fmt.Sprint(backing, " block ", block, " encrypted ", encrypted), func(t *testing.T) {
					onFull(t, func(s *stand, f *fullStore) {
						r := partitionOf(1 << 30)
						r.Block, r.Class.Backing = block, backing
						if encrypted {
							r.Class.Encryption, r.Secrets = drivebay.EncryptionLUKS2, secrets(rightKey)
						}
						v := s.make("kept", r)
						f.fill(true)
						for range 2 { // a replay is answered as ever
							s.must(s.stage(v, with(rightKey)))
							s.must(s.publish(v, "pod"))
						}
						if is := s.of(v); is.CSIStatus != drivebay.CSIPublished || len(is.Publications) != 2 {
							s.Errorf("published: %v, %v", is.CSIStatus, is.Publications)
						}
						if held := s.e.Unwritten(); !slices.Equal(held, []string{v.ID}) {
							s.Errorf("in memory only: %v", held)
						}
						r.Name = "new"
						_, created := s.e.CreateVolume(s.Context(), r)
						_, _, grown := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
						if backing == drivebay.BackingDrive { // has all of its drive
							grown = created
						}
						for what, err := range map[string]error{"create": created, "expand": grown} {
							if !errors.Is(err, drivebay.ErrUnavailable) || !errors.Is(err, errFull) {
								s.Errorf("%s: %v, want unavailable and the cause", what, err)
							}
						}
						s.must(s.unpublish(v, "pod"))
						s.must(s.unstage(v))
						if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrUnavailable) || !errors.Is(err, errFull) {
							s.Errorf("delete: %v, want unavailable and the cause", err)
						}
						s.must(s.stage(v, with(rightKey)))
						time.Sleep(time.Minute)
						f.fill(false)
						time.Sleep(5 * time.Second)
						if held := s.e.Unwritten(); len(held) > 0 {
							s.Errorf("in memory only: %v", held)
						}
						all, err := s.st.Volumes()
						s.must(err)
						if is := all[v.ID].Volume; is.CSIStatus != drivebay.CSIVolumeReady || len(is.Publications) != 1 {
							s.Errorf("written: %v, %v", is.CSIStatus, is.Publications)
						}
						s.must(s.unstage(v))
						s.must(s.e.DeleteVolume(s.Context(), v.ID))
					})
				})
			}
		}
	}
}

// TestFullStoreRestart: what was kept in memory and is lost with the daemon is found in the
// mount table.
func TestFullStoreRestart(t *testing.T) {
	onFull(t, func(s *stand, f *fullStore) {
		r := partitionOf(1 << 30)
		r.Block = false
		v := s.make("kept", r)
		f.fill(true)
		s.must(s.stage(v, with(rightKey)))
		s.must(s.publish(v, "pod"))
		s.start() // over the same full store
		if is := s.of(v); is.CSIStatus != drivebay.CSIPublished {
			s.Errorf("found: %v, %v", is.CSIStatus, is.Publications)
		}
		s.must(s.unpublish(v, "pod"))
		s.must(s.unstage(v))
		if mounts := s.mounts(staging(v)); len(mounts) > 0 {
			s.Errorf("left mounted: %v", mounts)
		}
	})
}

// TestFullStoreFinds: with the records lost and a store that takes none, volumes on the
// drives are known, staged and unstaged.
func TestFullStoreFinds(t *testing.T) {
	for _, backing := range allBackings[:4] {
		onFull(t, func(s *stand, f *fullStore) {
			r := partitionOf(1 << 30)
			r.Block, r.Class.Backing = false, backing
			v := s.make("kept", r)
			s.must(s.st.DeleteVolume(v.ID))
			f.fill(true)
			s.start()
			time.Sleep(10 * time.Second)
			if err := s.stage(v); err != nil {
				s.Errorf("%s: stage: %v", backing, err)
			}
			s.must(s.unstage(v))
			f.fill(false)
			time.Sleep(5 * time.Second)
			if !s.recorded(v) {
				s.Errorf("%s: no record, once it can be written", backing)
			}
		})
	}
}

// TestFullStoreMirror: a mirror is not activated while it cannot be written down which of
// its legs is the newest; it is unstaged all the same.
func TestFullStoreMirror(t *testing.T) {
	onFull(t, func(s *stand, f *fullStore) {
		r := partitionOf(1 << 30)
		r.Block, r.Class.Backing = false, drivebay.BackingMirror
		v := s.make("kept", r)
		f.fill(true)
		if err := s.stage(v); !errors.Is(err, drivebay.ErrUnavailable) || !errors.Is(err, errFull) {
			s.Errorf("stage: %v, want unavailable and the cause", err)
		}
		f.fill(false)
		s.must(s.stage(v, with(rightKey)))
		f.fill(true)
		s.must(s.unstage(v))
		if mounts := s.mounts(staging(v)); len(mounts) > 0 {
			s.Errorf("left mounted: %v", mounts)
		}
	})
}
