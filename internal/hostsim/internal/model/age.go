package model

import (
	"cmp"
	"fmt"
	"time"
)

// Age is the wear and the history of a drive.
type Age struct {
	PowerOnHours    uint64 `yaml:"power_on_hours"`
	PowerCycles     uint64 `yaml:"power_cycles"`
	Temperature     int    `yaml:"temperature"`
	Written         string `yaml:"written"` // "1.2PB"
	PercentageUsed  int    `yaml:"percentage_used"`
	Reallocated     uint64 `yaml:"reallocated"` // grown defects of a SAS drive
	Pending         uint64 `yaml:"pending"`
	Uncorrectable   uint64 `yaml:"uncorrectable"` // uncorrectable errors
	CRCErrors       uint64 `yaml:"crc_errors"`
	MediaErrors     uint64 `yaml:"media_errors"` // NVMe
	Spare           int    `yaml:"spare"`        // percent of spare blocks left; 0: 100
	CriticalWarning uint8  `yaml:"critical_warning"`
	Failed          bool   `yaml:"failed"` // the drive's own verdict
}

// Counters is an Age in the units of the pages.
type Counters struct {
	Age
	Written uint64 // bytes
	Born    time.Time
}

// NewCounters checks an age and fills in the defaults.
func NewCounters(a Age) (Counters, error) {
	out := Counters{Age: a}
	if a.Written != "" {
		n, err := ParseSize(a.Written)
		if err != nil {
			return out, fmt.Errorf("age: written: %w", err)
		}
		out.Written = n
	}
	for _, r := range []struct {
		name       string
		value, max int
	}{{"percentage_used", a.PercentageUsed, 255}, {"spare", a.Spare, 100}, {"temperature", a.Temperature, 125}} {
		if r.value < 0 || r.value > r.max {
			return out, fmt.Errorf("age: %s %d: want 0 to %d", r.name, r.value, r.max)
		}
	}
	out.PowerOnHours = cmp.Or(a.PowerOnHours, 8760)
	out.PowerCycles = cmp.Or(a.PowerCycles, 24)
	out.Temperature = cmp.Or(a.Temperature, 34)
	out.Spare = cmp.Or(a.Spare, 100)
	out.Written = cmp.Or(out.Written, 40e12)
	return out, nil
}
