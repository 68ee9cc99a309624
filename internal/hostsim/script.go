package hostsim

import (
	"time"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// play runs the faults of a script, in the order of their times.
func (m *Machine) play(steps []TimedFault) {
	var at time.Duration
	for i := range steps {
		if wait := steps[i].After - at; wait > 0 && !m.kernel.Pause(wait) {
			return
		}
		at = steps[i].After
		if err := m.Inject(steps[i].Fault); err != nil {
			m.kernel.Logf(kernel.LevelWarn, "simulator: script: %v", err)
		}
	}
}

// Stats counts the use of the machine.
type Stats struct {
	Runs   int // programs started
	Writes int // writes to sysfs attributes
	Drives []block.DriveStats
}

// Stats returns the present counters. The drives are in the order of the description.
func (m *Machine) Stats() Stats {
	m.kernel.Mu.RLock()
	defer m.kernel.Mu.RUnlock()
	s := Stats{Runs: m.runs, Writes: m.files.Writes}
	for _, d := range m.devices.Drives {
		one := d.Stats
		one.Name, one.Serial, one.SelfTests = d.Name, d.Serial, d.Started
		if d.Bay != nil {
			one.Bay = d.Label()
		}
		s.Drives = append(s.Drives, one)
	}
	return s
}
