package volume_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// The hammer does one operation after the other, drawn at random, with a simulated machine,
// and holds what comes of it against a model that knows every acknowledged byte.
//
//	DRIVEBAY_HAMMER_TIME   how long it goes on, with a new machine for each seed (20s)
//	DRIVEBAY_HAMMER_STEPS  the most steps in all (1500)
//	DRIVEBAY_HAMMER_WORKERS how many machines run at the same time, each with a seed of its own (1)
//	DRIVEBAY_HAMMER_FROM   the first seed (1): so a long run goes on where the last one ended
//	DRIVEBAY_HAMMER_SEED   this seed alone, for as many steps as STEPS says
//	DRIVEBAY_HAMMER_WITHOUT operations, faults of drives and assertions to leave out
//	DRIVEBAY_HAMMER_LOG    a file for the log of the daemon, with every step
//	DRIVEBAY_HAMMER_SKIP   steps to leave out, "3,17-20": the others draw the same numbers

// stepsOfSeed is how many operations a machine goes through.
const stepsOfSeed = 250

func TestHammer(t *testing.T) {
	limit, steps := setting(t, "TIME", 20*time.Second, time.ParseDuration), setting(t, "STEPS", 1500, strconv.Atoi)
	began := time.Now()
	if seed := setting(t, "SEED", -1, strconv.Atoi); seed >= 0 {
		hammer(t, uint64(seed), min(steps, stepsOfSeed), &atomic.Bool{})
		return
	}
	if limit > time.Minute { // a long run has the memory to itself
		defer debug.SetGCPercent(debug.SetGCPercent(800))
	}
	var late atomic.Bool // a clock of its own: that of a simulated machine stands still while it works
	defer time.AfterFunc(limit, func() { late.Store(true) }).Stop()
	var done, taken atomic.Int64
	from := setting(t, "FROM", 1, strconv.Atoi)
	machines := func(t *testing.T) {
		for !late.Load() && !t.Failed() {
			i := int(taken.Add(1) - 1)
			left := steps - i*stepsOfSeed
			if left <= 0 {
				return
			}
			done.Add(int64(hammer(t, uint64(from+i), min(stepsOfSeed, left), &late)))
		}
		if t.Failed() { // the others end as well
			late.Store(true)
		}
	}
	if workers := setting(t, "WORKERS", 1, strconv.Atoi); workers == 1 {
		machines(t)
	} else {
		t.Run("machines", func(t *testing.T) {
			for i := range workers {
				t.Run(fmt.Sprint(i+1), func(t *testing.T) { t.Parallel(); machines(t) })
			}
		})
	}
	last := from + min(int(taken.Load()), (steps+stepsOfSeed-1)/stepsOfSeed) - 1
	t.Logf("%d steps of seeds %d to %d in %v", done.Load(), from, last, time.Since(began).Round(time.Millisecond))
}

func setting[V any](t *testing.T, name string, usual V, parse func(string) (V, error)) V {
	t.Helper()
	text := os.Getenv("DRIVEBAY_HAMMER_" + name)
	if text == "" {
		return usual
	}
	v, err := parse(text)
	if err != nil {
		t.Fatalf("DRIVEBAY_HAMMER_%s: %v", name, err)
	}
	return v
}

// world is a machine under the hammer.
type world struct {
	*stand
	*model
	*killer
	clock       *jumpy
	tools       *illTools
	full        bool                   // the disk of the store
	born        []string               // serial numbers that the drives were made with
	duplicateOf [2]string              // a drive, and the one that has its serial number
	heals       map[string]*time.Timer // of drives that hang or are slow
	ids         map[string]string      // drive id -> serial number
	pods        map[*client]*pod
	spoiled     map[string][]scar // what a hand overwrote, by serial number
	snaps       []*keptSnapshot
	backup      *backup
	history     []string
	stopMgr     func()
	started     time.Time // the daemon, or its engine alone
	names       int
	without     map[string]bool
}

// jumpy is a clock that is set while no daemon runs: one that runs counts its own time by the
// kernel's monotonic clock.
type jumpy struct{ off atomic.Int64 }

func (c *jumpy) Now() time.Time                         { return time.Now().Add(time.Duration(c.off.Load())) }
func (c *jumpy) After(d time.Duration) <-chan time.Time { return time.After(d) }

var hammerDrives = hostsim.Spec{
	Enclosures: []hostsim.Enclosure{{Name: "front", Kind: hostsim.EnclosurePCI, Bays: 8, First: 1}, {Name: "back", Kind: hostsim.EnclosureSES, Bays: 4, First: 11}},
	Drives: []hostsim.Group{
		{Bays: "1-4", Kind: hostsim.KindNVMe, Serial: "OURS{n}", Size: "3GB"}, {Bays: "11-12", Kind: hostsim.KindSATAHDD, Serial: "OURS{n}", Size: "3GB"},
		{Bays: "5", Kind: hostsim.KindNVMe, Serial: "SPARE{n}", Size: "3GB"}, {Bays: "13", Kind: hostsim.KindSATAHDD, Serial: "SPARE{n}", Size: "3GB"},
		{Bays: "6", Kind: hostsim.KindNVMe, Serial: "OTHER{n}", Size: "3GB", Content: "gpt"}},
}

// hammer runs the steps of a seed, and says how many it did.
func hammer(t *testing.T, seed uint64, steps int, late *atomic.Bool) (done int) {
	t.Helper()
	skip := skipped(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed)
		defer w.close()
		for done = 0; done < steps && len(w.errs) == 0 && !late.Load(); done++ {
			if !skip[done+1] {
				w.step(done+1, rand.New(rand.NewPCG(seed, uint64(done+1))))
			}
		}
		if len(w.errs) == 0 {
			w.note(done, "settle", w.settle())
		}
		w.report(seed, done)
	})
	return done
}

// withoutOf are the operations and assertions that are left out.
func withoutOf(t *testing.T) map[string]bool {
	t.Helper()
	without := map[string]bool{}
	for name := range strings.FieldsFuncSeq(os.Getenv("DRIVEBAY_HAMMER_WITHOUT"), func(r rune) bool { return r == ',' }) {
		without[name] = true
	}
	return without
}

// skipped are the steps that the replay leaves out.
func skipped(t *testing.T) map[int]bool {
	out := map[int]bool{}
	for part := range strings.FieldsFuncSeq(os.Getenv("DRIVEBAY_HAMMER_SKIP"), func(r rune) bool { return r == ',' }) {
		first, last, found := strings.Cut(part, "-")
		if !found {
			last = first
		}
		a, err1 := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil {
			t.Fatalf("DRIVEBAY_HAMMER_SKIP: %q", part)
		}
		for ; a <= b; a++ {
			out[a] = true
		}
	}
	return out
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	clock := &jumpy{}
	sim, err := hostsim.New(hammerDrives, hostsim.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{stand: &stand{T: t, sim: sim, st: store.Memory()}, killer: &killer{}, clock: clock, ids: map[string]string{}, pods: map[*client]*pod{}, spoiled: map[string][]scar{},
		model: &model{marks: map[uint64]*stamp{}, claimed: map[string]bool{}, keep: map[string][]extent{}, faults: map[string]time.Time{}, ended: map[string]time.Time{}, mayReturn: map[string]map[uint64]bool{}}}
	w.without, w.heals = withoutOf(t), map[string]*time.Timer{}
	w.opt = volume.Options{After: w.killer.step, Heal: seed%2 == 0, Tick: 10 * time.Second, Log: hammerLog(t)}
	w.tools = &illTools{Machine: sim}
	w.machine, w.lvm = w.tools, w.tools
	for _, d := range sim.View() {
		w.born = append(w.born, d.Serial)
		w.claimed[d.Serial] = strings.HasPrefix(d.Serial, "OURS")
		if strings.HasPrefix(d.Serial, "OTHER") {
			w.keep[d.Serial] = []extent{{0, d.Size}}
		}
	}
	sim.Watch(w.wrote)
	w.boot()
	for _, d := range w.mgr.Snapshot().Drives {
		w.ids[d.ID] = d.Serial
	}
	return w
}

// boot starts the daemon: the manager and the engine, at the same time.
func (w *world) boot() {
	w.Helper()
	var claim drivebay.Selectors
	w.must(claim.UnmarshalText([]byte("serial=OURS*")))
	w.mgr = drivemgr.New(w.sim, w.st, drivemgr.Options{Claim: claim, Tick: w.opt.Tick, Log: w.opt.Log})
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error)
	mgr := w.mgr
	go func() { done <- mgr.Run(ctx) }()
	w.stopMgr = func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	}
	w.doubt()
	w.over = &fullStore{Mem: w.st, full: w.full}
	w.begin()
	w.started = time.Now()
	time.Sleep(40 * time.Second)
}

// start starts the engine alone.
func (w *world) start() {
	w.Helper()
	w.doubt()
	w.stand.start()
	w.started = time.Now()
}

// doubt: with a full disk, what the daemon begins with is older than what was done.
func (w *world) doubt() {
	if !w.full {
		return
	}
	for _, c := range w.volumes {
		c.doubtful = true
		w.lifted("unmounted " + c.name)
		w.lifted("unreadable " + c.name)
	}
}

// shutDown ends the daemon, at whatever it is.
func (w *world) shutDown() {
	w.stop()
	w.stop = nil
	w.stopMgr()
}

func (w *world) close() {
	for _, c := range w.volumes {
		w.letGo(c)
	}
	w.sim.Watch(nil)
	w.sim.Close()
	w.shutDown()
}

func (w *world) note(number int, name, came string) {
	w.history = append(w.history, fmt.Sprintf("%4d %-12s %s", number, name, came))
	if w.opt.Log != nil {
		w.opt.Log.Info("STEP", "n", number, "op", name, "came", came)
	}
}

func hammerLog(t *testing.T) *slog.Logger {
	t.Helper()
	name := os.Getenv("DRIVEBAY_HAMMER_LOG")
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// report fails the test with what is needed to see it again.
func (w *world) report(seed uint64, done int) {
	w.Helper()
	if len(w.errs) == 0 {
		return
	}
	last := w.history[max(0, len(w.history)-40):]
	w.Errorf("seed %d, step %d:\n  %s\n\nthe last steps:\n%s\n\nfaults: %v\n\nagain: DRIVEBAY_HAMMER_SEED=%d DRIVEBAY_HAMMER_STEPS=%d go test -count=1 -run TestHammer ./volume",
		seed, done, strings.Join(w.errs, "\n  "), strings.Join(last, "\n"), w.faults, seed, done)
}

// step does one operation and looks at everything after it.
func (w *world) step(number int, r *rand.Rand) {
	w.Helper()
	w.emptied()
	w.passes(r)
	kill := r.IntN(8) == 0
	var op operation
	came := "-"
	for range 8 { // not each can be done at each time
		if kill {
			w.arm(1 + r.IntN(6))
		}
		if op = draw(r); w.without[op.name] {
			continue
		}
		if came = op.do(w, r); came != "-" || w.dead() {
			break
		}
	}
	if w.dead() {
		came += w.revive(r)
	}
	w.arm(0)
	w.note(number, op.name, came)
	time.Sleep([]time.Duration{time.Millisecond, time.Second, 70 * time.Second}[r.IntN(3)])
	w.check()
}

// revive starts the daemon anew after it was killed in the middle of its work.
func (w *world) revive(r *rand.Rand) string {
	w.arm(0)
	if r.IntN(4) == 0 {
		return "; killed with " + w.cutPower(r)
	}
	if r.IntN(2) == 0 {
		w.start()
		return "; killed"
	}
	w.shutDown()
	w.boot()
	return "; killed with all it knew of drives"
}

// draw picks an operation by its weight.
func draw(r *rand.Rand) operation {
	sum := 0
	for _, op := range operations {
		sum += op.weight
	}
	n := r.IntN(sum)
	i := slices.IndexFunc(operations, func(op operation) bool { n -= op.weight; return n < 0 })
	return operations[i]
}
