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

// notedStore notes each write of the engine.
type notedStore struct {
	*store.Mem
	mu     sync.Mutex
	writes []string
}

func (n *notedStore) note(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writes = append(n.writes, what)
}

func (n *notedStore) noted() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.writes
	n.writes = nil
	return out
}

func (n *notedStore) PutVolume(r drivebay.VolumeRecord) error {
	n.note("volume " + r.Volume.Name)
	return n.Mem.PutVolume(r)
}

func (n *notedStore) PutVolumeSnapshot(r drivebay.SnapshotRecord) error {
	n.note("snapshot " + r.Snapshot.Name)
	return n.Mem.PutVolumeSnapshot(r)
}

func (n *notedStore) PutForgotten(f drivebay.ForgottenVolume) error {
	n.note("forgotten volume")
	return n.Mem.PutForgotten(f)
}

func (n *notedStore) PutRemains(r drivebay.Remains) error {
	n.note("remains")
	return n.Mem.PutRemains(r)
}

// TestIdleWritesNothing: while nothing happens to volumes, in use or not, none of their records is
// written.
func TestIdleWritesNothing(t *testing.T) {
	for _, backing := range allBackings {
		t.Run(fmt.Sprint(backing), func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{Tick: time.Minute}, func(s *stand) {
				n := &notedStore{Mem: s.st}
				s.over = n
				s.start()
				r := partitionOf(1 << 30)
				r.Block, r.Class.Backing = false, backing
				v := s.make("used", r)
				s.must(s.stage(v), s.publish(v, "pod"))
				if backing != drivebay.BackingMirror { // takes all drives
					s.make("at rest", r)
				}
				time.Sleep(time.Hour)
				if len(n.noted()) == 0 {
					s.Fatal("no write was noted while volumes were made")
				}
				time.Sleep(20 * time.Hour)
				if w := n.noted(); len(w) > 0 {
					s.Errorf("written in 20 h in which nothing happened: %v", w)
				}
			})
		})
	}
}
