package daemon

import (
	"context"
	"strings"

	"github.com/drivebay/drivebay/internal/api"
	"github.com/drivebay/drivebay/internal/config"
)

// reload applies the keys that can change while the daemon runs, and reports those that need a
// restart in the log and in the status. An invalid configuration changes nothing.
func (d *daemon) reload(ctx context.Context) {
	report := *d.report.Load()
	report.Changed, report.Error = nil, ""
	loaded, err := d.opt.Load()
	if err == nil {
		err = d.apply(ctx, loaded, &report)
	}
	if err != nil {
		report.Error = invalidConfig
		for line := range strings.SplitSeq(err.Error(), "\n") {
			d.log.Error("the configuration was not applied", "op", "reload", "file", report.File, "err", line)
		}
	}
	d.report.Store(&report)
}

// invalidConfig is the error in the status, which more users can read than the file: the errors
// themselves contain values of keys.
const invalidConfig = "the configuration was not applied: see the log of the daemon, or run `drivebay config check FILE`"

// apply changes the running daemon to a configuration and describes the differences.
func (d *daemon) apply(ctx context.Context, loaded config.Loaded, report *api.ConfigStatus) error {
	next := loaded.Resolve(d.opt.Place)
	live, restart := config.Changes(d.config, next)
	if err := d.engine.Configure(ctx, d.options(next)); err != nil {
		return err
	}
	setLevel(&d.level, next.Log.Level)
	d.config = d.config.Live(next)
	report.File, report.Loaded, report.Changed, report.Restart = loaded.File, d.machine.Now(), live, restart
	for _, w := range loaded.Warnings {
		d.log.Warn(w, "op", "reload")
	}
	if len(live) > 0 {
		d.log.Info("configuration reloaded", "op", "reload", "file", loaded.File, "changed", strings.Join(live, ","))
	} else {
		d.log.Info("configuration reloaded: no key changed that takes effect without a restart", "op", "reload", "file", loaded.File)
	}
	if len(restart) > 0 {
		d.log.Warn("these keys need a restart", "op", "reload", "keys", strings.Join(restart, ","))
	}
	return nil
}
