package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/config"
	"github.com/drivebay/drivebay/internal/store"
)

// newLog returns the logger; level can change while it is in use.
func newLog(w io.Writer, c config.Log, level *slog.LevelVar) *slog.Logger {
	setLevel(level, c.Level)
	opt := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opt))
	}
	return slog.New(slog.NewTextHandler(w, opt))
}

func setLevel(level *slog.LevelVar, name string) {
	var l slog.Level
	if l.UnmarshalText([]byte(name)) == nil { // the configuration has checked it
		level.Set(l)
	}
}

// options returns the options of the drive engine.
func (d *daemon) options(c config.Config) drivemgr.Options {
	if len(c.Claim) == 0 {
		c.Claim = d.simClaim
	}
	return drivemgr.Options{
		Thresholds: c.Thresholds,
		SelfTests: drivemgr.SelfTestPlan{
			Enabled: c.SelfTests.Enabled, Short: c.SelfTests.Short, Long: c.SelfTests.Long,
			From: c.SelfTests.Window.From, To: c.SelfTests.Window.To, AtOnce: c.SelfTests.MaxConcurrent,
		},
		Loop: c.Loop, Tick: c.Poll.Tick, Poll: c.Poll.Evidence, Rescan: c.Poll.Rescan,
		Claim: c.Claim, ReleaseAt: releaseAt[c.Replacement.Trigger], ReadTimeout: c.Poll.Timeout, Parallel: c.Poll.Parallel, ForgetAfter: c.Poll.ForgetAfter,
		Log: d.log, Hardware: d.hardware,
	}
}

// releaseAt is the health at which the daemon releases a drive, by replacement.trigger.
var releaseAt = map[string]drivebay.Health{"bad": drivebay.HealthBad, "suspect": drivebay.HealthSuspect}

// useStateDir makes the state directory and proves that it can be written. A disk that
// takes no writes now does not stop the start: the store reports it.
func useStateDir(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(dir, ".probe-*"); err == nil {
			probe.Close()
			err = os.Remove(probe.Name())
		}
	}
	if err != nil && !store.CannotWrite(err) {
		return fmt.Errorf("state directory %s cannot be written: %w: run as the owner of the directory (usually root), or choose another directory with --state-dir", dir, err)
	}
	return nil
}

// greet prints where the daemon answers and keeps its state, and what it cannot read.
func (d *daemon) greet(s *drivebay.Snapshot) {
	fmt.Fprintf(d.opt.Out, "drivebay %s watches %s (%s): %s\n", d.opt.Version, s.Machine.Name, s.Machine.Kind, driveCount(len(s.Drives)))
	rows := [][2]string{{"API", d.config.API}, {"state", filepath.Clean(d.config.StateDir)}}
	if file := d.report.Load().File; file != "" {
		rows = append(rows, [2]string{"config", file})
	}
	if d.tcp != "" {
		rows = append(rows, [2]string{"HTTP", d.scheme() + d.tcp + "/api/v1/drives (read-only)"}, [2]string{"metrics", d.scheme() + d.tcp + "/metrics"})
	} else {
		rows = append(rows, [2]string{"metrics", d.config.API + " /metrics (--listen ADDR serves them over HTTP)"})
	}
	if d.config.CSIEndpoint != "" {
		rows = append(rows, [2]string{"CSI", d.config.CSIEndpoint})
	}
	if d.config.AddonsEndpoint != "" {
		rows = append(rows, [2]string{"addons", d.config.AddonsEndpoint})
	}
	if d.config.Sim != "" {
		rows = append(rows, [2]string{"simulator", d.config.API + " /sim/"})
	}
	if os.Geteuid() != 0 && d.config.Sim == "" {
		rows = append(rows, [2]string{"missing", "the daemon does not run as root: health pages, contents and the kernel log cannot be read"})
	}
	for _, p := range s.Problems {
		rows = append(rows, [2]string{"missing", p})
	}
	for _, r := range rows {
		fmt.Fprintf(d.opt.Out, "  %-10s%s\n", r[0], r[1])
	}
	fmt.Fprintf(d.opt.Out, "try: drivebay drives%s\n", d.apiHint())
}

func driveCount(n int) string {
	if n == 1 {
		return "1 drive"
	}
	return fmt.Sprintf("%d drives", n)
}

// apiHint returns the flag that a client needs to find the daemon, if it needs one.
func (d *daemon) apiHint() string {
	if d.config.API == d.opt.Place.API() {
		return ""
	}
	return " --api " + d.config.API
}
