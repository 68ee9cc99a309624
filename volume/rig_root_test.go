//go:build root

package volume_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/hack/loopdisk"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// rig is this machine with loop devices for drives.
type rig struct {
	files []string // below the drives, which are called so
	roots []string
	deaf  bool // nobody tells it when something changes, and it does not look again
}

func loopRig(t *testing.T, n int) rig {
	t.Helper()
	var r rig
	for range n {
		file, _ := loopdisk.New(t, 2<<30)
		r.files = append(r.files, file)
	}
	return r
}

// start runs an engine that remembers nothing, and waits until it knows the drives.
func (r rig) start(t *testing.T) (e *volume.Engine, mgr *drivemgr.Manager, stop func()) {
	t.Helper()
	machine, err := host.Real("/")
	if err != nil {
		t.Fatal(err)
	}
	opt := drivemgr.Options{Loop: true}
	if err := opt.Claim.UnmarshalText([]byte("serial=" + strings.Join(r.files, "; serial="))); err != nil {
		t.Fatal(err)
	}
	var told host.Machine = machine
	if r.deaf {
		told, opt.Poll, opt.Rescan = deaf{machine}, time.Hour, time.Hour
	}
	st := store.Memory()
	mgr = drivemgr.New(told, st, opt)
	if e, err = volume.New(machine, mgr, st, nil, volume.Options{Roots: r.roots, DRBD: drbd.OpenKernel}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- mgr.Run(ctx) }()
	go func() { ended <- e.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	for end := time.Now().Add(20 * time.Second); !r.known(t, e, mgr); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the drives over %q are not claimed, or not listed: %v", r.files, e.Listed())
		}
	}
	return e, mgr, stop
}

// known says whether all drives are claimed, and all that is on them was listed.
func (r rig) known(t *testing.T, e *volume.Engine, mgr *drivemgr.Manager) bool {
	t.Helper()
	claimed := slices.DeleteFunc(slices.Clone(mgr.Snapshot().Drives), func(d drivebay.Drive) bool { return d.Claim == nil })
	found := slices.ContainsFunc(e.Volumes().Found, func(f drivebay.FoundVolume) bool { // before the drives were claimed
		return slices.ContainsFunc(claimed, func(d drivebay.Drive) bool { return slices.Contains(f.Drives, d.ID) })
	})
	err := e.Listed()
	if err != nil && !errors.Is(err, drivebay.ErrUnavailable) {
		t.Fatal(err)
	}
	return err == nil && !found && len(claimed) == len(r.files)
}

// deaf is a machine that does not tell when something changes.
type deaf struct{ host.Machine }

func (deaf) Uevents(context.Context) (<-chan host.Uevent, error) { return make(chan host.Uevent), nil }
