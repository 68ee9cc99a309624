package drivemgr_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/store"
)

// failingStore is a store whose disk fails; the writes of the manager need not be those
// that found that out.
type failingStore struct {
	*store.Mem
	mu  sync.Mutex
	err error
}

func (f *failingStore) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *failingStore) Failing() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// TestStoreFails: a store that cannot be written is in Unready, the snapshot, its problems
// and one event, until it can be written again.
func TestStoreFails(t *testing.T) {
	st := &failingStore{Mem: store.Memory()}
	onRack(t, 2, st, drivemgr.Options{}, func(r *rig) {
		t, mgr := r.T, r.mgr
		count := func(kind drivebay.EventKind) (n int) {
			for _, e := range mgr.Events(0, 0) {
				if e.Kind == kind {
					n++
				}
			}
			return n
		}
		check := func(want string, failed, recovered int) {
			t.Helper()
			time.Sleep(10 * time.Second)
			s := mgr.Snapshot()
			if is := s.StoreFailing; is != want {
				t.Errorf("snapshot: %q, want %q", is, want)
			}
			if is := strings.Join(mgr.Unready(), ""); (is != "") != (want != "") || !strings.Contains(is, want) {
				t.Errorf("unready: %q, want %q", is, want)
			}
			if is := strings.Join(s.Problems, ""); strings.Contains(is, "record store") != (want != "") {
				t.Errorf("problems: %q", is)
			}
			if count(drivebay.EventStoreFailed) != failed || count(drivebay.EventStoreRecovered) != recovered {
				t.Errorf("%d and %d events, want %d and %d", count(drivebay.EventStoreFailed), count(drivebay.EventStoreRecovered), failed, recovered)
			}
		}
		check("", 0, 0)
		st.set(errors.New("no space left on device"))
		check("no space left on device", 1, 0)
		check("no space left on device", 1, 0)
		st.set(nil)
		check("", 1, 1)
		st.set(errors.New("the file was removed"))
		check("the file was removed", 2, 1)
	})
}
