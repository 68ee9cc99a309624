package drivemgr

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// Options are the settings of a manager. Zero fields take the default.
type Options struct {
	Thresholds  health.Thresholds
	SelfTests   SelfTestPlan
	Loop        bool          // count loop devices as drives
	Tick        time.Duration // how often the kernel's own evidence is read; touches no disk
	Poll        time.Duration // how often each drive is asked
	Rescan      time.Duration // how often everything is listed without being told to
	LookTimeout time.Duration // how long a drive may take to answer
	Parallel    int           // drives asked at the same time
	Claim       drivebay.Selectors
	ReleaseAt   drivebay.Health // a claimed drive that turned so is released by itself; UNKNOWN: none is
	ForgetAfter time.Duration   // how long a drive that left is remembered
	Log         *slog.Logger
}

// DefaultOptions are the settings of a daemon that nobody configured.
func DefaultOptions() Options {
	return Options{
		Thresholds:  health.Default(),
		SelfTests:   DefaultSelfTestPlan(),
		Tick:        2 * time.Second,
		Poll:        10 * time.Minute,
		Rescan:      5 * time.Minute,
		LookTimeout: 30 * time.Second,
		Parallel:    16,
		ForgetAfter: 30 * 24 * time.Hour,
		Log:         slog.New(slog.DiscardHandler),
	}
}

// uevents come in bursts: wait for the burst to settle, and list at most so often.
const (
	settleUevents = 30 * time.Millisecond
	betweenLists  = 250 * time.Millisecond
	// A listing in a hurry leaves enclosures unasked; where drives came or went they
	// have something new to say.
	askEnclosures = 2 * time.Second
)

// Manager knows the drives of one machine.
type Manager struct {
	machine host.Machine
	keeper  *keeper
	log     *slog.Logger
	slots   chan struct{} // bounds the looks under way

	snapshot atomic.Pointer[drivebay.Snapshot]
	seqMu    sync.Mutex
	seqGrew  chan struct{} // closed and replaced when Seq grows

	// What follows belongs to the goroutine in Run (or in Look, which has none).
	opt     Options
	drives  map[string]*tracked
	looks   atomic.Uint64    // counts looks and changes, so that their order is known
	events  []drivebay.Event // told with the next snapshot
	listing Listing
	lights  lights
	// lightsRead is when the last listing began that asked the enclosures.
	lightsRead uint64
	listed     bool      // a first listing has come
	listedAt   time.Time // when the last listing came
	moved      bool      // drives came or went since enclosures were asked
	again      bool      // what was read from a drive makes its uses worth another listing
	// listingSince is when the listing under way began; zero: none is.
	listingSince time.Time
	problems     []string                // of ourselves: no uevents, no kernel log ...
	jobs         []func(context.Context) // to be started beside us: they may wait for a device
	inventoried  bool                    // every drive that is there was asked once
	storeFails   string                  // why the store cannot be written, as it was told

	calls    chan call
	results  chan lookResult
	listings chan Listing
}

// tracked is all that the manager has about one drive.
type tracked struct {
	rec       drivebay.Record
	drive     drivebay.Drive // as it goes into the next snapshot
	lane      *lane.Lane
	kernlog   logWindow
	fsSpoke   bool      // the kernel log speaks of a filesystem on it
	fsAsked   time.Time // when they were asked for their errors
	life      int       // grows each time the drive comes
	present   bool
	judged    bool // a verdict has been given on real evidence
	looking   bool
	lookedAt  time.Time // when the last look began
	nextLook  time.Time
	failures  int    // looks in a row that brought nothing
	openError string // how the last of them ended
	// What our own questions added to ioerr_cnt and iotmo_cnt.
	ourErrors, ourTimeouts uint64
	came                   time.Time // when this life began
	nextProof              time.Time // when errors of the kernel log are to be proved gone
	proofsFailed           int
	fresh                  bool   // what is written on it is not known, or may have changed
	unread                 int    // looks in a row that failed to read it
	readAt                 uint64 // writes that the kernel had counted when it was read
	cameFrom               string // the bay before this one, if it was moved
	poor                   int    // ticks in a row in which its health was as bad as the policy says
	heldBack               string // why the policy leaves it alone, as it was told
}

// New makes a manager. st may be nil: then nothing outlives it.
func New(m host.Machine, st Store, opt Options) *Manager {
	opt = withDefaults(opt)
	mgr := &Manager{
		machine: m, opt: opt, log: opt.Log,
		keeper:   newKeeper(st, opt.Log),
		slots:    make(chan struct{}, opt.Parallel),
		seqGrew:  make(chan struct{}),
		drives:   map[string]*tracked{},
		lights:   lights{},
		calls:    make(chan call),
		results:  make(chan lookResult),
		listings: make(chan Listing, 1),
	}
	d := m.Describe()
	mgr.snapshot.Store(&drivebay.Snapshot{Machine: drivebay.Machine{Name: d.Name, Kind: d.Kind}})
	return mgr
}

func withDefaults(o Options) Options {
	def := DefaultOptions()
	pick := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	pick(&o.Tick, def.Tick)
	pick(&o.Poll, def.Poll)
	pick(&o.Rescan, def.Rescan)
	pick(&o.LookTimeout, def.LookTimeout)
	pick(&o.ForgetAfter, def.ForgetAfter)
	if o.Parallel <= 0 {
		o.Parallel = def.Parallel
	}
	if o.Log == nil {
		o.Log = def.Log
	}
	if o.Thresholds == (health.Thresholds{}) {
		o.Thresholds = def.Thresholds
	}
	return o
}

// Run keeps the snapshot true until ctx ends. It never waits for a drive.
func (m *Manager) Run(ctx context.Context) error {
	m.recall()
	var background sync.WaitGroup
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	background.Go(func() { m.keeper.run(keeping, m.machine) })
	defer func() { m.tellEvents(); m.keepAll(); stopKeeping(); background.Wait() }()

	uevents := m.listen(ctx)
	kernlog := m.readKernelLog(ctx)
	list := m.machine.After(0)
	tick := m.machine.After(m.opt.Tick)
	soon := func(d time.Duration) {
		if wait := betweenLists - m.machine.Now().Sub(m.listedAt); d < wait {
			d = wait
		}
		list = m.machine.After(d)
	}
	pending := false // a uevent asked for a listing that has not begun
	for {
		var reply func() // to who called; sent when the snapshot shows what was done
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-uevents:
			if !ok {
				uevents = nil
			} else if m.heed(e) && !pending {
				pending = true
				soon(settleUevents)
			}
			continue
		case l, ok := <-kernlog:
			if !ok {
				kernlog = nil
			}
			m.note(l)
			continue
		case <-list:
			hurry := pending // somebody waits to see what a uevent changed
			pending = false
			list = m.machine.After(m.opt.Rescan)
			if !m.listingSince.IsZero() { // the last one has not come back: look again shortly
				pending = true
				soon(betweenLists)
				continue
			}
			m.listingSince = m.machine.Now()
			m.observeAside(ctx, hurry)
			continue
		case l := <-m.listings:
			m.listingSince = time.Time{}
			m.take(l)
			if m.moved && !pending {
				list = m.machine.After(askEnclosures)
			}
		case r := <-m.results:
			if m.learn(r); m.again && !pending {
				pending = true
				soon(settleUevents)
			}
			m.again = false
		case c := <-m.calls:
			err := c.do()
			reply = func() { c.came <- err }
		case <-tick:
			tick = m.machine.After(m.opt.Tick)
			m.readKernel()
			m.scheduleSelfTests(ctx)
			m.followHealth()
			m.followPredecessors()
			m.followStore()
		}
		m.scheduleLooks(ctx)
		m.keepLights()
		m.startJobs(ctx)
		m.publish()
		if reply != nil {
			reply()
		}
	}
}

// call is something to be done in the goroutine that owns the state.
type call struct {
	do   func() error
	came chan error
}

// moment is when a look begins or a change is done, as a number that grows. A change
// wins over a look that began before it, however late the look ends.
func (m *Manager) moment() uint64 { return m.looks.Add(1) }

// startJobs starts what may wait for a device, beside us.
func (m *Manager) startJobs(ctx context.Context) {
	for _, job := range m.jobs {
		go job(ctx)
	}
	m.jobs = nil
}

// observeAside lists the machine in a goroutine: even sysfs can hang, an
// enclosure's LED file asks the enclosure.
func (m *Manager) observeAside(ctx context.Context, hurry bool) {
	opt := InventoryOptions{Loop: m.opt.Loop, Dark: hurry, Ours: m.ours()}
	go func() {
		l := m.observe(ctx, opt)
		select {
		case m.listings <- l:
		case <-ctx.Done():
		}
	}()
}

// ours are the drives that were read and hold nothing but ours, and those that were
// blank and may get something of ours at any moment.
func (m *Manager) ours() map[string]bool {
	out := map[string]bool{}
	for _, t := range m.drives {
		kind := t.drive.Content.Kind
		if t.present && (kind == drivebay.ContentOurs || kind == drivebay.ContentBlank && t.rec.Claim != nil) {
			out[t.drive.Name] = true
		}
	}
	return out
}

func (m *Manager) observe(ctx context.Context, opt InventoryOptions) Listing {
	began := m.moment()
	mounts, err := m.machine.Mounts(ctx)
	l := Observe(m.machine, mounts, opt)
	l.began = began
	if err != nil {
		l.Problems = append(l.Problems, "the mount table cannot be read, so uses and system drives may be missing: "+err.Error())
	}
	return l
}

// listen opens the stream of uevents; without one the slow rescan has to do.
func (m *Manager) listen(ctx context.Context) <-chan host.Uevent {
	ch, err := m.machine.Uevents(ctx)
	if err != nil {
		m.problems = append(m.problems, "no uevents, changes are noticed at the next rescan only: "+err.Error())
	}
	return ch
}

func (m *Manager) readKernelLog(ctx context.Context) <-chan host.LogLine {
	ch, err := m.machine.KernelLog(ctx)
	if err != nil {
		m.problems = append(m.problems, "no kernel log, I/O errors are known by their counters only: "+err.Error())
	}
	return ch
}

// recall takes up what an earlier run knew. Nothing of it is believed before the
// machine has been listed.
func (m *Manager) recall() {
	records, err := m.keeper.load()
	if err != nil {
		m.log.Error("the record store cannot be read", "op", "recall", "err", err)
		m.problems = append(m.problems, "the record store cannot be read, history starts anew: "+err.Error())
	}
	for id, rec := range records {
		t := &tracked{rec: rec, drive: rec.Drive, lane: lane.New(), judged: rec.Drive.Health != drivebay.HealthUnknown}
		t.drive.Kernel, t.drive.Disks = nil, rec.Disks
		if fromUses(t.drive.Content) {
			t.drive.Content = drivebay.Content{Reason: drivebay.NotRead}
		}
		if t.drive.Status == drivebay.StatusOnline {
			t.drive.Status = drivebay.StatusUnknown
		}
		m.drives[id] = t
	}
}

// do runs f in the goroutine that owns the state and waits until the snapshot shows
// what f did.
func (m *Manager) do(ctx context.Context, f func() error) error {
	c := call{f, make(chan error, 1)}
	select {
	case m.calls <- c:
		return <-c.came
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Configure takes new settings; those that shape the machine's view (Loop) act
// from the next listing on.
func (m *Manager) Configure(ctx context.Context, opt Options) error {
	return m.do(ctx, func() error {
		opt := withDefaults(opt)
		opt.Parallel, opt.Log = m.opt.Parallel, m.opt.Log
		m.opt = opt
		for _, t := range m.drives {
			m.assess(t)
		}
		return nil
	})
}
