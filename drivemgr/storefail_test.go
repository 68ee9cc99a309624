package drivemgr_test

import (
	"errors"
	"reflect"
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
// and one event, until it can be written again. Then all records of drives are written.
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
		for _, d := range mgr.Snapshot().Drives { // the file that can be written is an empty one
			r.must(st.DeleteRecords([]string{d.ID}))
		}
		st.set(nil)
		check("", 1, 1)
		if all, err := st.Records(); err != nil || len(all) != len(mgr.Snapshot().Drives) {
			t.Errorf("the store has the records of %d drives, %v", len(all), err)
		}
		st.set(errors.New("the file was removed"))
		check("the file was removed", 2, 1)
	})
}

// unreadStore is a store whose records of drives cannot be read.
type unreadStore struct{ *store.Mem }

func (unreadStore) Records() (map[string]drivebay.Record, error) {
	return nil, errors.New("input/output error")
}

// TestRecordsUnread: without the stored records no drive is claimed or changed, and the stored
// records stay as they are.
func TestRecordsUnread(t *testing.T) {
	st := unreadStore{store.Memory()}
	var id string
	onRack(t, 24, st.Mem, drivemgr.Options{}, func(r *rig) {
		id = r.mgr.Snapshot().Drives[0].ID
		r.must(r.mgr.Cordon(r.Context(), id, true))
	})
	before, err := st.Mem.Records()
	if err != nil || !before[id].Cordoned {
		t.Fatalf("%d records, %v", len(before), err)
	}
	all := drivebay.Selectors{{}}
	onRack(t, 24, st, drivemgr.Options{Claim: all}, func(r *rig) {
		if err := r.mgr.Cordon(r.Context(), id, false); !errors.Is(err, drivebay.ErrRefused) {
			r.Errorf("a change of a drive: %v", err)
		}
		if is := strings.Join(r.mgr.Unready(), ""); !strings.Contains(is, "input/output error") {
			r.Errorf("unready: %q", is)
		}
		if is := strings.Join(r.mgr.Snapshot().Problems, ""); !strings.Contains(is, "input/output error") {
			r.Errorf("problems: %q", is)
		}
		if r.mgr.Snapshot().Complete { // a drive that is away would count as given up
			r.Error("the list of drives counts as complete")
		}
		for _, d := range r.mgr.Snapshot().Drives {
			if d.Claim != nil {
				r.Errorf("drive %s is claimed", d.ID)
			}
		}
	})
	after, err := st.Mem.Records()
	if err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("the store has %+v, %v", after, err)
	}
}
