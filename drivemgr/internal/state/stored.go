package state

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
)

// TelemetryAge is how old the telemetry of a stored record may become: temperature, hours, bytes
// written and the times of readings.
const TelemetryAge = 24 * time.Hour

// KeepRecord hands the drive's record to the keeper, which stores it, if a decision after a
// restart could depend on what has changed in it since it was stored: the drive's identity,
// place, content or state, a finding, its confirmation or its end, a counter that a rule compares
// with its past, a self-test. Telemetry alone is stored once in TelemetryAge and when the manager
// stops: a rack whose drives only grow older and warmer writes nothing at its polls.
//
// A record that was not stored holds the same counters as the stored one, so a rule that
// measures growth finds the same base after a crash.
func (m *State) KeepRecord(t *Tracked) {
	sum, now := sumOf(t), m.Machine.Now()
	if sum != "" && sum == t.storedSum && now.Sub(t.storedAt).Abs() < TelemetryAge {
		refreshRecord(t)
		return
	}
	t.storedSum, t.storedAt = sum, now
	m.keep(t)
}

// KeepLogged hands the drive's record to the keeper after the kernel has logged something of the drive. A drive that logs without end
// is stored the less often the more there is to store.
func (m *State) KeepLogged(t *Tracked, now time.Time) {
	changes := t.Kernlog.Changes()
	if changes == t.loggedStored || now.Sub(t.storedAt).Abs() < loggedAgain+time.Duration(len(t.Rec.Logged))*time.Millisecond {
		return
	}
	t.loggedStored = changes
	m.KeepRecord(t)
}

// loggedAgain is how soon after a record the next lines of the kernel log are stored.
const loggedAgain = time.Second

// KeepAll hands the records of all drives to the keeper, with their telemetry.
func (m *State) KeepAll() {
	for _, t := range m.Drives {
		m.keep(t)
	}
}

// refreshRecord copies the drive into its record.
func refreshRecord(t *Tracked) {
	t.Rec.Drive, t.Rec.Disks, t.Rec.Logged = t.Drive, t.Drive.Disks, t.Kernlog.Encode()
	t.Rec.Drive.Kernel = nil
}

func (m *State) keep(t *Tracked) {
	refreshRecord(t)
	rec := t.Rec
	rec.History = slices.Clone(rec.History) // the keeper reads it while we append
	m.Keeper.Keep(t.Drive.ID, rec)
}

// sumOf returns the checksum of a drive's record without telemetry, "" if the record cannot be
// encoded. Everything in a record that is not removed here counts.
func sumOf(t *Tracked) string {
	r := t.Rec
	r.Drive, r.Disks, r.Logged = t.Drive, t.Drive.Disks, t.Kernlog.Encode()
	r.History = decisive(r.History)
	r.Memory.SeenAt, r.Memory.Findings = time.Time{}, slices.Clone(r.Memory.Findings)
	for i := range r.Memory.Findings { // the text has the number as it was measured last
		f := &r.Memory.Findings[i]
		f.Text, f.Level = "", 0
	}
	d := &r.Drive
	d.Kernel, d.Temperature, d.PowerOnHours, d.Wear, d.SelfTest, d.LastSeen = nil, nil, nil, nil, nil, time.Time{}
	d.Findings = nil // as in Memory
	if ev := d.Evidence; ev != nil {
		d.Evidence = &drivebay.Evidence{Source: ev.Source, Protocol: ev.Protocol, Type: ev.Type, Identity: ev.Identity, Verdict: ev.Verdict, SelfTests: ev.SelfTests}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}

// decisive returns the counters of the newest sample that rules compare with the past. Those of
// the kernel do not outlive the daemon (see Begin).
func decisive(history []drivebay.Sample) []drivebay.Sample {
	if len(history) == 0 {
		return nil
	}
	counters := maps.Clone(history[len(history)-1].Counters)
	maps.DeleteFunc(counters, func(key string, _ uint64) bool {
		return key == health.KeyWritten || strings.HasPrefix(key, "kernel.")
	})
	return []drivebay.Sample{{Counters: counters}}
}
