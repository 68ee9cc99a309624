package csi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// engine is what a daemon knows; panics makes its next question end badly.
type engine struct {
	snap    atomic.Pointer[drivebay.Snapshot]
	unready atomic.Pointer[[]string]
	panics  atomic.Bool
}

func (e *engine) Snapshot() *drivebay.Snapshot {
	if e.panics.CompareAndSwap(true, false) {
		panic("secret-of-the-panic")
	}
	return e.snap.Load()
}

func (e *engine) Unready() []string { return *e.unready.Load() }

func (e *engine) set(s drivebay.Snapshot, unready ...string) {
	e.snap.Store(&s)
	e.unready.Store(&unready)
}

// rig is a server on a socket and a connection to it.
func rig(t *testing.T, volumes Volumes) (*engine, string, *grpc.ClientConn, *lockedBuffer) {
	t.Helper()
	e, log := &engine{}, &lockedBuffer{}
	e.set(drivebay.Snapshot{})
	socket := filepath.Join(t.TempDir(), "csi.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	s := New(e, Options{Version: "v9", NodeID: "node-1", Volumes: volumes, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	go func() { done <- s.Serve(ctx, l) }()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return e, "unix://" + socket, conn, log
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func claimed(name string, h drivebay.Health, s drivebay.Status) drivebay.Drive {
	return drivebay.Drive{ID: name, Name: name, Identity: drivebay.Identity{Serial: "S" + name}, Health: h, Status: s,
		Claim: &drivebay.Claim{By: drivebay.ClaimedByOperator}, Findings: []drivebay.Finding{{Text: "evidence of " + name}}}
}

func TestProbe(t *testing.T) {
	e, _, conn, _ := rig(t, nil)
	probe := func() (*wire.ProbeResponse, error) {
		return wire.NewIdentityClient(conn).Probe(t.Context(), &wire.ProbeRequest{})
	}
	if r, err := probe(); err != nil || r.GetReady().GetValue() || r.GetReady() == nil {
		t.Errorf("before the first inventory: %v, %v", r, err)
	}
	e.set(drivebay.Snapshot{Seq: 1})
	if r, err := probe(); err != nil || !r.GetReady().GetValue() {
		t.Errorf("after it: %v, %v", r, err)
	}
	e.set(drivebay.Snapshot{Seq: 1}, "the store is full")
	if _, err := probe(); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "the store is full") {
		t.Errorf("with something missing: %v", err)
	}
}

// promised are the calls that a capability promises, as the specification has it.
// Some promise none: they say how one may be made.
var promised = map[string][]string{
	"":                       {"GetPluginInfo", "GetPluginCapabilities", "Probe", "NodeGetInfo", "NodeGetCapabilities"},
	"CONTROLLER_SERVICE":     {"ControllerGetCapabilities", "ValidateVolumeCapabilities"},
	"CREATE_DELETE_VOLUME":   {"CreateVolume", "DeleteVolume"},
	"LIST_VOLUMES":           {"ListVolumes"},
	"GET_CAPACITY":           {"GetCapacity"},
	"controller EXPAND":      {"ControllerExpandVolume"},
	"GET_VOLUME":             {"ControllerGetVolume"},
	"controller HEALTH":      {"ControllerGetVolumeHealth"},
	"LIST_VOLUME_HEALTH":     {"ControllerListVolumeHealth"},
	"CREATE_DELETE_SNAPSHOT": {"CreateSnapshot", "DeleteSnapshot"},
	"LIST_SNAPSHOTS":         {"ListSnapshots"},
	"GET_SNAPSHOT":           {"GetSnapshot"},
	"STAGE_UNSTAGE_VOLUME":   {"NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume", "NodeUnpublishVolume"},
	"GET_VOLUME_STATS":       {"NodeGetVolumeStats"},
	"node EXPAND":            {"NodeExpandVolume"},
	"node HEALTH":            {"NodeGetVolumeHealth"},
	"GET_STORAGE_HEALTH":     {"NodeGetStorageHealth"},
	"CLONE_VOLUME":           nil, "SINGLE_NODE_MULTI_WRITER": nil, "VOLUME_CONDITION": nil,
	"VOLUME_ACCESSIBILITY_CONSTRAINTS": nil, "SNAPSHOT_ACCESSIBILITY_CONSTRAINTS": nil, "ONLINE": nil,
}

// Every RPC of the interface is either advertised and answers, or not advertised
// and says that it is not implemented; with volumes, with snapshots, and without.
func TestCapabilitiesAreTrue(t *testing.T) {
	plain := newMemory()
	plain.capabilities.Snapshots = false
	for _, c := range []struct {
		name    string
		volumes Volumes
		real    int
	}{{"no volumes", nil, 6}, {"no snapshots", plain, 23}, {"snapshots", newMemory(), 27}} {
		t.Run(c.name, func(t *testing.T) {
			e, endpoint, _, _ := rig(t, c.volumes)
			e.set(drivebay.Snapshot{Seq: 1, Complete: true})
			real := advertised(t, endpoint)
			if len(real) != c.real {
				t.Errorf("%d calls are promised, want %d: %v", len(real), c.real, real)
			}
			for _, call := range Calls() {
				_, method, _ := strings.Cut(call, ".")
				_, err := Call(t.Context(), endpoint, call, "")
				switch code := status.Code(err); {
				case real[method] && code != codes.OK && code != codes.InvalidArgument:
					t.Errorf("%s is advertised and answers %v", call, err)
				case !real[method] && code != codes.Unimplemented:
					t.Errorf("%s is not advertised and answers %v", call, err)
				}
			}
		})
	}
}

// advertised are the calls that the three lists of capabilities promise.
func advertised(t *testing.T, endpoint string) map[string]bool {
	t.Helper()
	real := map[string]bool{}
	promise := func(kind string) {
		calls, ok := promised[kind]
		if !ok {
			t.Errorf("%s is advertised: what does it promise?", kind)
		}
		for _, call := range calls {
			real[call] = true
		}
	}
	promise("")
	for _, call := range []string{"GetPluginCapabilities", "ControllerGetCapabilities", "NodeGetCapabilities"} {
		out, err := Call(t.Context(), endpoint, call, "")
		if status.Code(err) == codes.Unimplemented && !real[call] {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"type": *"?([A-Z_0-9]+)`).FindAllStringSubmatch(out, -1) {
			kind := m[1]
			if side, _, ok := strings.Cut(call, "GetCapabilities"); ok {
				kind = strings.NewReplacer("EXPAND_VOLUME", strings.ToLower(side)+" EXPAND", "GET_VOLUME_HEALTH", strings.ToLower(side)+" HEALTH").Replace(kind)
			}
			promise(kind)
		}
	}
	return real
}

func TestCall(t *testing.T) {
	_, endpoint, _, _ := rig(t, nil)
	if calls := Calls(); len(calls) < 35 {
		t.Errorf("the interface has %d calls: %v", len(calls), calls)
	}
	out, err := Call(t.Context(), endpoint, "nodegetinfo", "{}")
	if err != nil || !strings.Contains(out, `"node-1"`) || !strings.Contains(out, TopologyKey) {
		t.Errorf("NodeGetInfo: %s, %v", out, err)
	}
	if out, err := Call(t.Context(), endpoint, "GetPluginCapabilities", ""); err != nil || !strings.Contains(out, "VOLUME_ACCESSIBILITY_CONSTRAINTS") || strings.Contains(out, "CONTROLLER_SERVICE") {
		t.Errorf("GetPluginCapabilities: %s, %v", out, err)
	}
	for _, bad := range [][2]string{{"NoSuchCall", ""}, {"Probe", "{"}, {"Probe", `{"colour": 1}`}} {
		if out, err := Call(t.Context(), endpoint, bad[0], bad[1]); err == nil {
			t.Errorf("%v was answered: %s", bad, out)
		}
	}
}

func TestStorageHealth(t *testing.T) {
	e, _, conn, _ := rig(t, nil)
	ask := func() (*wire.NodeGetStorageHealthResponse, error) {
		return wire.NewNodeClient(conn).NodeGetStorageHealth(t.Context(), &wire.NodeGetStorageHealthRequest{})
	}
	if _, err := ask(); status.Code(err) != codes.Unavailable {
		t.Errorf("before the first inventory: %v", err)
	}
	foreign := claimed("theirs", drivebay.HealthBad, drivebay.StatusOnline)
	foreign.Claim = nil
	e.set(drivebay.Snapshot{Seq: 1, Complete: true, Drives: []drivebay.Drive{foreign, claimed("well", drivebay.HealthGood, drivebay.StatusOnline)}})
	if r, err := ask(); err != nil || len(r.BackendHealth) != 0 {
		t.Errorf("all ours are well: %v, %v", r, err)
	}
	well := drivebay.Snapshot{Seq: 1, Complete: true, Drives: []drivebay.Drive{claimed("well", drivebay.HealthGood, drivebay.StatusOnline)}}
	e.set(well, "the daemon has not looked at the drives since noon and hangs")
	if r, err := ask(); err != nil || len(r.BackendHealth) != 1 || r.BackendHealth[0].Reason != drivebay.StorageNotObserved || !strings.Contains(r.BackendHealth[0].Message, "hangs") {
		t.Errorf("a daemon that hangs: %v, %v", r, err)
	}
	e.set(drivebay.Snapshot{Seq: 2, Complete: true, Drives: []drivebay.Drive{foreign, claimed("bad1", drivebay.HealthBad, drivebay.StatusOnline),
		claimed("bad2", drivebay.HealthBad, drivebay.StatusOnline), claimed("old", drivebay.HealthSuspect, drivebay.StatusOnline), claimed("gone", drivebay.HealthUnknown, drivebay.StatusOffline)}})
	r, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, h := range r.BackendHealth {
		key := fmt.Sprint(h.Status, " ", h.Reason)
		if got[key] != "" {
			t.Errorf("%s twice", key)
		}
		got[key] = h.Message
	}
	for key, want := range map[string][]string{
		"STORAGE_DEGRADED DiskFailure":   {"2 of 4", "bad1 (serial Sbad1): evidence of bad1", "bad2"},
		"STORAGE_DEGRADED DiskDegrading": {"1 of 4", "old"},
		"STORAGE_DEGRADED DiskRemoved":   {"1 of 4", "gone"},
	} {
		for _, w := range want {
			if !strings.Contains(got[key], w) {
				t.Errorf("%s: %q lacks %q", key, got[key], w)
			}
		}
	}
	if len(got) != 3 {
		t.Errorf("%v", got)
	}
}

// A panic ends its own call only, and neither it nor what was sent reaches the log.
func TestGuard(t *testing.T) {
	e, _, conn, log := rig(t, nil)
	e.set(drivebay.Snapshot{Seq: 1, Complete: true})
	client := wire.NewNodeClient(conn)
	e.panics.Store(true)
	req := &wire.NodeGetStorageHealthRequest{Secrets: map[string]string{"key": "hunter2"}}
	if _, err := client.NodeGetStorageHealth(t.Context(), req); status.Code(err) != codes.Internal {
		t.Errorf("a panic ends the call with %v", err)
	}
	if _, err := client.NodeGetStorageHealth(t.Context(), req); err != nil {
		t.Errorf("the call after a panic: %v", err)
	}
	big := &wire.NodeGetStorageHealthRequest{Secrets: map[string]string{"key": strings.Repeat("x", rpc.MaxMessage+1)}}
	if _, err := client.NodeGetStorageHealth(t.Context(), big); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a request of over %d bytes: %v", rpc.MaxMessage, err)
	}
	text := log.String()
	if !strings.Contains(text, "NodeGetStorageHealth") || !strings.Contains(text, "code=Internal") {
		t.Errorf("the log does not name the call: %s", text)
	}
	for _, secret := range []string{"hunter2", "secret-of-the-panic"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in the log: %s", secret, text)
		}
	}
}

// undecided is an engine that does not know yet whether there are snapshots, and counts who asks.
type undecided struct {
	*memory
	asked atomic.Int64
}

func (u *undecided) Capabilities() drivebay.VolumeCapabilities {
	u.asked.Add(1)
	return drivebay.VolumeCapabilities{Unknown: true}
}

// TestSnapshotsNotKnown: while it is not known whether a machine has snapshots, a call that depends on it is to be repeated. The others do
// not ask: the answer may have to wait for a program.
func TestSnapshotsNotKnown(t *testing.T) {
	u := &undecided{memory: newMemory()}
	e, endpoint, conn, _ := rig(t, u)
	e.set(drivebay.Snapshot{Seq: 1, Complete: true})
	depend := map[string]bool{"ControllerGetCapabilities": true, "CreateSnapshot": true, "DeleteSnapshot": true, "ListSnapshots": true, "GetSnapshot": true}
	for _, call := range Calls() {
		_, method, _ := strings.Cut(call, ".")
		before := u.asked.Load()
		_, err := Call(t.Context(), endpoint, call, "")
		if (status.Code(err) == codes.Unavailable) != depend[method] || (u.asked.Load() > before) != depend[method] {
			t.Errorf("%s: %v, asked %d times", call, err, u.asked.Load()-before)
		}
	}
	_, err := wire.NewControllerClient(conn).CreateVolume(t.Context(), &wire.CreateVolumeRequest{Name: "copy",
		VolumeCapabilities: []*wire.VolumeCapability{{AccessMode: &wire.VolumeCapability_AccessMode{Mode: wire.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			AccessType: &wire.VolumeCapability_Mount{Mount: &wire.VolumeCapability_MountVolume{}}}},
		VolumeContentSource: &wire.VolumeContentSource{Type: &wire.VolumeContentSource_Volume{Volume: &wire.VolumeContentSource_VolumeSource{VolumeId: "x"}}}})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("a copy: %v", err)
	}
}
