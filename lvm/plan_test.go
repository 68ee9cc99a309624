package lvm

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// replay answers every report with the next recording, the last one for ever,
// and keeps the commands. It is a tape, not a model of lvm: what plans do to
// real groups is tested in the lab.
type replay struct {
	t       *testing.T
	reports []string
	argv    [][]string
}

func (p *replay) Run(_ context.Context, argv ...string) ([]byte, error) {
	p.argv = append(p.argv, argv)
	if argv[1] != "fullreport" {
		return nil, nil
	}
	name := p.reports[0]
	if len(p.reports) > 1 {
		p.reports = p.reports[1:]
	}
	return os.ReadFile("testdata/" + name + ".json")
}

var allDevices = []string{"/dev/nvme0n1", "/dev/nvme1n1", "/dev/sda"}

// TestIsolated: no command leaves without the walls, none that labels a drive
// answers lvm's questions.
func TestIsolated(t *testing.T) {
	tape := &replay{t: t, reports: []string{"healthy"}}
	sys := New(tape, "/var/lib/x")
	v := Volume{Group: "drivebay-all", Name: "drivebay-new", Size: 1 << 20}
	var steps []Step
	for _, more := range [][]Step{first(CreateGroup("drivebay-all", []string{"t"}, NewPV{"U", "/dev/sdx"})), ExtendGroup("drivebay-all", NewPV{"U", "/dev/sdx"}),
		first(CreateLinear(v)), first(CreatePool(v, 1<<20)), first(CreateThin(v, "drivebay-pool")), first(Snapshot(v, "drivebay-thin"))} {
		steps = append(steps, more...)
	}
	for _, s := range steps {
		report := recorded(t, "healthy")
		report.Free = append(report.Free, PV{UUID: "U", Device: "/dev/sdx"})
		command, err := expand(report, s.Argv)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if _, err := sys.run(t.Context(), allDevices, command); err != nil {
			t.Fatal(err)
		}
		if labels := []string{"pvcreate", "vgcreate", "vgextend"}; slices.Contains(labels, command[0]) {
			for _, a := range command {
				if a == "--yes" || strings.HasPrefix(a, "-y") || strings.HasPrefix(a, "-f") || a == "--force" {
					t.Errorf("%v answers lvm's questions", command)
				}
			}
		}
	}
	for _, argv := range tape.argv {
		text := strings.Join(argv, " ")
		for _, want := range []string{"lvm ", " --config ", "--devices /dev/nvme0n1 --devices /dev/nvme1n1 --devices /dev/sda ", "scan_lvs=0", "hints=\"none\"", "/var/lib/x/archive"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q", text, want)
			}
		}
	}
	for _, bad := range [][]string{nil, {"sda"}, {"/dev/sda,/dev/sdb"}} {
		if _, err := sys.run(t.Context(), bad, []string{"lvs"}); !errors.Is(err, drivebay.ErrInvalid) {
			t.Errorf("devices %v are taken: %v", bad, err)
		}
	}
}

func first(steps []Step, err error) []Step {
	if err != nil {
		panic(err)
	}
	return steps
}

// TestRunSkips: what is done is not done again, and a command whose work does not
// show is a failure.
func TestRunSkips(t *testing.T) {
	tape := &replay{t: t, reports: []string{"healthy"}}
	sys := New(tape, "")
	mirror := recorded(t, "healthy").Group("drivebay-all")
	v := Volume{Group: "drivebay-all", Name: "drivebay-mir", Size: 40 << 20, PVs: mirror.PhysicalVolumesOf("drivebay-mir")}
	if _, err := sys.Run(t.Context(), v.Group, allDevices, first(CreateMirror(v))); err != nil || len(tape.argv) != 1 {
		t.Errorf("a mirror that is there: %d commands, %v", len(tape.argv), err)
	}
	if _, err := sys.Run(t.Context(), v.Group, allDevices, first(CreateLinear(v))); !errors.Is(err, ErrExists) {
		t.Errorf("a linear volume where a mirror is: %v", err)
	}
	tape.argv = nil
	if _, err := sys.Run(t.Context(), v.Group, allDevices, Extend(v.Group, v.Name, 80<<20)); !errors.Is(err, ErrUnknown) || len(tape.argv) != 3 {
		t.Errorf("an extension that does not show: %d commands, %v", len(tape.argv), err)
	}
	tape.argv, tape.reports = nil, []string{"lost"}
	g := recorded(t, "lost").Group("drivebay-lost")
	for name, steps := range map[string][]Step{
		"nobody said that it is lost": RemoveMissing(g.Name),
		"the mirror has a leg on it":  RemoveMissing(g.Name, g.Missing()...),
		"it is nowhere":               ReduceGroup(g.Name, g.Missing()...),
	} {
		if _, err := sys.Run(t.Context(), g.Name, allDevices, steps); !errors.Is(err, ErrMissingPV) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if slices.ContainsFunc(tape.argv, func(a []string) bool { return a[1] != "fullreport" }) {
		t.Errorf("something was done all the same: %v", tape.argv)
	}
}

func TestOurs(t *testing.T) {
	r := &Report{Groups: []Group{{Name: "g", Tags: []string{Tag}}}}
	if err := errors.Join(requireOurs(r, "g"), requireOurs(r, "other")); err != nil {
		t.Error(err)
	}
	r.Groups = append(r.Groups, Group{Name: "g", Tags: []string{Tag}})
	if err := requireOurs(r, "g"); !errors.Is(err, drivebay.ErrAmbiguous) {
		t.Error(err)
	}
	r.Groups[1].Tags = nil
	if err := requireOurs(r, "g"); !errors.Is(err, drivebay.ErrRefused) {
		t.Error(err)
	}
}

// TestHalfMade: a volume that was interrupted is made anew.
func TestHalfMade(t *testing.T) {
	v := Volume{Group: "g", Name: "v", Size: 5 << 20}
	steps := first(CreateLinear(v))
	done := func(lvs ...LV) (out []bool) {
		r := &Report{Groups: []Group{{Name: "g", Tags: []string{Tag}, LVs: lvs}}}
		for _, s := range steps {
			out = append(out, s.Done(r))
		}
		return out
	}
	whole := LV{Name: "v", Type: "linear", Size: 8 << 20}
	half := whole
	half.Tags = []string{making}
	if got := done(); !slices.Equal(got, []bool{true, false, false}) {
		t.Error("nothing there:", got)
	}
	if got := done(half); !slices.Equal(got, []bool{false, true, false}) {
		t.Error("half made:", got)
	}
	if got := done(whole); !slices.Equal(got, []bool{true, true, true}) {
		t.Error("made:", got)
	}
}

func TestRefusedPlans(t *testing.T) {
	v := Volume{Group: "g", Name: "v", Size: 1}
	noSize, badTag, badName := v, v, v
	noSize.Size, badTag.Tags, badName.Name = 0, []string{"a b"}, "a b"
	for what, try := range map[string]func() ([]Step, error){
		"no size":       func() ([]Step, error) { return CreateLinear(noSize) },
		"a bad tag":     func() ([]Step, error) { return CreateLinear(badTag) },
		"a bad name":    func() ([]Step, error) { return CreateLinear(badName) },
		"one leg":       func() ([]Step, error) { return CreateMirror(v) },
		"no drive":      func() ([]Step, error) { return CreateGroup("g", nil) },
		"our own tag":   func() ([]Step, error) { return TagGroup("g", nil, []string{Tag}) },
		"no tag at all": func() ([]Step, error) { return TagVolume("g", "v", nil, nil) },
	} {
		if _, err := try(); !errors.Is(err, drivebay.ErrInvalid) {
			t.Errorf("%s is taken: %v", what, err)
		}
	}
}

// TestSerialised: a second change of a group waits, one of another does not.
func TestSerialised(t *testing.T) {
	sys := New(nil, "")
	unlock, err := sys.lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sys.lock(ended, "a"); !errors.Is(err, drivebay.ErrPending) {
		t.Errorf("a second change begins: %v", err)
	}
	other, err := sys.lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	unlock()
	again, err := sys.lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// slowChange is a replay whose changes take until end is closed, or until their context ends.
type slowChange struct {
	*replay
	begun, end chan struct{}
}

func (p slowChange) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if argv[1] != "fullreport" {
		close(p.begun)
		select {
		case <-p.end:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return p.replay.Run(ctx, argv...)
}

// TestChangeIsNotKilled: a command that changes a group goes on after its caller has gone, and no other
// change of the group begins before it ends. After the caller has gone, no further command begins.
func TestChangeIsNotKilled(t *testing.T) {
	tape := slowChange{&replay{t: t, reports: []string{"healthy"}}, make(chan struct{}), make(chan struct{})}
	sys := New(tape, "")
	ctx, cancel := context.WithCancel(t.Context())
	came := make(chan error, 1)
	go func() {
		_, err := sys.Run(ctx, "drivebay-all", allDevices, Extend("drivebay-all", "drivebay-mir", 80<<20))
		came <- err
	}()
	<-tape.begun
	cancel()
	select {
	case err := <-came:
		t.Fatalf("the change was cut short: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	ended, end := context.WithTimeout(t.Context(), time.Millisecond)
	defer end()
	if unlock, err := sys.lock(ended, "drivebay-all"); err == nil {
		unlock()
		t.Error("another change begins before this one has ended")
	}
	close(tape.end)
	if <-came; !slices.ContainsFunc(tape.argv, func(a []string) bool { return a[1] == "lvextend" }) {
		t.Errorf("lvextend has not ended: %v", tape.argv)
	}
	n := len(tape.argv)
	if err := sys.change(ctx, allDevices, []string{"lvextend"}); !errors.Is(err, context.Canceled) || len(tape.argv) > n {
		t.Errorf("a change begins for a caller that has gone: %v", err)
	}
}

// TestPollingIsStopped: a command that waits for a copy ends with its caller, so that the copy can be ended
// in another way.
func TestPollingIsStopped(t *testing.T) {
	tape := slowChange{&replay{t: t, reports: []string{"healthy"}}, make(chan struct{}), make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	came := make(chan error, 1)
	go func() {
		_, err := New(tape, "").step(ctx, recorded(t, "healthy"), allDevices, EndMove("drivebay-all", recorded(t, "healthy").Group("drivebay-all").PVs[0].UUID)[0])
		came <- err
	}()
	<-tape.begun
	cancel()
	if err := <-came; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// TestStranded: parts that are active without what they are parts of are taken away
// before anything else is done; those in use are not.
func TestStranded(t *testing.T) {
	g := recorded(t, "healthy").Group("drivebay-all")
	if got := g.partsLeftActive(); len(got) != 0 {
		t.Errorf("of a group at work: %v", got)
	}
	g.LV("drivebay-pool").Active = false // as lvm tells of a pool whose volumes are in use
	if got := g.partsLeftActive(); len(got) != 0 {
		t.Errorf("of a pool whose volumes are in use: %v", got)
	}
	for i := range g.LVs {
		if lv := &g.LVs[i]; lv.Pool != "" || lv.Name == "drivebay-mir" {
			lv.Active = false
		}
	}
	want := []string{"drivebay-all/drivebay-mir_rimage_0", "drivebay-all/drivebay-mir_rimage_1", "drivebay-all/drivebay-mir_rmeta_0", "drivebay-all/drivebay-mir_rmeta_1",
		"drivebay-all/drivebay-pool_tdata", "drivebay-all/drivebay-pool_tmeta"}
	got := g.partsLeftActive()
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestLeftovers: a volume without a name goes when it can only be what was left over.
func TestLeftovers(t *testing.T) {
	const size = 4 << 20
	left := LV{Name: "lvol1", Type: "linear", Size: size, Active: true}
	for name, c := range map[string]struct {
		change func(*LV)
		others []LV
		goes   bool
	}{
		"left over":             {func(*LV) {}, nil, true},
		"of an unfinished pool": {func(*LV) {}, []LV{{Name: "drivebay-pool", Tags: []string{making}}}, true},
		"the pool is there":     {func(*LV) {}, []LV{{Name: "drivebay-pool"}}, false},
		"somebody named it":     {func(lv *LV) { lv.Name = "lvol1a" }, nil, false},
		"somebody tagged it":    {func(lv *LV) { lv.Tags = []string{"x"} }, nil, false},
		"somebody uses it":      {func(lv *LV) { lv.Open = true }, nil, false},
		"another size":          {func(lv *LV) { lv.Size++ }, nil, false},
		"a part of another":     {func(lv *LV) { lv.Parent = "drivebay-pool" }, nil, false},
	} {
		lv := left
		c.change(&lv)
		r := &Report{Groups: []Group{{Name: "g", Tags: []string{Tag}, LVs: append(c.others, lv)}}}
		goes := false
		for _, s := range ClearLeftovers("g", "drivebay-pool", size) {
			goes = goes || !s.Done(r)
		}
		if goes != c.goes {
			t.Errorf("%s: goes %v", name, goes)
		}
	}
}
