package hostsim

import "time"

// play runs the faults of a script, in the order of their times.
func (m *Machine) play(steps []Step) {
	var at time.Duration
	for i := range steps {
		if wait := steps[i].After - at; wait > 0 && !m.kernel.pause(wait) {
			return
		}
		at = steps[i].After
		if err := m.Inject(steps[i].Fault); err != nil {
			m.kernel.logf(levelWarn, "simulator: script: %v", err)
		}
	}
}

// Stats counts the use of the machine.
type Stats struct {
	Runs   int // programs started
	Writes int // writes to sysfs attributes
	Drives []DriveStats
}

// DriveStats counts the use of a drive.
type DriveStats struct {
	Bay       string `json:"bay,omitempty"`
	Name      string `json:"name,omitempty"`
	Serial    string `json:"serial"`
	Opens     int    `json:"opens"`
	Pages     int    `json:"pages"`
	Reads     int    `json:"reads"`
	Writes    int    `json:"writes"`
	Wakeups   int    `json:"wakeups"`
	SelfTests int    `json:"selfTests"`
}

// Stats returns the present counters. The drives are in the order of the description.
func (m *Machine) Stats() Stats {
	m.kernel.mu.RLock()
	defer m.kernel.mu.RUnlock()
	s := Stats{Runs: m.runs, Writes: m.files.writes}
	for _, d := range m.devices.drives {
		one := d.stats
		one.Name, one.Serial = d.name, d.serial
		if d.bay != nil {
			one.Bay = d.label()
		}
		s.Drives = append(s.Drives, one)
	}
	return s
}
