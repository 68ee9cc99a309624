// Package daemon is `drivebay serve`: it makes the parts of the daemon from the
// configuration, connects them, and runs them until a signal.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/host/hardware"
	"github.com/drivebay/drivebay/internal/notify"
	"github.com/drivebay/drivebay/internal/rpc"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// stopTime is how long the parts get to end. A drive that hangs, even the one under the
// state directory, does not delay the exit longer.
const stopTime = 4 * time.Second

// Options are what the daemon gets from the command line.
type Options struct {
	Load     func() (config.Loaded, error) // reads the configuration again
	Simulate func(path string) (Simulated, error)
	Place    config.Place
	Out, Err io.Writer
	Version  string
	Commit   string
}

// daemon is one run of drivebay serve.
type daemon struct {
	opt    Options
	config config.Config // the configuration in force
	report atomic.Pointer[api.ConfigStatus]
	level  slog.LevelVar
	log    *slog.Logger
	tcp    string // the address at which HTTP is served

	machine  host.Machine
	hardware *drivebay.Hardware // which machine it is; nil: its firmware says nothing
	simClaim drivebay.Selectors // of the simulated machine's file; those of the configuration win
	engine   *drivemgr.Manager
	volumes  *volume.Engine // nil: the drives cannot be written to
	replicas *replication   // nil with volumes
	notices  *notify.Notifier
	notify   notifier // of the service manager

	latencies rpc.Latencies
	stuck     bool // a part did not end in time
}

// Run runs the daemon with a configuration until ctx ends.
func Run(ctx context.Context, loaded config.Loaded, opt Options) error {
	d := &daemon{opt: opt, config: loaded.Resolve(opt.Place)}
	d.log = newLog(opt.Err, d.config.Log, &d.level)
	d.report.Store(&api.ConfigStatus{File: loaded.File, Loaded: time.Now()})
	for _, w := range loaded.Warnings {
		d.log.Warn(w, "op", "config")
	}
	if d.config.Role == config.RoleController {
		return d.control(ctx)
	}
	return d.serve(ctx)
}

// serve runs the daemon until ctx ends. A lock keeps other daemons from managing the
// drives of this machine.
func (d *daemon) serve(ctx context.Context) error {
	if d.config.Sim != "" {
		return d.run(ctx)
	}
	lock, err := host.LockMachine(d.config.Root, fmt.Sprintf("pid %d, state directory %s, API %s", os.Getpid(), d.config.StateDir, d.config.API))
	if err != nil {
		return err
	}
	err = d.run(ctx)
	if d.stuck {
		return err // a thread may still write to a drive: the lock ends with the process
	}
	return errors.Join(err, lock.Close())
}

// run makes the parts of the daemon and runs them until ctx or one of them ends.
func (d *daemon) run(ctx context.Context) error {
	sim, err := d.open()
	if err != nil {
		return err
	}
	if d.hardware, err = hardware.Read(d.machine); err != nil {
		d.log.Warn("the identity of the machine cannot be read", "op", "hardware", "err", err)
	}
	if err := useStateDir(d.config.StateDir); err != nil {
		return err
	}
	st, err := store.Open(filepath.Join(d.config.StateDir, "drivebay.db"))
	if err != nil {
		return err
	}
	for _, p := range st.Problems() {
		d.log.Warn(p, "op", "store")
	}
	if err := st.Failing(); err != nil {
		d.log.Error("the record store cannot be written", "op", "store", "err", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	recorder, tick := d.newHistory(st)
	opt := d.options(d.config)
	opt.Past = recorder.Of
	d.engine = drivemgr.New(d.machine, st, opt)
	if d.volumes, err = d.makeVolumes(st); err != nil {
		return errors.Join(err, st.Close())
	}
	if d.volumes != nil {
		d.replicas = &replication{Engine: d.volumes, machine: d.machine, can: d.volumes.Replicates}
	}
	d.notices = d.newNotices()
	kubernetes, err := d.kubernetes()
	if err != nil {
		return errors.Join(err, st.Close())
	}
	edge := d.edge(ctx, sim, recorder)
	listeners, err := d.listen(ctx)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	plugins, err := d.plugins()
	if err != nil {
		for _, l := range listeners {
			l.Close()
		}
		return errors.Join(err, st.Close())
	}
	d.notify = newNotifier(d.opt.Place.Getenv)

	parts := []func() error{
		func() error { return d.engine.Run(ctx) },
		func() error { return edge.Serve(ctx, listeners...) },
		func() error { return d.notices.Run(ctx) },
		func() error { return d.record(ctx, recorder, tick) },
		func() error { return endIfStuck(ctx, d.machine, d.alive) },
	}
	if d.volumes != nil {
		parts = append(parts, func() error { return d.volumes.Run(ctx) })
	}
	if kubernetes != nil {
		parts = append(parts, func() error { return kubernetes(ctx) })
	}
	for _, serve := range plugins {
		parts = append(parts, func() error { return serve(ctx) })
	}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part() }()
	}
	go boundMemory(ctx, d.machine, d.opt.Place.Getenv)
	go d.attend(ctx, hangups(ctx))
	go d.notify.watchdog(ctx, d.machine, d.opt.Place.Getenv("WATCHDOG_USEC"), d.alive)

	var first error
	running := len(parts)
	select {
	case <-ctx.Done():
	case first = <-ended:
		running--
		cancel(first)
	}
	return errors.Join(first, d.stop(ended, running, st))
}

// alive reports whether the drives and the volumes are looked at.
func (d *daemon) alive() bool {
	fresh := func(seq uint64, at time.Time) bool { return seq == 0 || d.machine.Now().Sub(at) < drivemgr.StaleAfter }
	s := d.engine.Snapshot()
	if d.volumes != nil {
		if v := d.volumes.Volumes(); !fresh(v.Seq, v.At) {
			return false
		}
	}
	return fresh(s.Seq, s.At)
}

// How often a daemon is looked at, and how often in a row it is stuck until it ends: after a pause of the machine, or a change of the
// clock, what was seen last is old for a moment.
const (
	stuckEvery = 20 * time.Second
	stuckTimes = 3
)

// endIfStuck ends a daemon that does not look at its drives and volumes any more: what it says of them is of before, and it would say so for
// ever. The one that is started in its place says that it does not know, until it has looked.
func endIfStuck(ctx context.Context, clock host.Clock, alive func() bool) error {
	for stuck := 0; stuck < stuckTimes; {
		select {
		case <-ctx.Done():
			return nil
		case <-clock.After(stuckEvery):
		}
		if stuck++; alive() {
			stuck = 0
		}
	}
	return errors.New("the daemon does not look at its drives or volumes any more: it ends, so that it is started again")
}

// attend reports the start once the first snapshot is there. From then on it reads the
// configuration again at every SIGHUP.
func (d *daemon) attend(ctx context.Context, hup <-chan os.Signal) {
	s, err := d.engine.Wait(ctx, 0)
	if err != nil {
		return // stopped before the first snapshot
	}
	d.greet(s)
	if err := d.notify.send("READY=1"); err != nil {
		d.log.Warn("the start was not reported to the service manager", "op", "notify", "err", err)
	}
	for {
		select {
		case <-hup:
			d.reload(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// stop waits for the parts to end, but not longer than stopTime.
func (d *daemon) stop(ended <-chan error, running int, st *store.Bolt) error {
	if err := d.notify.send("STOPPING=1"); err != nil {
		d.log.Warn("the stop was not reported to the service manager", "op", "notify", "err", err)
	}
	d.log.Info("stopping", "op", "stop")
	late, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	var errs []error
	for range running {
		select {
		case err := <-ended:
			errs = append(errs, err)
		case <-late.Done():
			d.stuck = true
			d.log.Warn("a part of the daemon did not stop in time, because a drive or the state directory hangs: exiting without waiting for it", "op", "stop")
			return errors.Join(errs...)
		}
	}
	return errors.Join(append(errs, st.Close())...)
}
