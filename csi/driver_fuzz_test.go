package csi

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const fuzzRoot = "/var/lib/kubelet"

// driver is the whole driver on a simulated machine that lives as long as the
// process: every message finds what those before it have left.
type driver struct {
	direct
	sim    *hostsim.Machine
	before []string // what was mounted when it began
	system []string // serials of drives that are not ours
	calls  atomic.Int64
	ends   [17]atomic.Int64 // by code
}

func newDriver(t testing.TB) *driver {
	sim, err := hostsim.New(hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindNVMe, Serial: "SYS{n}", Size: "100GB", System: true},
		{Count: 4, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "60GB"}}})
	if err != nil {
		t.Fatal(err)
	}
	var claim drivebay.Selectors
	if err := claim.UnmarshalText([]byte("all")); err != nil {
		t.Fatal(err)
	}
	st := store.Memory()
	drives := drivemgr.New(sim, st, drivemgr.Options{Claim: claim})
	volumes, err := volume.New(sim, drives, st, lvm.New(sim, ""), volume.Options{Node: "node-1", Roots: []string{fuzzRoot}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- drives.Run(ctx) }()
	go func() { ended <- volumes.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		<-ended
		sim.Close()
	})
	d := &driver{direct: directTo(drives, volumes), sim: sim, before: mountsOf(t, sim), system: []string{"SYS1", "SYS2"}}
	class := drivebay.Class{Backing: drivebay.BackingPartition, FSType: "ext4"}
	for c := (drivebay.Capacity{}); c.Available < 4*50e9; time.Sleep(10 * time.Millisecond) {
		if c, err = volumes.Capacity(ctx, class); err != nil && !errors.Is(err, drivebay.ErrUnavailable) { // not all drives are read yet
			t.Fatal(err)
		}
	}
	sim.PutLink(fuzzRoot + "/link")
	return d
}

func mountsOf(t testing.TB, sim *hostsim.Machine) (targets []string) {
	all, err := sim.Mounts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		targets = append(targets, m.Target)
	}
	return targets
}

// FuzzDriver sends requests that are in order, mutated ones and plain bytes to all
// services: none panics, none outlasts its deadline, and nothing outside of the roots is
// made, mounted or written to.
//
//	make fuzz FUZZ=FuzzDriver FUZZTIME=1000000x
func FuzzDriver(f *testing.F) {
	ops := operations()
	for i := range ops {
		for seed := range uint64(8) {
			f.Add(uint8(i), seed, []byte(nil))
		}
	}
	for _, r := range rules {
		b, err := proto.Marshal(r.req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(slices.Index(ops, callOf(r.req))), uint64(0), b)
	}
	d := newDriver(f)
	f.Fuzz(func(t *testing.T, n uint8, seed uint64, b []byte) {
		d.try(t, ops[int(n)%len(ops)], rand.New(rand.NewPCG(seed, 1)), b)
	})
}

// messages is how many TestDriverScrambled sends.
var messages = flag.Int("messages", 4000, "messages that TestDriverScrambled sends to the whole driver")

// TestDriverScrambled does the same with four callers at once and without looking
// for new ways through the code, which is many times faster.
//
//	go test -run TestDriverScrambled -timeout 0 ./csi -messages 1000000
func TestDriverScrambled(t *testing.T) {
	ops, d := operations(), newDriver(t)
	var next atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(*messages) && !t.Failed(); i = next.Add(1) {
				r := rand.New(rand.NewPCG(uint64(i), 2))
				d.try(t, ops[r.IntN(len(ops))], r, nil)
				if i%50_000 == 0 {
					t.Logf("%d messages", i)
				}
			}
		})
	}
	all.Wait()
	d.untouched(t)
	ends := map[codes.Code]int64{}
	for code := range codes.Code(17) {
		if n := d.ends[code].Load(); n > 0 {
			ends[code] = n
		}
	}
	t.Logf("%d messages ended with %v", *messages, ends)
	// The callers are not in step: of few messages none may meet a volume in the state it needs.
	if *messages >= 4000 && (ends[codes.OK] == 0 || ends[codes.InvalidArgument] == 0 || ends[codes.FailedPrecondition] == 0) {
		t.Errorf("they ended with %v", ends)
	}
}

// try sends one message, and looks at what has become of the machine.
func (d *driver) try(t *testing.T, op string, r *rand.Rand, b []byte) {
	const (
		patience = 5 * time.Second  // of the caller; the work goes on. A fuzz worker has 10 s for one input.
		late     = 20 * time.Second // for a machine that does much else
	)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var outside map[string]host.PlaceKind
	wrong, began := false, time.Now()
	resp, err := d.call(ctx, op, func(into proto.Message) error {
		err := proto.Unmarshal(b, into)
		wrong = err != nil
		if len(b) == 0 {
			fillIn(r, op, into)
		}
		outside = d.outside(into.ProtoReflect())
		return err
	})
	if wrong { // gRPC refuses it before we see it
		return
	}
	d.ends[status.Code(err)].Add(1)
	if err := hold(resp, err); err != nil {
		t.Errorf("%s: %v", op, err)
	}
	if took := time.Since(began); took > patience+late {
		t.Errorf("%s answers after %v, and its caller had %v: %v", op, took, patience, err)
	}
	for p, kind := range outside {
		if is, _ := d.sim.LookAt(p); is != kind {
			t.Errorf("%s has made %q, which is below no root", op, p)
		}
	}
	if d.calls.Add(1)%64 == 0 {
		d.untouched(t)
	}
}

// untouched holds mounts and drives against what they may have become.
func (d *driver) untouched(t *testing.T) {
	for _, at := range mountsOf(t, d.sim) {
		if !strings.HasPrefix(at, fuzzRoot+"/") && !slices.Contains(d.before, at) {
			t.Errorf("something is mounted at %q", at)
		}
	}
	for _, s := range d.sim.Stats().Drives {
		if slices.Contains(d.system, s.Serial) && s.Writes > 0 {
			t.Errorf("drive %s is the machine's own and was written to", s.Serial)
		}
	}
}

// outside are the paths of a request that are below no root, and what is there.
func (d *driver) outside(m protoreflect.Message) map[string]host.PlaceKind {
	out := map[string]host.PlaceKind{}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Kind() == protoreflect.StringKind && !f.IsList() && strings.HasSuffix(string(f.Name()), "path") {
			// What stands for it is looked at as well: ".." is taken literally by some.
			for _, p := range []string{v.String(), path.Clean(v.String()), path.Dir(v.String())} {
				if clean := path.Clean(p); path.IsAbs(p) && !strings.HasPrefix(clean, fuzzRoot+"/") || strings.HasPrefix(clean, fuzzRoot+"/link") {
					out[p], _ = d.sim.LookAt(p)
				}
			}
		}
		return true
	})
	return out
}

var backings = []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingThin, drivebay.BackingLVM, drivebay.BackingMirror, drivebay.BackingThin, drivebay.BackingPartition}

// strangePaths are those that somebody could try.
var strangePaths = []string{fuzzRoot, fuzzRoot + "/", fuzzRoot + "/../../../etc", fuzzRoot + "/../kubelet2/x", "/var/lib/kubelet2/x", fuzzRoot + "/link", fuzzRoot + "/link/x", fuzzRoot + "/a/../../../../x",
	"/", "/etc", "/new", "/boot/new", "relative/path", "../up", "", ".", "//x", fuzzRoot + "//a///b/", fuzzRoot + "/./a/.", fuzzRoot + "/a\x00b", fuzzRoot + "/" + strings.Repeat("n", 256),
	fuzzRoot + strings.Repeat("/d", 2100), fuzzRoot + "/\n\t ", fuzzRoot + "/\xff\xfe", "/proc/self/root" + fuzzRoot + "/x", fuzzRoot + "/staging-0/inside", fuzzRoot + "/staging-1", fuzzRoot + "/target-0-0"}

// fillIn makes a request that is in order for one of six volumes, and then spoils
// most of them a little.
func fillIn(r *rand.Rand, op string, into proto.Message) {
	n := r.IntN(len(backings))
	use := mount(writer, "ext4")
	if n >= 4 {
		use = block(writer)
	}
	id, snap := idOf("volume", nameOf("volume", n)), idOf("snapshot", nameOf("snapshot", n))
	staging, target := fmt.Sprintf("%s/staging-%d", fuzzRoot, n), fmt.Sprintf("%s/target-%d-%d", fuzzRoot, n, r.IntN(2))
	size := &wire.CapacityRange{RequiredBytes: int64(1+r.IntN(3)) << 28}
	ready := map[string]proto.Message{
		"CreateVolume":               &wire.CreateVolumeRequest{Name: nameOf("volume", n), VolumeCapabilities: uses(use), CapacityRange: &wire.CapacityRange{RequiredBytes: 1 << 28}, Parameters: map[string]string{drivebay.ParameterBacking: string(backings[n])}},
		"DeleteVolume":               &wire.DeleteVolumeRequest{VolumeId: id},
		"ValidateVolumeCapabilities": &wire.ValidateVolumeCapabilitiesRequest{VolumeId: id, VolumeCapabilities: uses(use)},
		"ControllerGetVolume":        &wire.ControllerGetVolumeRequest{VolumeId: id},
		"ControllerGetVolumeHealth":  &wire.ControllerGetVolumeHealthRequest{VolumeId: id},
		"ControllerExpandVolume":     &wire.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: size},
		"CreateSnapshot":             &wire.CreateSnapshotRequest{Name: nameOf("snapshot", n), SourceVolumeId: id},
		"DeleteSnapshot":             &wire.DeleteSnapshotRequest{SnapshotId: snap},
		"GetSnapshot":                &wire.GetSnapshotRequest{SnapshotId: snap},
		"NodeStageVolume":            &wire.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging, VolumeCapability: use},
		"NodeUnstageVolume":          &wire.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging},
		"NodePublishVolume":          &wire.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: use, Readonly: r.IntN(4) == 0},
		"NodeUnpublishVolume":        &wire.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target},
		"NodeGetVolumeStats":         &wire.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: target, StagingTargetPath: staging},
		"NodeGetVolumeHealth":        &wire.NodeGetVolumeHealthRequest{VolumeId: id, VolumePublishPath: target, StagingTargetPath: staging},
		"NodeExpandVolume":           &wire.NodeExpandVolumeRequest{VolumeId: id, VolumePath: target, StagingTargetPath: staging, CapacityRange: size},
	}[op]
	if ready != nil {
		proto.Merge(into, ready)
	}
	switch r.IntN(4) {
	case 0:
		scramble(r, into.ProtoReflect(), 3)
	case 1:
		spoilPaths(r, into.ProtoReflect())
	}
}

// spoilPaths puts strange paths where paths are, or mutates the one that is there.
func spoilPaths(r *rand.Rand, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !strings.HasSuffix(string(f.Name()), "path") || f.Kind() != protoreflect.StringKind || r.IntN(3) == 0 {
			continue
		}
		p := strangePaths[r.IntN(len(strangePaths))]
		if is := m.Get(f).String(); is != "" && r.IntN(2) == 0 {
			at := r.IntN(len(is) + 1)
			p = is[:at] + []string{"/../", "/./", "\x00", "/", "..", p, strings.Repeat("/..", 8)}[r.IntN(7)] + is[at:]
		}
		m.Set(f, protoreflect.ValueOfString(p))
	}
}

func nameOf(kind string, n int) string { return fmt.Sprintf("%s-%d", kind, n) }
