package drivemgr_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/health"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
)

// frugal counts the files that are read.
type frugal struct {
	*hostsim.Machine
	mu    sync.Mutex
	files map[string]*reads
}

type reads struct{ all, failed int }

func (f *frugal) ReadFile(name string) ([]byte, error) {
	b, err := f.Machine.ReadFile(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files == nil {
		return b, err
	}
	r := f.files[name]
	if r == nil {
		r = &reads{}
		f.files[name] = r
	}
	if r.all++; err != nil {
		r.failed++
	}
	return b, err
}

// asked is how often each file was read while something went on.
func (f *frugal) asked(meanwhile func()) map[string]*reads {
	f.mu.Lock()
	f.files = map[string]*reads{}
	f.mu.Unlock()
	meanwhile()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.files
}

func onFrugal(t *testing.T, test func(*frugal, *drivemgr.Manager)) {
	t.Helper()
	f := &frugal{}
	opt := drivemgr.Options{Rescan: 24 * time.Hour, Poll: 24 * time.Hour}
	onSeen(t, hostsim.Generate(12), nil, opt, func(m *hostsim.Machine) host.Machine { f.Machine = m; return f }, func(r *rig) { test(f, r.mgr) })
}

// TestIdleTicks: a tick reads few files, and looks for none that is not there; a node
// has a hundred drives and hundreds of filesystems.
func TestIdleTicks(t *testing.T) {
	onFrugal(t, func(f *frugal, mgr *drivemgr.Manager) {
		ticks, all := 0, 0
		for name, r := range f.asked(func() { time.Sleep(200*time.Second - time.Millisecond) }) { // a hundred ticks
			ticks, all = max(ticks, r.all), all+r.all
			if r.failed > 20 || strings.Contains(name, "/fs/") && r.all > 40 { // md0 lies on two
				t.Errorf("%s was asked for %d times, %d times in vain", name, r.all, r.failed)
			}
		}
		drives := len(mgr.Snapshot().Drives)
		if each := float64(all) / float64(ticks*drives); ticks < 90 || each > 8 {
			t.Errorf("%d ticks, %.1f files for each of %d drives", ticks, each, drives)
		}
	})
}

// TestNewFilesystem: what is new on a drive is asked for its errors at once.
func TestNewFilesystem(t *testing.T) {
	onFrugal(t, func(f *frugal, mgr *drivemgr.Manager) {
		s := mgr.Snapshot()
		i := slices.IndexFunc(s.Drives, func(d drivebay.Drive) bool { return len(d.Uses) == 0 })
		disk, err := f.OpenDisk(t.Context(), "/dev/"+s.Drives[i].Name, true)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 { // wherever in ten seconds it falls
			for _, change := range []func() error{func() error { return disk.AddPartition(1, 1<<20, 1<<30) }, func() error { return disk.RemovePartition(1) }} {
				files := f.asked(func() {
					if err := change(); err != nil {
						t.Fatal(err)
					}
					time.Sleep(1100 * time.Millisecond)
				})
				if files["sys/fs/ext4/"+s.Drives[i].Name+"/errors_count"] == nil {
					t.Error("nobody asked")
				}
			}
		}
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
}

// rig is a manager on a simulated machine, in a bubble whose clock stands still
// while anybody works.
type rig struct {
	*testing.T
	sim *hostsim.Machine
	mgr *drivemgr.Manager
}

func onRack(t *testing.T, drives int, st drivemgr.Store, opt drivemgr.Options, test func(*rig)) {
	t.Helper()
	onSpec(t, hostsim.Generate(drives), st, opt, test)
}

func onSpec(t *testing.T, spec hostsim.Spec, st drivemgr.Store, opt drivemgr.Options, test func(*rig)) {
	t.Helper()
	onSeen(t, spec, st, opt, func(m *hostsim.Machine) host.Machine { return m }, test)
}

// onSeen is a machine that the manager sees in some way.
func onSeen(t *testing.T, spec hostsim.Spec, st drivemgr.Store, opt drivemgr.Options, as func(*hostsim.Machine) host.Machine, test func(*rig), sims ...hostsim.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim, err := hostsim.New(spec, sims...)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := &rig{T: t, sim: sim, mgr: drivemgr.New(as(sim), st, opt)}
		done := make(chan error)
		go func() { done <- r.mgr.Run(ctx) }()
		defer func() {
			cancel()
			sim.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(20 * time.Second) // listed, and everybody looked at
		test(r)
	})
}

// inject lets a fault happen to a drive; drives are named by their serials here.
func (r *rig) inject(serial, fault string, args ...string) {
	r.Helper()
	f := hostsim.Fault{Drive: serial, Fault: fault, Args: hostsim.Args{}}
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		f.Args[k] = v
	}
	if err := r.sim.Inject(f); err != nil {
		r.Fatalf("%s of drive %s: %v", fault, serial, err)
	}
}

// pick is the n-th drive of a kind that sits in a bay.
func (r *rig) pick(p drivebay.Protocol, n int) *drivebay.Drive {
	r.Helper()
	s := r.mgr.Snapshot()
	for i := range s.Drives {
		if d := &s.Drives[i]; d.Protocol == p && d.Slot.Bay != "" {
			if n--; n < 0 {
				return d
			}
		}
	}
	r.Fatalf("too few drives that speak %v", p)
	return nil
}

func (r *rig) drive(id string) *drivebay.Drive {
	r.Helper()
	d, ok := r.mgr.Snapshot().Find(id)
	if !ok {
		r.Fatalf("no drive %s", id)
	}
	return d
}

func TestRackIsGood(t *testing.T) {
	onRack(t, 24, nil, drivemgr.Options{}, func(r *rig) {
		s := r.mgr.Snapshot()
		if len(s.Drives) != 24 || !s.Complete {
			r.Fatalf("%d drives, complete %v: %v", len(s.Drives), s.Complete, s.Problems)
		}
		system := 0
		for _, d := range s.Drives {
			if d.Health != drivebay.HealthGood {
				r.Errorf("%s is %v: %+v\n%+v", d.Name, d.Health, d.Findings, d.Evidence)
			}
			if d.Evidence == nil || len(d.Evidence.Problems) > 0 {
				r.Errorf("%s (%v): %+v", d.Name, d.Protocol, d.Evidence)
			}
			if d.Serial == "" || d.Model == "" || d.Size == 0 || d.Usage != drivebay.UsageInUse || d.IdentityIssue != "" {
				r.Errorf("%s is not whole: %+v", d.Name, d)
			}
			if d.System {
				system++
			} else if d.Content.Kind != drivebay.ContentBlank {
				r.Errorf("%s holds %+v", d.Name, d.Content)
			}
		}
		if system != 2 {
			r.Errorf("%d system drives, want the 2 of the mirror", system)
		}
	})
}

// A pulled drive is OFFLINE within a second, by uevent, and itself when it is back.
func TestPullAndReturn(t *testing.T) {
	onRack(t, 24, nil, drivemgr.Options{}, func(r *rig) {
		was := r.pick(drivebay.ProtocolATA, 0)
		id := was.ID
		r.inject(was.Serial, "vanish")
		time.Sleep(time.Second)
		if d := r.drive(id); d.Status != drivebay.StatusOffline || d.Health != drivebay.HealthUnknown {
			r.Errorf("a second after the pull it is %v, %v", d.Status, d.Health)
		}
		r.inject(was.Serial, "return", "rename=true")
		time.Sleep(5 * time.Second)
		d := r.drive(id)
		if d.Status != drivebay.StatusOnline || d.Health != drivebay.HealthGood || d.Slot.Bay != was.Slot.Bay {
			r.Errorf("back it is %v, %v in %q: %+v", d.Status, d.Health, d.Slot.Bay, d.Findings)
		}
		var kinds []string
		for _, e := range r.mgr.Events(0, 0) {
			if e.Drive == id {
				kinds = append(kinds, string(e.Kind))
			}
		}
		want := "DriveAppeared DriveVanished FindingAdded HealthChanged DriveReturned DriveRenamed FindingCleared HealthChanged"
		if got := strings.Join(kinds, " "); got != want {
			r.Errorf("events\n %s, want\n %s", got, want)
		}
	})
}

// A duplicated serial is reported on both drives, merges nothing, and is over
// when one of them leaves. The drive that was there first keeps its history.
func TestDuplicateSerial(t *testing.T) {
	onRack(t, 24, nil, drivemgr.Options{}, func(r *rig) {
		first, second := *r.pick(drivebay.ProtocolATA, 0), *r.pick(drivebay.ProtocolATA, 1)
		if err := r.mgr.Cordon(r.Context(), first.ID, true); err != nil {
			r.Fatal(err)
		}
		r.inject(second.Serial, "duplicate-serial", "of="+first.Slot.Bay)
		time.Sleep(5 * time.Second)
		at := func(bay drivebay.Slot) (found drivebay.Drive) {
			online := 0
			for _, d := range r.mgr.Snapshot().Drives {
				if d.Status == drivebay.StatusOnline {
					online++
				}
				if d.Status == drivebay.StatusOnline && d.Slot == bay {
					found = d
				}
			}
			if online < 23 {
				r.Errorf("only %d drives are online", online)
			}
			return found
		}
		a, b := at(first.Slot), at(second.Slot)
		if a.ID == b.ID || a.Serial != b.Serial || a.IdentityIssue == "" || b.IdentityIssue == "" {
			r.Errorf("two drives with one serial: %q (%s) and %q (%s)", a.ID, a.IdentityIssue, b.ID, b.IdentityIssue)
		}
		if !a.Cordoned || b.Cordoned {
			r.Errorf("the cordon of the first: %v, of the second: %v", a.Cordoned, b.Cordoned)
		}
		r.inject(b.Name, "vanish")
		time.Sleep(2 * time.Second)
		if d := at(first.Slot); d.ID != first.ID || d.IdentityIssue != "" || !d.Cordoned {
			r.Errorf("alone again it is %q, %q, cordoned %v", d.ID, d.IdentityIssue, d.Cordoned)
		}
	})
}

// One hung drive of 64 takes nothing from the others.
func TestOneHungDrive(t *testing.T) {
	onRack(t, 64, nil, drivemgr.Options{Tick: 10 * time.Second, Poll: time.Minute}, func(r *rig) {
		hung := r.pick(drivebay.ProtocolATA, 0)
		id := hung.ID
		r.inject(hung.Serial, "hang")
		time.Sleep(10 * time.Minute)
		now := r.sim.Now()
		for _, d := range r.mgr.Snapshot().Drives {
			if d.ID == id {
				if d.Health != drivebay.HealthBad || d.Kernel.LaneStuck < 5*time.Minute {
					r.Errorf("the hung drive is %v: %+v", d.Health, d.Findings)
				}
				continue
			}
			if age := now.Sub(d.Evidence.At); age > 2*time.Minute || d.Health != drivebay.HealthGood {
				r.Errorf("%s: evidence is %v old, %v", d.Name, age, d.Health)
			}
		}
		if err := r.mgr.SelfTest(r.Context(), id, "short"); err == nil {
			r.Error("a self-test was started on a drive that answers nothing")
		}
		r.inject(hung.Serial, "heal")
		time.Sleep(30 * time.Minute)
		if d := r.drive(id); d.Health != drivebay.HealthGood {
			r.Errorf("healed it is %v: %+v", d.Health, d.Findings)
		}
	})
}

// A drive that hangs from the start counts as one that does not answer within 4 s: readiness waits for it until
// then. It has no finding so early, and the other drives have been read.
func TestHungFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, err := hostsim.New(hostsim.Generate(12))
		if err != nil {
			t.Fatal(err)
		}
		if err := sim.Inject(hostsim.Fault{Drive: "sda", Fault: "hang"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		m, done := drivemgr.New(sim, nil, drivemgr.Options{}), make(chan error)
		go func() { done <- m.Run(ctx) }()
		defer func() {
			if err := sim.Inject(hostsim.Fault{Drive: "sda", Fault: "heal"}); err != nil {
				t.Error(err)
			}
			cancel()
			sim.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(4*time.Second + 100*time.Millisecond)
		for _, d := range m.Snapshot().Drives {
			silent := d.Kernel != nil && d.Kernel.LaneStuck > 0
			if silent != (d.Name == "sda") || len(d.Findings) > 0 || silent != (d.Content.Kind == drivebay.ContentUnknown) {
				t.Errorf("%s: does not answer: %v, content %q, findings %+v", d.Name, silent, d.Content.Kind, d.Findings)
			}
		}
	})
}

// What each fault is judged as, within two polls.
func TestFaults(t *testing.T) {
	const sata, sas, nvme = drivebay.ProtocolATA, drivebay.ProtocolSCSI, drivebay.ProtocolNVMe
	for _, c := range []struct {
		on          drivebay.Protocol
		fault, args string
		want        drivebay.Health
		code        string
	}{
		{sata, "reallocate", "n=1200", drivebay.HealthBad, "ATAReallocatedSectors"},
		{sata, "pending", "n=200", drivebay.HealthBad, "ATAPendingSectors"},
		{sata, "fail", "", drivebay.HealthBad, "OwnVerdict"},
		{sata, "bad-checksum", "", drivebay.HealthUnknown, ""},
		{sata, "garbage", "", drivebay.HealthUnknown, ""},
		{sata, "offline", "", drivebay.HealthBad, ""},
		{sas, "fail", "", drivebay.HealthBad, "OwnVerdict"},
		{sas, "reallocate", "n=1500", drivebay.HealthBad, ""},
		{nvme, "critical-warning", "bits=0x08", drivebay.HealthBad, ""},
		{nvme, "wear", "percent=95", drivebay.HealthSuspect, ""},
		{nvme, "nvme-dead", "", drivebay.HealthBad, ""},
		{nvme, "eio", "", drivebay.HealthUnknown, ""},
		{nvme, "garbage", "", drivebay.HealthUnknown, ""},
	} {
		t.Run(fmt.Sprintf("%s of %v", c.fault, c.on), func(t *testing.T) {
			onRack(t, 9, nil, drivemgr.Options{Tick: 10 * time.Second, Poll: time.Minute}, func(r *rig) {
				broken := r.pick(c.on, 0)
				id := broken.ID
				r.inject(broken.Serial, c.fault, strings.Fields(c.args)...)
				time.Sleep(5 * time.Minute)
				d := r.drive(id)
				if d.Health.Rank() < c.want.Rank() {
					r.Errorf("%v, want %v: %+v\n%+v\n%+v", d.Health, c.want, d.Findings, d.Evidence, d.Kernel)
				}
				if c.code != "" && (len(d.Findings) == 0 || d.Findings[0].Code != c.code) {
					r.Errorf("found %+v, want %s first", d.Findings, c.code)
				}
				for _, o := range r.mgr.Snapshot().Drives {
					if o.ID != id && o.Health != drivebay.HealthGood {
						r.Errorf("%s became %v: %+v", o.Name, o.Health, o.Findings)
					}
				}
			})
		})
	}
}

// A day of doing nothing: no program is run, no sleeping drive is woken, and the
// snapshot is not published anew for nothing.
func TestIdleDay(t *testing.T) {
	onRack(t, 9, nil, drivemgr.Options{Tick: time.Minute}, func(r *rig) {
		asleep := []*drivebay.Drive{r.pick(drivebay.ProtocolATA, 0), r.pick(drivebay.ProtocolSCSI, 0)}
		for _, d := range asleep {
			r.inject(d.Serial, "standby")
		}
		time.Sleep(24 * time.Hour)
		stats := r.sim.Stats()
		if stats.Runs != 0 {
			r.Errorf("an idle daemon ran %d programs", stats.Runs)
		}
		for _, d := range stats.Drives {
			if d.Wakeups != 0 {
				r.Errorf("%s was woken %d times", d.Name, d.Wakeups)
			}
		}
		for _, was := range asleep {
			if d := r.drive(was.ID); d.Health != drivebay.HealthGood || !d.Evidence.Standby {
				r.Errorf("asleep it is %v, standby %v: %+v", d.Health, d.Evidence.Standby, d.Findings)
			}
		}
	})
}

// A storm of uevents is not a storm of commands, and a lost uevent is made good.
func TestUeventStorm(t *testing.T) {
	onRack(t, 24, nil, drivemgr.Options{}, func(r *rig) {
		pages := func() (n int) {
			for _, d := range r.sim.Stats().Drives {
				n += d.Pages
			}
			return n
		}
		before := pages()
		stormy := r.pick(drivebay.ProtocolATA, 0)
		r.inject(stormy.Serial, "uevent-storm", "rate=100", "seconds=60")
		time.Sleep(70 * time.Second)
		if asked := pages() - before; asked > 7*24 {
			r.Errorf("6000 uevents asked for %d pages", asked)
		}
		r.inject(stormy.Serial, "overflow")
		time.Sleep(time.Second)
		if s := r.mgr.Snapshot(); len(s.Drives) != 24 {
			r.Errorf("%d drives after an overflow", len(s.Drives))
		}
	})
}

// A drive whose entries come and go while they are read neither vanishes for
// good nor takes others with it.
func TestFlicker(t *testing.T) {
	onRack(t, 24, nil, drivemgr.Options{Rescan: time.Second}, func(r *rig) {
		d := r.pick(drivebay.ProtocolATA, 0)
		r.inject(d.Serial, "sysfs-flicker")
		time.Sleep(time.Minute)
		r.inject(d.Serial, "heal")
		time.Sleep(5 * time.Second)
		for _, d := range r.mgr.Snapshot().Drives {
			if d.Status != drivebay.StatusOnline {
				r.Errorf("%s is %v", d.ID, d.Status)
			}
		}
	})
}

// quickTests is a rack whose long self-tests take three hours.
func quickTests(drives int) hostsim.Spec {
	spec := hostsim.Generate(drives)
	for i := range spec.Drives {
		spec.Drives[i].LongTest = 3 * time.Hour
	}
	return spec
}

func TestSelfTests(t *testing.T) {
	plan := drivemgr.DefaultSelfTestPlan()
	plan.Enabled, plan.From, plan.To, plan.AtOnce = true, 0, 0, 2
	onSpec(t, quickTests(8), nil, drivemgr.Options{SelfTests: plan, Tick: 5 * time.Minute, Poll: 5 * time.Minute}, func(r *rig) {
		most := 0
		for range 36 * 12 {
			time.Sleep(5 * time.Minute)
			running := 0
			for _, d := range r.mgr.Snapshot().Drives {
				if d.SelfTest != nil {
					running++
				}
			}
			most = max(most, running)
		}
		if most == 0 || most > 2 {
			r.Errorf("%d drives tested themselves at once, want 1 or 2", most)
		}
		for _, d := range r.mgr.Snapshot().Drives {
			if len(d.Evidence.SelfTests) == 0 || d.Evidence.SelfTests[0].Result != drivebay.SelfTestPassed {
				r.Errorf("%s (%v) has tests %+v", d.Name, d.Protocol, d.Evidence.SelfTests)
			}
		}
	})
}

// TestSelfTestsOfAbsentDrives: a drive that was pulled during its self-test takes no turn from the others.
func TestSelfTestsOfAbsentDrives(t *testing.T) {
	plan := drivemgr.DefaultSelfTestPlan()
	plan.Enabled, plan.From, plan.To = true, 0, 0
	for _, protocol := range []drivebay.Protocol{drivebay.ProtocolATA, drivebay.ProtocolSCSI} {
		onSpec(t, quickTests(8), nil, drivemgr.Options{SelfTests: plan, Tick: 5 * time.Minute, Poll: 5 * time.Minute}, func(r *rig) {
			pulled := r.pick(protocol, 0)
			for r.drive(pulled.ID).SelfTest == nil {
				time.Sleep(5 * time.Minute)
			}
			r.inject(pulled.Serial, "vanish")
			time.Sleep(24 * time.Hour)
			for _, d := range r.mgr.Snapshot().Drives {
				if d.ID != pulled.ID && len(d.Evidence.SelfTests) == 0 {
					r.Errorf("%s (%v) was not tested after %s was pulled", d.Name, d.Protocol, pulled.Name)
				}
			}
		})
	}
}

// TestRunningSelfTest: the snapshot names the kind of a self-test in progress and how much of it is done, of
// ATA drives by what the daemon started.
func TestRunningSelfTest(t *testing.T) {
	onRack(t, 8, nil, drivemgr.Options{}, func(r *rig) {
		for _, protocol := range []drivebay.Protocol{drivebay.ProtocolATA, drivebay.ProtocolNVMe, drivebay.ProtocolSCSI} {
			id := r.pick(protocol, 0).ID
			for _, kind := range []string{"short", "long"} {
				if err := r.mgr.SelfTest(r.Context(), id, kind); err != nil {
					r.Fatal(err)
				}
				time.Sleep(90 * time.Second) // two readings
				d, _ := r.mgr.Snapshot().Get(id)
				if run := d.SelfTest; run == nil || run.Kind != kind || (run.Done == nil) != (protocol == drivebay.ProtocolSCSI) || run.Done != nil && kind == "short" && *run.Done < 50 {
					r.Errorf("%v, %s: %+v", protocol, kind, run)
				}
			}
			if err := r.mgr.SelfTest(r.Context(), id, "abort"); err != nil {
				r.Fatal(err)
			}
			time.Sleep(time.Minute)
			if d, _ := r.mgr.Snapshot().Get(id); d.SelfTest != nil {
				r.Errorf("%v: after the end: %+v", protocol, d.SelfTest)
			}
		}
	})
}

// TestSelectiveSelfTest: of a drive whose long self-test failed, a selective one that passed over the address
// of the failure ends the finding, and a test that the daemon starts later does not bring it back. A selective
// one beside the address or one that was aborted does not end it, and one in progress brings it back.
func TestSelectiveSelfTest(t *testing.T) {
	const past = 4 * time.Hour // the end of a long self-test, and of a finding whose cause is gone
	opt := drivemgr.Options{Tick: 20 * time.Second, Thresholds: health.Default()}
	opt.Thresholds.ClearAfter = past - time.Hour
	start := func(args ...string) func(*rig, string, string) {
		return func(r *rig, _, serial string) { r.inject(serial, "selftest-selective", args...) }
	}
	call := func(kind string) func(*rig, string, string) {
		return func(r *rig, id, _ string) {
			if err := r.mgr.SelfTest(r.Context(), id, kind); err != nil {
				r.Fatal(err)
			}
		}
	}
	wait := func(d time.Duration) func(*rig, string, string) {
		return func(r *rig, _, _ string) {
			if err := r.mgr.Refresh(r.Context()); err != nil {
				r.Fatal(err)
			}
			time.Sleep(d)
		}
	}
	over, beside := start("from=4660", "to=4660"), start("from=4661", "to=100000")
	for name, tc := range map[string]struct {
		steps []func(*rig, string, string)
		want  drivebay.Health
	}{
		"over the address":                   {[]func(*rig, string, string){over, wait(past)}, drivebay.HealthGood},
		"beside the address":                 {[]func(*rig, string, string){beside, wait(past)}, drivebay.HealthSuspect},
		"over the address, then beside it":   {[]func(*rig, string, string){over, wait(past), beside, wait(past)}, drivebay.HealthSuspect},
		"aborted":                            {[]func(*rig, string, string){over, call("abort"), wait(past)}, drivebay.HealthSuspect},
		"over the address, the next aborted": {[]func(*rig, string, string){over, wait(past), over, call("abort"), wait(time.Minute)}, drivebay.HealthSuspect},
		"over the address, one in progress":  {[]func(*rig, string, string){over, wait(past), beside, wait(time.Minute)}, drivebay.HealthSuspect},
		"over the address, short test":       {[]func(*rig, string, string){over, wait(past), call("short"), wait(time.Minute)}, drivebay.HealthGood},
		"over the address, long test":        {[]func(*rig, string, string){over, wait(past), call("long"), wait(past / 2)}, drivebay.HealthGood},
	} {
		t.Run(name, func(t *testing.T) {
			onSpec(t, quickTests(8), nil, opt, func(r *rig) {
				d := r.pick(drivebay.ProtocolATA, 0)
				r.inject(d.Serial, "selftest-fail", "count=0")
				call("long")(r, d.ID, d.Serial)
				time.Sleep(past)
				if got := r.drive(d.ID); got.Health != drivebay.HealthSuspect || len(got.Findings) != 1 || got.Findings[0].Code != "SelfTest" {
					r.Fatalf("after the failure: %v %+v", got.Health, got.Findings)
				}
				r.inject(d.Serial, "selftest-fail", "count=0", "further=false")
				for _, step := range tc.steps {
					step(r, d.ID, d.Serial)
				}
				if got := r.drive(d.ID); got.Health != tc.want {
					r.Errorf("%v, want %v: %+v, %+v", got.Health, tc.want, got.Findings, got.Evidence)
				}
			})
		})
	}
}

func TestLocate(t *testing.T) {
	onRack(t, 24, nil, drivemgr.Options{}, func(r *rig) {
		first, second, third := r.pick(drivebay.ProtocolATA, 0), r.pick(drivebay.ProtocolATA, 1), r.pick(drivebay.ProtocolATA, 2)
		bay := first.Slot.Enclosure + "/" + first.Slot.Bay
		for _, what := range []string{bay, second.ID} {
			if err := r.mgr.Locate(r.Context(), what, true); err != nil {
				r.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if !r.drive(first.ID).Slot.Lit || !r.drive(second.ID).Slot.Lit || r.drive(third.ID).Slot.Lit {
			r.Error("the wrong bays are lit")
		}
		r.inject(third.Serial, "vanish") // a listing after a uevent, which does not ask the enclosure
		time.Sleep(time.Second)
		if !r.drive(first.ID).Slot.Lit || r.drive(third.ID).Slot.Lit {
			r.Error("a listing after a uevent forgets the lights")
		}
		if err := r.mgr.Locate(r.Context(), bay, false); err != nil {
			r.Fatal(err)
		}
		time.Sleep(time.Second)
		if r.drive(first.ID).Slot.Lit {
			r.Error("the light does not go out")
		}
		if err := r.mgr.Locate(r.Context(), "no such bay", true); err == nil {
			r.Error("a bay that is not there was lit")
		}
	})
}

// What the enclosure says of a bay follows the drive in it, though a listing after a
// uevent does not ask the enclosure.
// TestFirstSeenIsNotAfterLastSeen: also of drives that are found in the middle of a minute, and that
// vanish within it.
func TestFirstSeenIsNotAfterLastSeen(t *testing.T) {
	late := func(m *hostsim.Machine) host.Machine {
		time.Sleep(10*time.Second + 900*time.Millisecond)
		return m
	}
	onSeen(t, hostsim.Generate(8), nil, drivemgr.Options{}, late, func(r *rig) {
		gone := r.pick(drivebay.ProtocolATA, 0)
		r.inject(gone.Serial, "vanish")
		time.Sleep(5 * time.Second)
		for _, d := range r.mgr.Snapshot().Drives {
			if d.LastSeen.Before(d.FirstSeen) || d.FirstSeen.Nanosecond() == 0 || (d.ID == gone.ID) != (d.Status == drivebay.StatusOffline) {
				r.Errorf("%s (%v): first seen %v, last seen %v", d.Name, d.Status, d.FirstSeen, d.LastSeen)
			}
		}
	})
}

func TestBayStatus(t *testing.T) {
	onRack(t, 24, nil, drivemgr.Options{}, func(r *rig) {
		first, second := *r.pick(drivebay.ProtocolATA, 0), *r.pick(drivebay.ProtocolATA, 1)
		want := func(what string, first1, second1 string) {
			r.Helper()
			for slot, want := range map[drivebay.Slot]string{first.Slot: first1, second.Slot: second1} {
				b, ok := r.mgr.Snapshot().FindBay(slot.Enclosure + "/" + slot.Bay)
				if !ok || b.Status != want {
					r.Errorf("%s: bay %+v, want it to be %q", what, b, want)
				}
			}
		}
		want("both there", "OK", "OK")
		r.inject(first.Serial, "vanish")
		time.Sleep(5 * time.Second)
		want("one pulled", "not installed", "OK")
		if d := r.drive(first.ID); d.Slot.Status != "" {
			r.Errorf("the drive that was pulled is still in a bay that is %q", d.Slot.Status)
		}
		r.inject(first.Serial, "return")
		time.Sleep(5 * time.Second)
		want("back", "OK", "OK")
		if d := r.drive(first.ID); d.Slot.Status != "OK" {
			r.Errorf("the drive that is back is in a bay that is %q", d.Slot.Status)
		}
	})
}

func TestLookOnce(t *testing.T) {
	sim, err := hostsim.New(hostsim.Generate(24))
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	s, err := drivemgr.ReadOnce(t.Context(), sim, drivemgr.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range s.Drives {
		if d.Health != drivebay.HealthGood || d.Evidence == nil {
			t.Errorf("%s is %v: %+v", d.Name, d.Health, d.Findings)
		}
	}
}

// A drive whose id changes while it is being asked is asked again.
func TestRenamedWhileAsked(t *testing.T) {
	onRack(t, 9, nil, drivemgr.Options{Poll: time.Minute}, func(r *rig) {
		first, second := *r.pick(drivebay.ProtocolATA, 0), *r.pick(drivebay.ProtocolATA, 1)
		r.inject(first.Serial, "slow", "delay=1s")
		time.Sleep(61 * time.Second)
		r.inject(second.Serial, "duplicate-serial", "of="+first.Slot.Bay)
		time.Sleep(10 * time.Minute)
		for _, d := range r.mgr.Snapshot().Drives {
			if age := r.sim.Now().Sub(d.Evidence.At); d.Status == drivebay.StatusOnline && age > 3*time.Minute {
				r.Errorf("%s was last asked %v ago", d.ID, age)
			}
		}
	})
}

// A daemon that starts again knows its drives, their history and what was said
// of them, and takes nothing of the past for news.
func TestRestart(t *testing.T) {
	st := store.Memory()
	var gone string
	onRack(t, 9, st, drivemgr.Options{Poll: time.Minute}, func(r *rig) {
		time.Sleep(6 * time.Hour)
		d := r.pick(drivebay.ProtocolATA, 0)
		gone = d.ID
		r.inject(d.Serial, "vanish")
		time.Sleep(time.Minute)
	})
	before, err := st.LastEvent()
	if err != nil {
		t.Fatal(err)
	}
	onRack(t, 9, st, drivemgr.Options{Poll: time.Minute}, func(r *rig) {
		time.Sleep(30 * time.Minute)
		for _, d := range r.mgr.Snapshot().Drives {
			if d.Health != drivebay.HealthGood {
				r.Errorf("%s is %v: %+v", d.ID, d.Health, d.Findings)
			}
		}
		back := slices.ContainsFunc(r.mgr.Events(before, 0), func(e drivebay.Event) bool { return e.Drive == gone && e.Kind == drivebay.EventReturned })
		if !back {
			r.Error("the drive that left before the restart is not known to be back")
		}
		if old := r.mgr.Events(0, 0); uint64(len(old)) < before {
			r.Errorf("%d of %d events are left", len(old), before)
		}
		for _, e := range r.mgr.Events(before, 0) {
			if e.Drive != gone {
				r.Errorf("news of the past: %+v", e)
			}
		}
	})
}
