package drivemgr

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// Options holds the settings of a manager. Zero fields take the default.
type Options struct {
	Thresholds  health.Thresholds
	SelfTests   SelfTestPlan
	Loop        bool          // count loop devices as drives
	Tick        time.Duration // how often the kernel's evidence is read; touches no disk
	Poll        time.Duration // how often each drive is read
	Rescan      time.Duration // how often all drives are listed without a uevent
	LookTimeout time.Duration // how long one look may take
	Parallel    int           // looks at the same time
	Claim       drivebay.Selectors
	ReleaseAt   drivebay.Health // health at which a claimed drive is released automatically; UNKNOWN: never
	ForgetAfter time.Duration   // how long the record of a drive that left is kept
	Log         *slog.Logger
}

// DefaultOptions returns the settings of a daemon without a configuration.
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

// Uevents come in bursts: a listing waits for the burst to settle, and follows the last
// listing only after betweenLists.
const (
	settleUevents = 30 * time.Millisecond
	betweenLists  = 250 * time.Millisecond
	// A listing after a uevent does not read the enclosures. If drives came or went, another
	// listing follows after askEnclosures and reads them.
	askEnclosures = 2 * time.Second
)

// tracked holds the state of one drive in the manager.
type tracked struct {
	rec       drivebay.Record
	drive     drivebay.Drive // as the next snapshot shows it
	lane      *lane.Lane
	kernlog   logWindow
	fsSpoke   bool      // the kernel log reports a filesystem error on it
	fsAsked   time.Time // when the error counters of its filesystems were read
	life      int       // grows each time the drive appears
	present   bool
	judged    bool // a verdict was given on evidence of the drive
	looking   bool
	lookedAt  time.Time // when the last look began
	nextLook  time.Time
	failures  int    // looks in a row that failed
	absent    int    // looks in a row that found no device
	openError string // error of the last look
	// What our own commands added to ioerr_cnt and iotmo_cnt.
	ourErrors, ourTimeouts uint64
	came                   time.Time // when this life began
	nextProof              time.Time // when a look may next read to end log errors
	proofsFailed           int
	fresh                  bool   // its content is unknown, or may have changed
	unread                 int    // looks in a row that failed to read the content
	written                bool   // drivebay wrote to it, and no look has begun since
	rereading              bool   // the look under way is the first one since
	readAt                 uint64 // Kernel.Changed before the content was read
	cameFrom               string // the bay before this one, if it was moved
	poor                   int    // ticks in a row in which its health is at ReleaseAt or worse
	heldBack               string // why it is not released automatically, as last reported
}

// New makes a manager. Without a store (st is nil) nothing survives a restart.
func New(m host.Machine, st Store, opt Options) *Manager {
	opt = withDefaults(opt)
	f := &fleetT{
		machine: m, opt: opt, log: opt.Log,
		keeper:  newKeeper(st, opt.Log),
		seqGrew: make(chan struct{}),
		drives:  map[string]*tracked{},
		calls:   make(chan call),
	}
	d := m.Describe()
	f.snapshot.Store(&drivebay.Snapshot{Machine: drivebay.Machine{Name: d.Name, Kind: d.Kind}})
	l := &lightsT{fleetT: f, lights: lights{}}
	c := &claimsT{fleetT: f, lightsT: l}
	s := &selftestsT{fleetT: f}
	p := &pollT{fleetT: f, claimsT: c, selftestsT: s, slots: make(chan struct{}, opt.Parallel), results: make(chan lookResult)}
	r := &replacementT{fleetT: f, lightsT: l}
	t := &trackingT{fleetT: f, lightsT: l, claimsT: c, pollT: p, replacementT: r, listings: make(chan Listing, 1)}
	r.refresh, r.listNow = t.Refresh, t.relist
	return &Manager{fleetT: f, lightsT: l, claimsT: c, selftestsT: s, pollT: p, replacementT: r, trackingT: t}
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

// Run keeps the snapshot up to date until ctx ends. It never waits for a drive.
func (m *Manager) Run(ctx context.Context) error {
	m.loadRecords()
	var background sync.WaitGroup
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	background.Go(func() { m.keeper.run(keeping, m.machine) })
	defer func() { m.storeEvents(); m.keepAll(); stopKeeping(); background.Wait() }()

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
	pending := false // a uevent requires a listing that has not begun
	for {
		var reply func() // answers a call once the snapshot shows its change
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-uevents:
			if !ok {
				uevents = nil
				m.lostStream(ctx, noUevents)
			} else if m.handleUevent(e) && !pending {
				pending = true
				soon(settleUevents)
			}
			continue
		case l, ok := <-kernlog:
			if ok {
				m.addLogLine(l)
			} else {
				kernlog = nil
				m.lostStream(ctx, noKernelLog)
			}
			continue
		case <-list:
			hurry := pending // a uevent waits for this listing
			pending = false
			list = m.machine.After(m.opt.Rescan)
			if !m.listingSince.IsZero() { // the last listing has not ended: try again shortly
				pending = true
				soon(betweenLists)
				continue
			}
			m.listingSince = m.machine.Now()
			m.listInBackground(ctx, hurry)
			continue
		case l := <-m.listings:
			m.listingSince = time.Time{}
			m.applyListing(l)
			if m.drivesChanged && !pending {
				list = m.machine.After(askEnclosures)
			}
		case r := <-m.results:
			if m.applyLook(r); m.listAgain && !pending {
				pending = true
				soon(settleUevents)
			}
			m.listAgain = false
		case c := <-m.calls:
			err := c.do()
			reply = func() { c.came <- err }
		case <-tick:
			tick = m.machine.After(m.opt.Tick)
			m.runTick(ctx)
		}
		m.scheduleLooks(ctx)
		m.keepLights()
		m.startJobs(ctx)
		m.publish()
		m.answerRereads()
		if reply != nil {
			reply()
		}
	}
}

// runTick does the periodic work that reads no drive.
func (m *Manager) runTick(ctx context.Context) {
	m.readKernel()
	m.scheduleSelfTests(ctx)
	m.followHealth()
	m.followPredecessors()
	m.followStore()
}

// call is a function to be run in the goroutine that owns the state.
type call struct {
	do   func() error
	came chan error
}

// nextMoment returns the next number in the order of looks and changes. A change wins over a
// look that began before it, however late the look ends.
func (m *fleetT) nextMoment() uint64 { return m.looks.Add(1) }

// startJobs starts the pending jobs, which may wait for a device, in goroutines.
func (m *fleetT) startJobs(ctx context.Context) {
	for _, job := range m.jobs {
		go job(ctx)
	}
	m.jobs = nil
}

// listInBackground lists the machine in a goroutine: even sysfs can hang, since the LED
// file of an enclosure sends a command to it.
func (m *trackingT) listInBackground(ctx context.Context, hurry bool) {
	opt := InventoryOptions{Loop: m.opt.Loop, Dark: hurry, Ours: m.ours()}
	go func() {
		l := m.listMachine(ctx, opt)
		select {
		case m.listings <- l:
		case <-ctx.Done():
		}
	}()
}

// ours returns the present drives on which only drivebay content was read, and the claimed
// blank ones, which may get a drivebay partition at any moment.
func (m *fleetT) ours() map[string]bool {
	out := map[string]bool{}
	for _, t := range m.drives {
		kind := t.drive.Content.Kind
		if t.present && (kind == drivebay.ContentOurs || kind == drivebay.ContentBlank && t.rec.Claim != nil) {
			out[t.drive.Name] = true
		}
	}
	return out
}

func (m *trackingT) listMachine(ctx context.Context, opt InventoryOptions) Listing {
	began := m.nextMoment()
	mounts, err := m.machine.Mounts(ctx)
	l := Observe(m.machine, mounts, opt)
	l.began = began
	if err != nil {
		l.Problems = append(l.Problems, "the mount table cannot be read, so uses and system drives may be missing: "+err.Error())
	}
	return l
}

// Problems of a manager without one of the streams of the kernel; the cause follows.
const (
	noUevents   = "no uevents, changes are noticed at the next rescan only: "
	noKernelLog = "no kernel log, I/O errors are known by their counters only: "
)

// lostStream records that the kernel ended a stream while the manager runs.
func (m *Manager) lostStream(ctx context.Context, problem string) {
	if ctx.Err() != nil {
		return // the manager ends, and its streams with it
	}
	problem += "the stream ended; restart drivebay"
	m.log.Error("a stream of the kernel ended", "op", "listen", "err", problem)
	m.problems = append(m.problems, problem)
}

// listen opens the stream of uevents; without it, only the slow rescan finds changes.
func (m *Manager) listen(ctx context.Context) <-chan host.Uevent {
	ch, err := m.machine.Uevents(ctx)
	if err != nil {
		m.problems = append(m.problems, noUevents+err.Error())
	}
	return ch
}

func (m *Manager) readKernelLog(ctx context.Context) <-chan host.LogLine {
	ch, err := m.machine.KernelLog(ctx)
	if err != nil {
		m.problems = append(m.problems, noKernelLog+err.Error())
	}
	return ch
}

// loadRecords loads the records of an earlier run. No drive counts as present before the
// machine is listed.
func (m *Manager) loadRecords() {
	records, err := m.keeper.loadRecords()
	if err != nil {
		m.log.Error("the stored records of the drives cannot be read", "op", "recall", "err", err)
		m.problems = append(m.problems, unreadRecords(err))
	}
	if err := m.keeper.loadEvents(); err != nil {
		m.log.Error("the stored events cannot be read", "op", "recall", "err", err)
		m.problems = append(m.problems, "the stored events cannot be read, earlier events are not shown: "+err.Error())
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

// unreadRecords describes the state of a manager that could not read the stored records.
func unreadRecords(err error) string {
	return "the stored records of the drives cannot be read, so their claims and usages are not known: no drive is claimed or changed and no record is written; restart drivebay once the store can be read: " + err.Error()
}

// do runs f in the goroutine that owns the state and waits until the snapshot shows
// its changes.
func (m *fleetT) do(ctx context.Context, f func() error) error {
	c := call{f, make(chan error, 1)}
	select {
	case m.calls <- c:
		return <-c.came
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Configure applies new settings; those that change what is listed (Loop) apply from
// the next listing on.
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
