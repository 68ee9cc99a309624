package volumes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/kube/client"
	"github.com/drivebay/drivebay/internal/kube/internal/pace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// listing is an engine that has volumes and is asked for nothing.
type listing struct {
	Engine
	mu      sync.Mutex
	set     *drivebay.VolumeSet
	changed chan struct{}
}

func (e *listing) Listed() error { return nil }
func (e *listing) Volumes() *drivebay.VolumeSet {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.set
}

func (e *listing) WaitVolumes(ctx context.Context, after uint64) (*drivebay.VolumeSet, error) {
	for {
		e.mu.Lock()
		set, changed := e.set, e.changed
		e.mu.Unlock()
		if set.Seq != after {
			return set, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

// put sets the volumes, and those that are found.
func (e *listing) put(volumes []*drivebay.VolumeView, found ...drivebay.FoundVolume) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set = &drivebay.VolumeSet{Seq: e.set.Seq + 1, Volumes: volumes, Found: found}
	close(e.changed)
	e.changed = make(chan struct{})
}

// memoryAPI is an API server in memory. It counts the requests that write.
type memoryAPI struct {
	mu      sync.Mutex
	foreign *v1alpha1.Volume // the object of another node that each name has; nil: none
	refusal error            // the answer to each write; nil: it is done
	writes  []string
	deliver func(name string) // the news of an object that was made
}

func (a *memoryAPI) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.writes)
}

func (a *memoryAPI) set(foreign *v1alpha1.Volume, refusal error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.foreign, a.refusal = foreign, refusal
}

var volumesOfAPI = schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "volumes"}

func (a *memoryAPI) write(what string, o *v1alpha1.Volume) (*v1alpha1.Volume, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writes = append(a.writes, what)
	if a.refusal != nil {
		return nil, a.refusal
	}
	if what == "create" && a.foreign != nil {
		return nil, apierrors.NewAlreadyExists(volumesOfAPI, o.Name)
	}
	text, err := json.Marshal(o) // times are stored in seconds
	if err != nil {
		return nil, err
	}
	o = &v1alpha1.Volume{}
	if err := json.Unmarshal(text, o); err != nil {
		return nil, err
	}
	o.UID, o.ResourceVersion, o.Generation, o.Spec.Node = "u", strconv.Itoa(len(a.writes)), 1, "n"
	return o, nil
}

func (a *memoryAPI) Get(_ context.Context, name string) (*v1alpha1.Volume, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.foreign == nil {
		return nil, apierrors.NewNotFound(volumesOfAPI, name)
	}
	return a.foreign, nil
}

func (a *memoryAPI) Create(_ context.Context, o *v1alpha1.Volume, _ string) (*v1alpha1.Volume, error) {
	made, err := a.write("create", o)
	if err == nil {
		a.deliver(o.Name)
	}
	return made, err
}

func (a *memoryAPI) Apply(_ context.Context, o *v1alpha1.Volume, _ string) (*v1alpha1.Volume, error) {
	return a.write("label", o)
}

func (a *memoryAPI) ApplyStatus(_ context.Context, o *v1alpha1.Volume, _ string) (*v1alpha1.Volume, error) {
	return a.write("status", o)
}

func (a *memoryAPI) Delete(_ context.Context, name string, _ types.UID) error {
	_, err := a.write("delete", &v1alpha1.Volume{})
	return err
}

// working returns a node that shows the volumes of an engine to an API server in memory, in a bubble of package synctest.
func working(t *testing.T, log *slog.Logger) (*Node, *listing, *memoryAPI) {
	t.Helper()
	e, api := &listing{set: &drivebay.VolumeSet{Seq: 1}, changed: make(chan struct{})}, &memoryAPI{}
	n := New(Options{Name: "n", Engine: e, Log: log})
	n.volumes.api, api.deliver = api, n.volumes.queue.Add
	_ = n.volumes.objects.(*client.Cache[v1alpha1.Volume, *v1alpha1.Volume]).Replace(nil, "")
	_ = n.snapshots.objects.(*client.Cache[v1alpha1.Snapshot, *v1alpha1.Snapshot]).Replace(nil, "")
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { n.followEngine(ctx) })
	n.volumes.start(ctx, &all)
	t.Cleanup(func() {
		cancel()
		n.volumes.queue.ShutDown()
		n.snapshots.queue.ShutDown()
		all.Wait()
	})
	return n, e, api
}

// TestObjectOfAnotherNode: a volume whose name has the object of another node is shown once that object is deleted.
func TestObjectOfAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, e, api := working(t, slog.New(slog.DiscardHandler))
		other := object(1, v1alpha1.VolumeMissing, "")
		other.Spec.Node = "m"
		api.set(other, nil)
		v := volume(drivebay.CSICreated)
		e.put([]*drivebay.VolumeView{v})
		time.Sleep(10 * time.Minute)
		if _, shown := n.volumes.objects.Get(v.ID); shown || !n.mirrored() {
			t.Errorf("while the other node has the object: shown %v, all that can be shown is shown %v", shown, n.mirrored())
		}
		api.set(nil, nil) // a person deletes it, as its finding says
		time.Sleep(foreignTime + time.Second)
		if _, shown := n.volumes.objects.Get(v.ID); !shown || !n.mirrored() {
			t.Errorf("after that object was deleted: shown %v, all is shown %v", shown, n.mirrored())
		}
		n.volumes.objects.Drop(v.ID) // a person deletes this one
		if n.mirrored() {
			t.Error("a volume without an object counts as shown, because another node had an object for it once")
		}
	})
}

// TestStoredAsSent: what the API server returns for a status is that status. Otherwise both would be kept for each volume.
func TestStoredAsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(123456789) // a clock is rarely at a whole second
		n, e, api := working(t, slog.New(slog.DiscardHandler))
		v := volume(drivebay.CSICreated)
		e.put([]*drivebay.VolumeView{v})
		time.Sleep(10 * time.Second)
		if m := n.volumes.memoryOf(v.ID); api.count() != 2 || m.sent != nil {
			t.Errorf("%d writes; kept: %+v", api.count(), m.sent)
		}
	})
}

// TestFoundVolumeFlaps: the object of a volume on a drive that comes and goes is created and deleted at most twice a minute, is right
// a minute after the last change, and leaves nothing in memory when it is gone.
func TestFoundVolumeFlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, e, api := working(t, slog.New(slog.DiscardHandler))
		found := drivebay.FoundVolume{ID: drivebay.VolumeID("a"), Name: "a", Size: gib, Drives: []string{"naa-1"}, Kind: drivebay.LocationPartition}
		const minutes = 5
		for range minutes * 60 / 4 {
			e.put(nil, found)
			time.Sleep(2 * time.Second)
			e.put(nil)
			time.Sleep(2 * time.Second)
		}
		const each = 3 // a creation, its status, and a deletion
		if w := api.count(); w < minutes || w > each*(minutes+1) {
			t.Errorf("%d writes in %d min: %v", w, minutes, api.writes)
		}
		e.put(nil, found)
		time.Sleep(pace.Window + time.Second)
		if _, is := n.volumes.objects.Get(found.ID); !is {
			t.Error("it is there, and not shown")
		}
		e.put(nil)
		time.Sleep(3 * pace.Window)
		n.volumes.mu.Lock()
		defer n.volumes.mu.Unlock()
		if _, is := n.volumes.objects.Get(found.ID); is || len(n.volumes.memory) != 0 {
			t.Errorf("it is gone: shown %v, remembered %v", is, n.volumes.memory)
		}
	})
}

// TestRefusedObjects: an API server that refuses objects, or their statuses, is asked less and less often, which is logged once, and again
// when it takes them.
func TestRefusedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		n, e, api := working(t, slog.New(slog.NewTextHandler(&log, nil)))
		const count = 5
		volumes := func(h drivebay.Health) (all []*drivebay.VolumeView) {
			for i := range count {
				v := volume(drivebay.CSICreated)
				v.ID, v.Health = drivebay.VolumeID(strconv.Itoa(i)), h
				all = append(all, v)
			}
			slices.SortFunc(all, func(a, b *drivebay.VolumeView) int { return strings.Compare(a.ID, b.ID) })
			return all
		}
		for i, h := range []drivebay.Health{drivebay.HealthGood, drivebay.HealthBad} { // the objects are made, then changed
			api.set(nil, apierrors.NewForbidden(volumesOfAPI, "", errors.New("a right is missing")))
			before := api.count()
			e.put(volumes(h))
			time.Sleep(time.Hour)
			if w := (api.count() - before) / count; w < 12 || w > 24 {
				t.Errorf("%s: %d requests for each object in an hour", h, w)
			}
			api.set(nil, nil)
			time.Sleep(refused.Most + time.Second)
			for _, v := range e.Volumes().Volumes {
				if o, is := n.volumes.objects.Get(v.ID); !is || o.Status.Health != h.String() {
					t.Errorf("%s: the object is %+v once the API server takes it", h, o)
				}
			}
			synctest.Wait()
			n.volumes.mu.Lock()
			if lines := strings.Count(log.String(), "\n"); lines != 2*(i+1) {
				t.Errorf("%s: %d lines in the log: %s", h, lines, log.String())
			}
			n.volumes.mu.Unlock()
		}
	})
}

// TestOldObjects: an object that the API server does not take is reported after a while, whatever the cause is, until it is taken.
func TestOldObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, e, api := working(t, slog.New(slog.DiscardHandler))
		v := volume(drivebay.CSICreated)
		e.put([]*drivebay.VolumeView{v})
		time.Sleep(time.Minute)
		for health, cause := range map[drivebay.Health]error{drivebay.HealthBad: apierrors.NewForbidden(volumesOfAPI, "", errors.New("a right is missing")), drivebay.HealthSuspect: apierrors.NewTooManyRequestsError("slow down")} {
			api.set(nil, cause)
			is := *v
			is.Health = health
			e.put([]*drivebay.VolumeView{&is})
			time.Sleep(pace.Behind / 2)
			if old := n.volumes.old(); len(old) > 0 {
				t.Errorf("%v: at once: %q", cause, old)
			}
			time.Sleep(pace.Behind + time.Minute)
			if old := n.volumes.old(); len(old) != 1 || old[0] != v.ID {
				t.Errorf("%v: %q", cause, old)
			}
			api.set(nil, nil)
			time.Sleep(refused.Most + time.Second)
			if old := n.volumes.old(); len(old) > 0 {
				t.Errorf("it is written: %q", old)
			}
		}
	})
}
