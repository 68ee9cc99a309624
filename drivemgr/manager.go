package drivemgr

import (
	"context"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/claims"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/kernellog"
	"github.com/drivebay/drivebay/drivemgr/internal/lights"
	"github.com/drivebay/drivebay/drivemgr/internal/poll"
	"github.com/drivebay/drivebay/drivemgr/internal/records"
	"github.com/drivebay/drivebay/drivemgr/internal/replacement"
	"github.com/drivebay/drivebay/drivemgr/internal/selftests"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/drivemgr/internal/tracking"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/lane"
)

// Manager tracks the drives of one machine.
type Manager struct {
	state       *state.State
	lights      *lights.Lights
	claims      *claims.Claims
	selftests   *selftests.Starter
	poll        *poll.Poller
	replacement *replacement.Replacer
	tracking    *tracking.Tracker

	// listingSince is when the listing under way began; zero without one.
	listingSince time.Time
	problems     []string // of the daemon: no uevents, no kernel log ...
	storeFails   string   // why the store cannot be written, as last reported
}

// Uevents come in bursts: a listing waits for the burst to settle, and follows the last
// listing only after minListInterval.
const (
	settleUevents   = 30 * time.Millisecond
	minListInterval = 250 * time.Millisecond
	// A listing after a uevent does not read the enclosures. If drives came or went, another
	// listing follows after enclosureDelay and reads them.
	enclosureDelay = 2 * time.Second
)

// New makes a manager. Without a store (st is nil) nothing survives a restart.
func New(m host.Machine, st Store, opt Options) *Manager {
	opt = state.WithDefaults(opt)
	f := &state.State{
		Machine: m, Opt: opt, Log: opt.Log,
		Keeper:  records.New(st, opt.Log),
		SeqGrew: make(chan struct{}),
		Drives:  map[string]*state.Tracked{},
		Calls:   make(chan state.Call),
	}
	d := m.Describe()
	f.Current.Store(&drivebay.Snapshot{Machine: drivebay.Machine{Name: d.Name, Kind: d.Kind, Hardware: opt.Hardware}})
	l := &lights.Lights{State: f, Lights: lights.ByBay{}}
	c := &claims.Claims{State: f, Lights: l}
	s := &selftests.Starter{State: f}
	p := &poll.Poller{State: f, Claims: c, SelfTests: s, Slots: make(chan struct{}, opt.Parallel), Results: make(chan state.Reading)}
	r := &replacement.Replacer{State: f, Lights: l}
	t := &tracking.Tracker{State: f, Lights: l, Claims: c, Poll: p, Replacement: r, Listings: make(chan inventory.Listing, 1)}
	r.Refresh, r.ListNow = t.Refresh, t.Relist
	return &Manager{state: f, lights: l, claims: c, selftests: s, poll: p, replacement: r, tracking: t}
}

// Run keeps the snapshot up to date until ctx ends. It never waits for a drive.
func (m *Manager) Run(ctx context.Context) error {
	m.loadRecords()
	var background sync.WaitGroup
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	background.Go(func() { m.state.Keeper.Run(keeping, m.state.Machine) })
	defer func() { m.state.StoreEvents(); m.state.KeepAll(); stopKeeping(); background.Wait() }()

	uevents := m.listen(ctx)
	kernlog := m.readKernelLog(ctx)
	list := m.state.Machine.After(0)
	tick := m.state.Machine.After(m.state.Opt.Tick)
	listSoon := func(d time.Duration) {
		if wait := minListInterval - m.state.Machine.Now().Sub(m.tracking.ListedAt); d < wait {
			d = wait
		}
		list = m.state.Machine.After(d)
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
			} else if m.poll.HandleUevent(e) && !pending {
				pending = true
				listSoon(settleUevents)
			}
			continue
		case l, ok := <-kernlog:
			if ok {
				m.poll.AddLogLine(l)
			} else {
				kernlog = nil
				m.lostStream(ctx, noKernelLog)
			}
			continue
		case <-list:
			skipEnclosures := pending // a uevent waits for this listing
			pending = false
			list = m.state.Machine.After(m.state.Opt.Rescan)
			if !m.listingSince.IsZero() { // the last listing has not ended: try again shortly
				pending = true
				listSoon(minListInterval)
				continue
			}
			m.listingSince = m.state.Machine.Now()
			m.tracking.ListInBackground(ctx, skipEnclosures)
			continue
		case l := <-m.tracking.Listings:
			m.listingSince = time.Time{}
			m.tracking.ApplyListing(l)
			if m.tracking.DrivesChanged && !pending {
				list = m.state.Machine.After(enclosureDelay)
			}
		case r := <-m.poll.Results:
			if m.poll.ApplyReading(r); m.poll.ListAgain && !pending {
				pending = true
				listSoon(settleUevents)
			}
			m.poll.ListAgain = false
		case c := <-m.state.Calls:
			err := c.Do()
			reply = func() { c.Done <- err }
		case <-tick:
			tick = m.state.Machine.After(m.state.Opt.Tick)
			m.runTick(ctx)
		}
		m.poll.StartReadings(ctx)
		m.lights.KeepLights()
		m.state.StartJobs(ctx)
		m.publish()
		m.poll.AnswerRereads()
		if reply != nil {
			reply()
		}
	}
}

// runTick does the periodic work that reads no drive.
func (m *Manager) runTick(ctx context.Context) {
	m.poll.ReadKernel()
	m.selftests.ScheduleSelfTests(ctx)
	m.replacement.FollowHealth()
	m.replacement.ResumeRemovals(m.state.Machine.Now())
	m.claims.FollowPredecessors()
	m.followStore()
}

// Problems of a manager without one of the streams of the kernel; the cause follows.
const (
	noUevents   = "no uevents: drivebay notices changes only at the next rescan: "
	noKernelLog = "no kernel log: drivebay knows I/O errors only by their counters: "
)

// lostStream records that the kernel ended a stream while the manager runs.
func (m *Manager) lostStream(ctx context.Context, problem string) {
	if ctx.Err() != nil {
		return // the manager ends, and its streams with it
	}
	problem += "the stream ended; restart drivebay"
	m.state.Log.Error("a stream of the kernel ended", "op", "listen", "err", problem)
	m.problems = append(m.problems, problem)
}

// listen opens the stream of uevents; without it, only the slow rescan finds changes.
func (m *Manager) listen(ctx context.Context) <-chan host.Uevent {
	ch, err := m.state.Machine.Uevents(ctx)
	if err != nil {
		m.problems = append(m.problems, noUevents+err.Error())
	}
	return ch
}

func (m *Manager) readKernelLog(ctx context.Context) <-chan host.LogLine {
	ch, err := m.state.Machine.KernelLog(ctx)
	if err != nil {
		m.problems = append(m.problems, noKernelLog+err.Error())
	}
	return ch
}

// loadRecords loads the records of an earlier run. No drive counts as present before the first
// listing.
func (m *Manager) loadRecords() {
	recs, err := m.state.Keeper.LoadRecords()
	if err != nil {
		m.state.Log.Error("the stored records of the drives cannot be read", "op", "recall", "err", err)
		m.problems = append(m.problems, records.UnreadRecords(err))
	}
	if err := m.state.Keeper.LoadEvents(); err != nil {
		m.state.Log.Error("the stored events cannot be read", "op", "recall", "err", err)
		m.problems = append(m.problems, "stored events: read failed, earlier events are not shown: "+err.Error())
	}
	for id, rec := range recs {
		t := &state.Tracked{Rec: rec, Drive: rec.Drive, Lane: lane.New(), Judged: rec.Drive.Health != drivebay.HealthUnknown, Recalled: true, Kernlog: kernellog.Decode(rec.Logged)}
		t.Drive.Kernel, t.Drive.Disks = nil, rec.Disks
		if inventory.FromUses(t.Drive.Content) {
			t.Drive.Content = drivebay.Content{Reason: drivebay.NotRead}
		}
		if t.Drive.Status == drivebay.StatusOnline {
			t.Drive.Status = drivebay.StatusUnknown
		}
		m.state.Drives[id] = t
	}
}

// Configure applies new settings; those that change what is listed (Loop) apply from
// the next listing on.
func (m *Manager) Configure(ctx context.Context, opt state.Options) error {
	return m.state.Do(ctx, func() error {
		opt := state.WithDefaults(opt)
		opt.Parallel, opt.Log, opt.Past = m.state.Opt.Parallel, m.state.Opt.Log, m.state.Opt.Past
		m.state.Opt = opt
		for _, t := range m.state.Drives {
			m.poll.Assess(t)
		}
		return nil
	})
}
