package volume_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// hungStore is a store of volumes whose writes do not end while it hangs.
type hungStore struct {
	*store.Mem
	mu   sync.Mutex
	ends chan struct{} // closed when it hangs no longer; nil: it does not hang
}

func (h *hungStore) hang() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends = make(chan struct{})
}

func (h *hungStore) heal() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.ends)
	h.ends = nil
}

func (h *hungStore) wait() {
	h.mu.Lock()
	ends := h.ends
	h.mu.Unlock()
	if ends != nil {
		<-ends
	}
}

func (h *hungStore) PutVolume(r drivebay.VolumeRecord) error {
	h.wait()
	return h.Mem.PutVolume(r)
}

func (h *hungStore) DeleteVolume(id string) error {
	h.wait()
	return h.Mem.DeleteVolume(id)
}

func (h *hungStore) PutVolumeSnapshot(r drivebay.SnapshotRecord) error {
	h.wait()
	return h.Mem.PutVolumeSnapshot(r)
}

// answers ends the test if a call fails or does not answer in time.
func (s *stand) answers(what string, call func() error) {
	s.Helper()
	came := make(chan error, 1)
	go func() { came <- call() }()
	select {
	case err := <-came:
		if err != nil {
			s.Fatalf("%s: %v", what, err)
		}
	case <-time.After(5 * time.Second):
		s.Fatalf("%s: no answer while the store hangs", what)
	}
}

// TestHungStore: while writes to the record store do not end, volumes are staged, published,
// measured, unpublished and unstaged within seconds, and a drive that is pulled is noticed. All that
// was kept in memory is written once the writes end.
func TestHungStore(t *testing.T) {
	for _, backing := range allBackings[:4] {
		t.Run(fmt.Sprint(backing), func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				h := &hungStore{Mem: s.st}
				s.over = h
				s.start()
				r := partitionOf(1 << 30)
				r.Block, r.Class.Backing = false, backing
				v, other := s.make("first", r), s.make("second", r)
				h.hang()
				defer func() {
					if s.Failed() {
						h.heal()
					}
				}()
				r.Name = "new"
				go func() { _, _ = s.e.CreateVolume(s.Context(), r) }() // waits for the store
				time.Sleep(time.Second)
				for range 2 {
					for _, v := range []drivebay.Volume{v, other} {
						s.answers("stage", func() error { return s.stage(v) })
						s.answers("publish", func() error { return s.publish(v, "pod") })
						s.answers("stats", func() error { _, err := s.stats(v, target(v, "pod")); return err })
						s.answers("unpublish", func() error { return s.unpublish(v, "pod") })
						s.answers("unstage", func() error { return s.unstage(v) })
					}
				}
				s.answers("stage", func() error { return s.stage(v) })
				if is := s.of(v); is.CSIStatus != drivebay.CSIVolumeReady {
					s.Errorf("staged: %v", is.CSIStatus)
				}
				s.inject(other.Location.Drives[0], "vanish")
				time.Sleep(15 * time.Second)
				if is := s.of(other); !is.Condition.Abnormal() {
					s.Errorf("its drive is gone: %v", is.Condition)
				}
				s.inject(other.Location.Drives[0], "return")
				h.heal()
				time.Sleep(15 * time.Second)
				if held := s.e.Unwritten(); len(held) > 0 {
					s.Errorf("in memory only: %v", held)
				}
				all, err := s.st.Volumes()
				s.must(err)
				if is := all[v.ID].Volume; is.CSIStatus != drivebay.CSIVolumeReady || len(is.Publications) != 1 {
					s.Errorf("written: %v, %v", is.CSIStatus, is.Publications)
				}
				if is := all[other.ID].Volume; is.CSIStatus != drivebay.CSICreated || len(is.Publications) != 0 {
					s.Errorf("written: %v, %v", is.CSIStatus, is.Publications)
				}
			})
		})
	}
}
