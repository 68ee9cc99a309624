package state

import (
	"log/slog"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/policy"
	"github.com/drivebay/drivebay/internal/health"
)

// Options holds the settings of a manager. Zero fields take the default.
type Options struct {
	Thresholds  health.Thresholds
	SelfTests   policy.SelfTestPlan
	Loop        bool          // count loop devices as drives
	Tick        time.Duration // how often the kernel's evidence is read; touches no disk
	Poll        time.Duration // how often each drive is read
	Rescan      time.Duration // how often all drives are listed without a uevent
	ReadTimeout time.Duration // how long one reading may take
	Parallel    int           // readings at the same time
	Claim       drivebay.Selectors
	ReleaseAt   drivebay.Health // health at which a claimed drive is released automatically; UNKNOWN: never
	ForgetAfter time.Duration   // how long the record of a drive that left is kept
	Log         *slog.Logger
	Hardware    *drivebay.Hardware // which machine it is; nil: not known
	// Past returns what was measured of a drive in the last months, oldest first; nil: nothing is kept. It may wait for the disk of
	// the store.
	Past func(drive string) ([]drivebay.HistoryPoint, error)
}

// DefaultOptions returns the settings of a daemon without a configuration.
func DefaultOptions() Options {
	return Options{
		Thresholds:  health.Default(),
		SelfTests:   policy.DefaultSelfTestPlan(),
		Tick:        2 * time.Second,
		Poll:        10 * time.Minute,
		Rescan:      5 * time.Minute,
		ReadTimeout: 30 * time.Second,
		Parallel:    16,
		ForgetAfter: 30 * 24 * time.Hour,
		Log:         slog.New(slog.DiscardHandler),
	}
}

// WithDefaults fills the zero fields of options with their defaults.
func WithDefaults(o Options) Options {
	def := DefaultOptions()
	pick := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	pick(&o.Tick, def.Tick)
	pick(&o.Poll, def.Poll)
	pick(&o.Rescan, def.Rescan)
	pick(&o.ReadTimeout, def.ReadTimeout)
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
