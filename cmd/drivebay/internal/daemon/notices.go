package daemon

import (
	"context"
	"path/filepath"

	"github.com/drivebay/drivebay/internal/api"
	"github.com/drivebay/drivebay/internal/metrics"
	"github.com/drivebay/drivebay/internal/notify"
)

// newNotices returns the sender of notices; notifier is the one of the service manager.
func (d *daemon) newNotices() *notify.Notifier {
	c := d.config.Notify
	opt := notify.Options{
		Webhook: c.Webhook, SecretFile: c.SecretFile, CAFile: c.CAFile, Command: c.Command, Timeout: c.Timeout,
		Cursor: filepath.Join(d.config.StateDir, "notices.json"), Version: d.opt.Version, Clock: d.machine, Log: d.log,
	}
	for _, kind := range c.Kinds {
		opt.Kinds = append(opt.Kinds, notify.Kind(kind))
	}
	if d.volumes != nil {
		opt.VolumeName = func(id string) string {
			if v, ok := d.volumes.Volumes().Get(id); ok {
				return v.Name
			}
			return ""
		}
	}
	return notify.New(d.engine, opt)
}

// trial returns the function that sends a trial notice, or nil if there are no sinks.
func (d *daemon) trial() func(context.Context) []api.TrialResult {
	if d.config.Notify.Webhook == "" && len(d.config.Notify.Command) == 0 {
		return nil
	}
	return func(ctx context.Context) []api.TrialResult {
		var out []api.TrialResult
		for _, r := range d.notices.Trial(ctx) {
			result := api.TrialResult{Sink: r.Sink, Seconds: r.Took.Seconds()}
			if r.Err != nil {
				result.Error = r.Err.Error()
			}
			out = append(out, result)
		}
		return out
	}
}

// counted returns what the edges count, for the metrics.
func (d *daemon) counted() metrics.Edges {
	return metrics.Edges{
		Notices: func() (out []metrics.Notices) {
			for _, c := range d.notices.Counts() {
				out = append(out, metrics.Notices(c))
			}
			return out
		},
		RPC: func() (out []metrics.RPC) {
			for _, l := range d.latencies.All() {
				out = append(out, rpcMetrics(l))
			}
			return out
		},
	}
}
