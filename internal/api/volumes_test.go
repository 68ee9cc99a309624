package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/condition"
)

const (
	goodVolume = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	badVolume  = "aaaaaaabbbbbbbbbbbbbbbbbbb"
	gib        = 1 << 30
)

// volumes is a volume engine that remembers what it was asked, over a set judged
// by the real rules.
type volumes struct {
	*engine
	set          atomic.Pointer[drivebay.VolumeSet]
	node         bool // what ExpandVolume says
	capabilities drivebay.VolumeCapabilities
	unread       []string // drives, by why they are not read
	unwritten    []string
	looked       bool // that is not waited for any more

	secrets drivebay.Secrets // that came last
}

// TestReadyAfterFirstLook: /readyz waits for the first look over the drives, and names the
// drives that are not read afterwards, too.
func TestReadyAfterFirstLook(t *testing.T) {
	e := newEngine(1)
	v := newVolumes(e)
	h := New(e, Options{Volumes: v}).Handler(true)
	for _, c := range []struct {
		unread []string
		looked bool
		want   string
		code   int
	}{
		{[]string{"drive a: it does not answer"}, false, `{"status":"not ready","reasons":["not all drives have been read yet"],"unread":["drive a: it does not answer"]}`, 503},
		{[]string{"drive a: it does not answer"}, true, `{"status":"ok","unread":["drive a: it does not answer"]}`, 200},
		{nil, true, `{"status":"ok"}`, 200},
	} {
		v.unread, v.looked = c.unread, c.looked
		if w := ask(h, "GET", "/readyz", ""); w.Code != c.code || strings.TrimSpace(w.Body.String()) != c.want {
			t.Errorf("readyz: status %d %s, want %d %s", w.Code, w.Body, c.code, c.want)
		}
		if w := ask(h, "GET", "/api/v1/status", ""); w.Code != 200 || strings.TrimSpace(w.Body.String()) != c.want {
			t.Errorf("status: status %d %s, want %s", w.Code, w.Body, c.want)
		}
	}
}

func newVolumes(e *engine) *volumes {
	v := &volumes{engine: e}
	v.set.Store(&drivebay.VolumeSet{Seq: 5, Drives: e.snap, Volumes: []*drivebay.VolumeView{
		volumeOn(e.snap.Drives[0], goodVolume, "data-1"), volumeOn(e.snap.Drives[1], badVolume, "data-2"),
	}, Snapshots: []drivebay.VolumeSnapshot{
		{ID: "s1", Name: "monday", Source: goodVolume}, {ID: "s2", Name: "again", Source: goodVolume}, {ID: "s3", Name: "again", Source: badVolume},
	}})
	return v
}

func volumeOn(d drivebay.Drive, id, name string) *drivebay.VolumeView {
	d.Status = drivebay.StatusOnline
	f := drivebay.Facts{Complete: true, Drives: []drivebay.Drive{d}, Volume: drivebay.Volume{
		ID: id, Name: name, Size: gib, Mode: drivebay.ModeFS, FSType: "ext4", CSIStatus: drivebay.CSIVolumeReady, Usage: drivebay.VolumeInUse,
		Location:     drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{d.ID}},
		Publications: []drivebay.Publication{{Path: "/staging", Staging: true, Access: drivebay.AccessSingleWriter}},
	}}
	f.Volume.Health = condition.HealthOf(f)
	f.Volume.OperationalStatus = condition.OperationalStatusOf(f)
	return &drivebay.VolumeView{Volume: f.Volume, Condition: condition.Of(f), Facts: &f}
}

func (v *volumes) Volumes() *drivebay.VolumeSet { return v.set.Load() }
func (v *volumes) WaitVolumes(ctx context.Context, after uint64) (*drivebay.VolumeSet, error) {
	err := v.engine.await(ctx, func() bool { return v.set.Load().Seq != after })
	return v.set.Load(), err
}
func (v *volumes) Unread() ([]string, bool)                  { return v.unread, len(v.unread) == 0 || v.looked }
func (v *volumes) Unwritten() []string                       { return v.unwritten }
func (v *volumes) Newer() []string                           { return nil }
func (v *volumes) Capabilities() drivebay.VolumeCapabilities { return v.capabilities }
func (v *volumes) CreateVolume(ctx context.Context, r drivebay.VolumeRequest) (drivebay.Volume, error) {
	v.secrets = r.Secrets
	return drivebay.Volume{ID: "new", Name: r.Name, Size: r.Size.Required}, v.call(ctx, "create %+v", r)
}
func (v *volumes) DeleteVolume(ctx context.Context, id string) error {
	return v.call(ctx, "delete %s", id)
}
func (v *volumes) ExpandVolume(ctx context.Context, id string, r drivebay.SizeRange) (drivebay.Volume, bool, error) {
	found, _ := v.Volumes().Get(id)
	return found.Volume, v.node, v.call(ctx, "expand %s %+v", id, r)
}
func (v *volumes) ExpandNode(ctx context.Context, id, path string, r drivebay.SizeRange, secrets drivebay.Secrets) (uint64, error) {
	v.secrets = secrets
	return r.Required, v.call(ctx, "grow %s at %s %+v", id, path, r)
}
func (v *volumes) CreateSnapshot(ctx context.Context, name, volume string) (drivebay.VolumeSnapshot, error) {
	return drivebay.VolumeSnapshot{ID: "s9", Name: name, Source: volume}, v.call(ctx, "snapshot %s of %s", name, volume)
}
func (v *volumes) DeleteSnapshot(ctx context.Context, id string) error {
	return v.call(ctx, "delete snapshot %s", id)
}
func (v *volumes) Capacity(ctx context.Context, c drivebay.Class) (drivebay.Capacity, error) {
	return drivebay.Capacity{Available: 3, Largest: 2, Smallest: 1}, v.call(ctx, "capacity %+v", c)
}
func (v *volumes) Room(ctx context.Context, id string, q drivebay.RoomQuery) (drivebay.VolumeRoom, error) {
	return drivebay.VolumeRoom{Against: "no drive has room"}, v.call(ctx, "room of %s %+v", id, q)
}
func (v *volumes) ScrubVolume(ctx context.Context, id string) error {
	return v.call(ctx, "scrub %s", id)
}
func (v *volumes) Heal(ctx context.Context, r drivebay.HealRequest) (drivebay.HealReport, error) {
	v.secrets = r.Secrets
	return drivebay.HealReport{Volume: r.Volume, Steps: []drivebay.HealStep{{Repair: "mount", Why: "unmounted"}}}, v.call(ctx, "heal %s dry=%v fsck=%v block=%v %q", r.Volume, r.DryRun, r.Fsck, *r.Block, r.Options)
}
func (v *volumes) RetryVolume(ctx context.Context, id string) error {
	return v.call(ctx, "retry %s", id)
}
func (v *volumes) ClearVolume(ctx context.Context, id string) error {
	return v.call(ctx, "clear %s", id)
}
func (v *volumes) AcceptLoss(ctx context.Context, id string) error {
	return v.call(ctx, "accept-loss %s", id)
}
func (v *volumes) ForgetVolume(ctx context.Context, id string) error {
	return v.call(ctx, "forget %s", id)
}
func (v *volumes) AdoptVolume(ctx context.Context, id string) error {
	return v.call(ctx, "adopt %s", id)
}
func (v *volumes) MoveBeforeUse(ctx context.Context, id string, on bool) error {
	return v.call(ctx, "move %s before use %v", id, on)
}
func (v *volumes) ReleaseVolume(ctx context.Context, id string) error {
	return v.call(ctx, "release %s", id)
}
func (v *volumes) ForgetSnapshot(ctx context.Context, id string) error {
	return v.call(ctx, "forget snapshot %s", id)
}
func (v *volumes) ForgetDrive(ctx context.Context, id, why string) error {
	return v.call(ctx, "forget drive %s %q", id, why)
}

func TestVolumeAnswers(t *testing.T) {
	const path = "/api/v1/volumes/"
	cases := []struct {
		method, path, body string
		status             int
		want               string // in the answer
		call               string // of the engine
	}{
		{"GET", "/api/v1/volumes", "", 200, `"seq":5`, ""},
		{"GET", "/api/v1/volumes", "", 200, `"condition":[{"severity":"DEGRADED","reason":"DiskFailure"`, ""},
		{"GET", "/api/v1/volumes", "", 200, `"access":"SINGLE_WRITER"`, ""},
		{"GET", path + goodVolume, "", 200, `"facts":{"drives":[{"id":"naa-5000a"`, ""},
		{"GET", path + "data-1", "", 200, `"snapshots":[{"id":"s1"`, ""},
		{"GET", path + "data-1", "", 200, `"evidence":`, ""},
		{"GET", path + badVolume[:8], "", 200, `"name":"data-2"`, ""},
		{"GET", path + badVolume[:7], "", 409, `"code":"ambiguous"`, ""},
		{"GET", path + "none", "", 404, `volume \"none\": not found`, ""},
		{"POST", "/api/v1/volumes", `{"name":"n","size":5,"limit":6,"fsType":"xfs","parameters":{"drivebay.io/backing":"thin"},"source":{"volume":"data-2"}}`, 200, `"id":"new"`,
			"create {Name:n Size:{Required:5 Limit:6} Block:false FSType:xfs Class:{Drives:UNKNOWN Backing:thin Wipe:discard Encryption: FSType:ext4} Source:{Snapshot: Volume:" + badVolume + "} Nodes:[] Secrets:(secrets) KeyAtStage:false}"},
		{"POST", "/api/v1/volumes", `{"name":"n","source":{"snapshot":"monday"}}`, 200, "", "create {Name:n Size:{Required:0 Limit:0} Block:false FSType: Class:{Drives:UNKNOWN Backing:partition Wipe:discard Encryption: FSType:ext4} Source:{Snapshot:s1 Volume:} Nodes:[] Secrets:(secrets) KeyAtStage:false}"},
		{"POST", "/api/v1/volumes", ``, 400, "required", ""},
		{"POST", "/api/v1/volumes", `{"name":"` + strings.Repeat("n", 129) + `"}`, 400, "longer than 128", ""},
		{"POST", "/api/v1/volumes", `{"name":"a\u001bb"}`, 400, "cannot be shown", ""},
		{"POST", "/api/v1/volumes", `{"name":"n","size":6,"limit":5}`, 400, "less than the size", ""},
		{"POST", "/api/v1/volumes", `{"name":"n","size":-1}`, 400, "invalid", ""},
		{"POST", "/api/v1/volumes", `{"name":"n","block":true,"fsType":"xfs"}`, 400, "block volume has none", ""},
		{"POST", "/api/v1/volumes", `{"name":"n","fsType":"ntfs"}`, 400, "supported are ext4, xfs, btrfs", ""},
		{"POST", "/api/v1/volumes", `{"name":"n","parameters":{"drivebay.io/bakcing":"thin"}}`, 400, "no such parameter", ""},
		{"POST", "/api/v1/volumes", `{"name":"n","parameters":{"drivebay.io/backing":"raid5"}}`, 400, "want one of", ""},
		{"POST", "/api/v1/volumes", `{"name":"n","source":{"volume":"data-1","snapshot":"monday"}}`, 400, "not both", ""},
		{"POST", "/api/v1/volumes", `{"name":"n","source":{"volume":"none"}}`, 404, "source: volume", ""},
		{"POST", "/api/v1/volumes", `{"name":"n","source":{"snapshot":"again"}}`, 409, "ambiguous", ""},
		{"POST", "/api/v1/volumes", `{"name":"n","secret":"x"}`, 400, "unknown field", ""},
		{"DELETE", path + "data-1", "", 204, "", "delete " + goodVolume},
		{"DELETE", path + goodVolume[:10], "", 409, "whole ID or name", ""},
		{"DELETE", path + "none", "", 404, "not_found", ""},
		{"POST", path + "data-2/expand", `{"size":7}`, 200, `"name":"data-2"`, "expand " + badVolume + " {Required:7 Limit:0}"},
		{"POST", path + "data-2/expand", `{}`, 400, "size", ""},
		{"POST", path + "none/expand", `{"size":7}`, 404, "not_found", ""},
		{"GET", path + "data-1/room?leave=naa-5000a", "", 200, `"against":"no drive has room"`, "room of " + goodVolume + " {Leave:naa-5000a Size:0}"},
		{"GET", path + "data-1/room?size=7", "", 200, `"against":`, "room of " + goodVolume + " {Leave: Size:7}"},
		{"GET", path + "data-1/room?size=7&leave=x", "", 400, "want leave=DRIVE or size=BYTES", ""},
		{"GET", path + "data-1/room?size=-7", "", 400, "want leave=DRIVE or size=BYTES", ""},
		{"POST", path + "data-1/scrub", ``, 204, "", "scrub " + goodVolume},
		{"POST", path + "data-1/heal", ``, 200, `"steps":[{"repair":"mount","why":"unmounted"}]`, "heal " + goodVolume + " dry=false fsck=false block=false []"},
		{"POST", path + "data-1/heal", `{"dryRun":true,"fsck":true,"options":["noatime"]}`, 200, "", "heal " + goodVolume + ` dry=true fsck=true block=false ["noatime"]`},
		{"POST", path + "none/heal", ``, 404, "not_found", ""},
		{"POST", path + "data-1/heal", `{"force":true}`, 400, "unknown field", ""},
		{"POST", path + "data-1/retry", ``, 204, "", "retry " + goodVolume},
		{"POST", path + "data-1/clear", ``, 204, "", "clear " + goodVolume},
		{"POST", path + "data-1/clear", `{"now":true}`, 400, "unknown field", ""},
		{"POST", path + "data-1/move-before-use", `{"on":true}`, 204, "", "move " + goodVolume + " before use true"},
		{"POST", path + "data-1/move-before-use", `{}`, 400, "want true or false", ""},
		{"POST", path + "data-1/release", ``, 204, "", "release " + goodVolume},
		{"POST", path + "data-1/accept-loss", ``, 204, "", "accept-loss " + goodVolume},
		{"POST", path + goodVolume[:10] + "/accept-loss", ``, 409, "whole ID or name", ""},
		{"POST", path + "data-1/forget", ``, 204, "", "forget " + goodVolume},
		{"POST", path + "found-elsewhere/adopt", ``, 204, "", "adopt found-elsewhere"},
		{"POST", path + goodVolume[:10] + "/forget", ``, 409, "whole ID or name", ""},
		{"POST", path + "none/retry", ``, 404, "not_found", ""},
		{"GET", "/api/v1/snapshots", "", 200, `{"seq":5,"snapshots":[{"id":"s1"`, ""},
		{"POST", path + "data-1/snapshots", `{"name":"friday"}`, 200, `"id":"s9"`, "snapshot friday of " + goodVolume},
		{"POST", path + "data-1/snapshots", `{}`, 400, "required", ""},
		{"DELETE", "/api/v1/snapshots/monday", "", 204, "", "delete snapshot s1"},
		{"DELETE", "/api/v1/snapshots/s2", "", 204, "", "delete snapshot s2"},
		{"POST", "/api/v1/snapshots/monday/forget", "{}", 204, "", "forget snapshot s1"},
		{"DELETE", "/api/v1/snapshots/again", "", 409, "ambiguous", ""},
		{"DELETE", "/api/v1/snapshots/none", "", 404, "not_found", ""},
		{"GET", "/api/v1/capacity?drivebay.io/backing=mirror", "", 200, `{"available":3,"largest":2,"smallest":1,"snapshots":false}`, "capacity {Drives:UNKNOWN Backing:mirror Wipe:discard Encryption: FSType:ext4}"},
		{"GET", "/api/v1/capacity?drivebay.io/backing=mirror&drivebay.io/backing=thin", "", 400, "mirror and as thin", ""},
		{"GET", "/api/v1/capacity?backing=mirror", "", 400, "no such parameter", ""},
	}
	for _, c := range cases {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			e := newEngine(3)
			w := ask(full(e).Handler(false), c.method, c.path, c.body)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("status %d, want %d with %q:\n%.600s", w.Code, c.status, c.want, w.Body)
			}
			if got := strings.Join(e.asked(), "; "); got != c.call {
				t.Errorf("the engine was asked\n%q, want\n%q", got, c.call)
			}
		})
	}
}

// A filesystem that is mounted grows with its volume, at the place where it is.
func TestExpandGrowsWhatIsMounted(t *testing.T) {
	e := newEngine(3)
	v := newVolumes(e)
	v.node = true
	h := New(e, Options{Volumes: v}).Handler(false)
	if w := ask(h, "POST", "/api/v1/volumes/data-1/expand", `{"size":7}`); w.Code != 200 {
		t.Errorf("status %d %s", w.Code, w.Body)
	}
	want := []string{"expand " + goodVolume + " {Required:7 Limit:0}", "grow " + goodVolume + " at /staging {Required:7 Limit:0}"}
	if got := e.asked(); !reflect.DeepEqual(got, want) {
		t.Errorf("the engine was asked %q", got)
	}
}

func TestSnapshotsAreOffered(t *testing.T) {
	e := newEngine(3)
	v := newVolumes(e)
	v.capabilities.Snapshots = true
	h := New(e, Options{Volumes: v}).Handler(true)
	for backing, want := range map[string]string{"thin": `"snapshots":true`, "lvm": `"snapshots":false`} {
		if w := ask(h, "GET", "/api/v1/capacity?drivebay.io/backing="+backing, ""); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s", backing, w.Body)
		}
	}
}

func TestNoVolumeEngine(t *testing.T) {
	h := New(newEngine(3), Options{}).Handler(false)
	n := 0
	for _, r := range routes {
		if !strings.Contains(r.path, "volumes") && !strings.Contains(r.path, "snapshots") && !strings.Contains(r.path, "capacity") {
			continue
		}
		n++
		if w := ask(h, r.method, strings.ReplaceAll(r.path, "{id}", "x"), ""); w.Code != 501 || !strings.Contains(w.Body.String(), `"not_supported"`) {
			t.Errorf("%s %s: status %d %s", r.method, r.path, w.Code, w.Body)
		}
	}
	if n != 26 {
		t.Errorf("%d routes about volumes", n)
	}
}

func TestVolumesBeforeTheFirstListing(t *testing.T) {
	for _, path := range []string{"/api/v1/volumes", "/api/v1/volumes/data-1", "/api/v1/snapshots", "/api/v1/volumes?after=0&wait=10s"} {
		synctest.Test(t, func(t *testing.T) {
			e := newEngine(3)
			v := newVolumes(e)
			v.set.Store(&drivebay.VolumeSet{})
			began := time.Now()
			w := ask(New(e, Options{Volumes: v}).Handler(false), "GET", path, "")
			if took := time.Since(began); w.Code != 503 || took != listTime {
				t.Errorf("%s: status %d after %v %s", path, w.Code, took, w.Body)
			}
			if !strings.Contains(w.Body.String(), "starting") {
				t.Errorf("%s: %s", path, w.Body)
			}
		})
	}
}

// Work that takes longer than a call is pending, and says so.
func TestWorkOutlastsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(3)
		e.during = func(ctx context.Context) { <-ctx.Done() }
		e.fail = fmt.Errorf("volume data-1: %w: the work continues", context.DeadlineExceeded)
		w := ask(full(e).Handler(false), "DELETE", "/api/v1/volumes/data-1", "")
		if w.Code != 409 || !strings.Contains(w.Body.String(), `"pending"`) || !strings.Contains(w.Body.String(), "continues") {
			t.Errorf("status %d %s", w.Code, w.Body)
		}
	})
}

func TestVolumesLongPoll(t *testing.T) {
	cases := []struct {
		name, query string
		change      bool
		took        time.Duration
		want        string
	}{
		{"a change ends it", "?after=5&wait=30s", true, 7 * time.Second, `"seq":6`},
		{"time ends it", "?after=5&wait=5s", true, 5 * time.Second, `"seq":5`},
		{"another round of the drives does not", "?after=5&wait=30s", false, 30 * time.Second, `"seq":5`},
		{"before a restart", "?after=99&wait=30s", false, 0, `"seq":5`},
		{"no wait", "?after=5", false, 0, `"seq":5`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine(3)
				v := newVolumes(e)
				timer := time.AfterFunc(7*time.Second, func() {
					if c.change {
						next := *v.set.Load()
						next.Seq++
						v.set.Store(&next)
					}
					e.advance()
				})
				defer timer.Stop()
				start := time.Now()
				w := ask(New(e, Options{Volumes: v}).Handler(true), "GET", "/api/v1/volumes"+c.query, "")
				if took := time.Since(start); w.Code != 200 || took != c.took || !strings.Contains(w.Body.String(), c.want) {
					t.Errorf("status %d after %v, want %v: %.200s", w.Code, took, c.took, w.Body)
				}
			})
		})
	}
}

func TestClientMirrorsTheVolumes(t *testing.T) {
	e := newEngine(3)
	c, tcp, stop := serve(t, e)
	ctx := t.Context()
	want := newVolumes(e).Volumes()
	for _, c := range []*Client{c, tcp} {
		if s, err := c.Volumes(ctx); err != nil || s.Seq != 5 || len(s.Volumes) != 2 || !reflect.DeepEqual(s.Volumes[1].Condition, want.Volumes[1].Condition) || !reflect.DeepEqual(s.Volumes[0].Volume, want.Volumes[0].Volume) {
			t.Errorf("volumes %+v, %v", s, err)
		}
		if s, err := c.WaitVolumes(ctx, 4); err != nil || s.Seq != 5 {
			t.Errorf("waited for %+v, %v", s, err)
		}
		if v, err := c.Volume(ctx, "data-1"); err != nil || v.ID != goodVolume || len(v.Facts.Drives) != 1 || v.Facts.Drives[0].Evidence == nil || !v.Facts.Complete || len(v.Snapshots) != 2 {
			t.Errorf("volume %+v, %v", v, err)
		}
		if s, err := c.Snapshots(ctx); err != nil || !reflect.DeepEqual(s, want.Snapshots) {
			t.Errorf("snapshots %+v, %v", s, err)
		}
		if got, err := c.Capacity(ctx, map[string]string{drivebay.ParameterBacking: "lvm"}); err != nil || got.Largest != 2 || got.Snapshots {
			t.Errorf("capacity %+v, %v", got, err)
		}
	}
	e.mu.Lock()
	e.calls = nil
	e.mu.Unlock()
	v, err1 := c.CreateVolume(ctx, VolumeBody{Name: "n", Size: 4})
	x, err2 := c.ExpandVolume(ctx, "data-1", 9, "")
	snap, err3 := c.CreateSnapshot(ctx, "data-1", "friday")
	err := errors.Join(err1, err2, err3, c.DeleteVolume(ctx, "data-1"), c.ScrubVolume(ctx, "data-1"), c.RetryVolume(ctx, "data-1"), c.ClearVolume(ctx, "data-1"), c.DeleteSnapshot(ctx, "monday"))
	if err != nil || v.ID != "new" || v.Size != 4 || x.ID != goodVolume || snap.ID != "s9" || len(e.asked()) != 8 {
		t.Errorf("%v: %+v %+v %+v, asked %q", err, v, x, snap, e.asked())
	}
	if err := tcp.DeleteVolume(ctx, "data-1"); err == nil || !strings.Contains(err.Error(), "unix socket") {
		t.Errorf("a volume deleted over TCP: %v", err)
	}
	if err := c.DeleteVolume(ctx, "none"); !errors.Is(err, drivebay.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func FuzzVolumeBody(f *testing.F) {
	for _, s := range []string{`{"name":"n"}`, `{"name":"n","size":18446744073709551615}`, `{"name":"n","parameters":{"a":"b"}}`, `{"source":{}}`, `[`, "\xff"} {
		f.Add(s, "data-1")
	}
	e := newEngine(1)
	h := full(e).Handler(false)
	f.Fuzz(func(t *testing.T, body, id string) {
		for _, verb := range []string{"", "/" + id + "/expand", "/" + id + "/snapshots"} {
			r := httptest.NewRequest("POST", "/", strings.NewReader(body))
			r.URL.Path = "/api/v1/volumes" + verb
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code == 500 || w.Code >= 400 && !json.Valid(w.Body.Bytes()) {
				t.Errorf("%q: %s", body, w.Body)
			}
		}
		e.mu.Lock()
		e.calls = nil
		e.mu.Unlock()
	})
}
