package daemon

import (
	"context"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay/internal/api"
	"github.com/drivebay/drivebay/internal/config"
)

// reload applies the keys that can change while the daemon runs, and reports those that need a
// restart in the log and in the status. An invalid configuration changes nothing, nor does a file that may be half written: without its
// end, a claim selects more drives, and the default of replacement.trigger releases some.
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

// unfinished returns why a file may be half written, or is gone, where the configuration in force is of the file before; "" if it is whole.
func unfinished(loaded config.Loaded, before string) string {
	if loaded.File == "" && before != "" {
		return before + " does not exist"
	}
	return loaded.Unfinished
}

// apply changes the running daemon to a configuration and describes the differences.
func (d *daemon) apply(ctx context.Context, loaded config.Loaded, report *api.ConfigStatus) error {
	next := loaded.Resolve(d.opt.Place)
	live, restart := config.Changes(d.config, next)
	if why := unfinished(loaded, report.File); why != "" && len(live) > 0 {
		return fmt.Errorf("%s, and it would change %s: it may be half written; write it in full and reload again, or restart the daemon", why, strings.Join(live, ", "))
	}
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
