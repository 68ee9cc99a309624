package metrics

import (
	"time"

	"github.com/drivebay/drivebay"
)

const (
	percent     = 100
	hourSeconds = 3600
	daySeconds  = 24 * hourSeconds
)

var healths = []drivebay.Health{drivebay.HealthUnknown, drivebay.HealthGood, drivebay.HealthSuspect, drivebay.HealthBad}

var snapshotMetrics = []metric[*drivebay.Snapshot]{
	{"machine_info", "The machine that the daemon runs on, and what its firmware says about it.", gauge, []string{"machine", "kind", "vendor", "product", "serial", "asset_tag", "bios"}, func(s *drivebay.Snapshot, add emit) {
		var h drivebay.Hardware
		if s.Machine.Hardware != nil {
			h = *s.Machine.Hardware
		}
		add(1, s.Machine.Name, s.Machine.Kind, h.Vendor, h.Product, h.Serial, h.Chassis.AssetTag, h.BIOS.Version)
	}},
	{"drive_info", "Names and properties of the drive, for joins.", gauge, infoLabels, func(s *drivebay.Snapshot, add emit) {
		server := s.Machine.Hardware.Server()
		for i := range s.Drives {
			d := &s.Drives[i]
			var p drivebay.Path
			if len(d.Paths) > 0 {
				p = d.Paths[0]
			}
			add(1, d.ID, d.Name, p.Dev, d.Model, d.Vendor, d.Serial, d.Firmware, d.WWN, d.Type.String(), d.Transport.String(), d.Protocol.String(), d.Slot.Enclosure, d.Slot.Bay, p.Address, server)
		}
	}},
	{"snapshot_sequence", "Sequence number of the snapshot that this page shows; 0 before the first listing.", gauge, nil, func(s *drivebay.Snapshot, add emit) {
		add(float64(s.Seq))
	}},
	{"snapshot_timestamp_seconds", "When the snapshot was taken.", gauge, nil, func(s *drivebay.Snapshot, add emit) {
		add(seconds(s.At))
	}},
	{"snapshot_complete", "Whether the list of drives is complete.", gauge, nil, func(s *drivebay.Snapshot, add emit) {
		add(truth(s.Complete))
	}},
	{"snapshot_problems", "Number of problems that prevent drivebay from reading the machine.", gauge, nil, func(s *drivebay.Snapshot, add emit) {
		add(float64(len(s.Problems)))
	}},
	{"store_failing", "Whether the record store cannot be written.", gauge, nil, func(s *drivebay.Snapshot, add emit) {
		add(truth(s.StoreFailing != ""))
	}},
	{"drives", "Drives by verdict.", gauge, []string{"health"}, func(s *drivebay.Snapshot, add emit) {
		count := map[drivebay.Health]int{}
		for _, d := range s.Drives {
			count[d.Health]++
		}
		for _, h := range healths {
			add(float64(count[h]), h.String())
		}
	}},
	{"bay_occupied", "Whether a known drive is in the bay.", gauge, []string{"enclosure", "bay"}, func(s *drivebay.Snapshot, add emit) {
		for _, b := range s.Bays {
			add(truth(b.Drive != ""), b.Enclosure, b.Bay)
		}
	}},
	{"bay_locate_light", "Whether the light of the bay is on.", gauge, []string{"enclosure", "bay"}, func(s *drivebay.Snapshot, add emit) {
		for _, b := range s.Bays {
			if b.Locate != "" {
				add(truth(b.Lit), b.Enclosure, b.Bay)
			}
		}
	}},
}

var infoLabels = []string{"drive", "name", "path", "model", "vendor", "serial", "firmware", "wwn", "type", "transport", "protocol", "enclosure", "bay", "address", "server"}

// generalMetrics holds the metrics of every kind of drive.
var generalMetrics = []metric[*drivebay.Drive]{
	{"health", "Health of the drive: 1 for the present verdict, 0 for the others.", gauge, []string{"health"}, func(d *drivebay.Drive, add emit) {
		for _, h := range healths {
			add(truth(d.Health == h), h.String())
		}
	}},
	{"finding", "One finding of a health rule. It remains until its cause has been gone for a while (docs/health-rules.md).", gauge, []string{"code", "severity"}, func(d *drivebay.Drive, add emit) {
		for _, f := range d.Findings {
			add(1, f.Code, f.Severity.String())
		}
	}},
	{"online", "Whether the drive is present on the machine; absent while that is unknown.", gauge, nil, func(d *drivebay.Drive, add emit) {
		if d.Status != drivebay.StatusUnknown {
			add(truth(d.Status == drivebay.StatusOnline))
		}
	}},
	{"paths", "Paths by which the kernel reaches the drive.", gauge, nil, func(d *drivebay.Drive, add emit) { add(float64(len(d.Paths))) }},
	{"system", "Whether the running system depends on the drive.", gauge, nil, func(d *drivebay.Drive, add emit) { add(truth(d.System)) }},
	{"cordoned", "Whether the drive is cordoned: it gets no new volumes.", gauge, nil, func(d *drivebay.Drive, add emit) { add(truth(d.Cordoned)) }},
	{"claimed", "Whether the drive may be used for volumes.", gauge, nil, func(d *drivebay.Drive, add emit) { add(truth(d.Claim != nil)) }},
	{"identity_conflict", "Whether another drive has the same identity or the same content, or the drive has no identity.", gauge, nil, func(d *drivebay.Drive, add emit) {
		add(truth(d.IdentityIssue != "" || d.Copy != ""))
	}},
	{"unusable", "Whether the drive is claimed and present, and gets no new volumes for a reason that its health does not show: it is write-protected, shrank, cannot be distinguished from another drive, or has foreign content.", gauge, nil, func(d *drivebay.Drive, add emit) {
		add(truth(d.Unusable() != ""))
	}},
	{"usage", "Usage of the drive (docs/drive-usage.md).", gauge, []string{"usage"}, func(d *drivebay.Drive, add emit) { add(1, d.Usage.String()) }},
	{"predecessor", "The drive that this drive replaced; absent for a drive that replaced none.", gauge, []string{"predecessor"}, func(d *drivebay.Drive, add emit) {
		if d.Succeeds != nil && !d.Succeeds.Taken.IsZero() {
			add(1, d.Succeeds.Of)
		}
	}},
	{"content", "Kind of content on the drive.", gauge, []string{"content"}, func(d *drivebay.Drive, add emit) { add(1, d.Content.Kind.String()) }},
	{"size_bytes", "Capacity.", gauge, nil, func(d *drivebay.Drive, add emit) { add(float64(d.Size)) }},
	{"temperature_celsius", "Temperature at the last reading.", gauge, nil, func(d *drivebay.Drive, add emit) { number(add, d.Temperature) }},
	{"power_on_seconds_total", "Time that the drive was powered on, in whole hours.", counter, nil, func(d *drivebay.Drive, add emit) {
		if d.PowerOnHours != nil {
			add(float64(*d.PowerOnHours) * hourSeconds)
		}
	}},
	{"wear_ratio", "Used share of the rated endurance: 1 is all of it, more is possible.", gauge, nil, func(d *drivebay.Drive, add emit) {
		if d.Wear != nil {
			add(float64(d.Wear.PercentUsed) / percent)
		}
	}},
	{"wear_forecast_seconds", "Time until the rated endurance is used up; absent without enough history.", gauge, nil, func(d *drivebay.Drive, add emit) {
		if d.Wear != nil && d.Wear.DaysLeft != nil {
			add(*d.Wear.DaysLeft * daySeconds)
		}
	}},
	{"media_errors_total", "Data that the drive could not read: NVMe media errors, SCSI uncorrected errors, ATA attribute 187.", counter, nil, mediaErrors},
	{"evidence_timestamp_seconds", "When the drive last answered.", gauge, nil, ofEvidence(func(e *drivebay.Evidence, add emit) { add(seconds(e.At)) })},
	{"evidence_problems", "Health pages that the drive supports and did not return at the last reading.", gauge, nil, ofEvidence(func(e *drivebay.Evidence, add emit) {
		n := 0
		for _, p := range e.Problems {
			if !p.Expected {
				n++
			}
		}
		add(float64(n))
	})},
	{"standby", "Whether the drive was in standby at the last reading; drivebay does not wake it.", gauge, nil, ofEvidence(func(e *drivebay.Evidence, add emit) { add(truth(e.Standby)) })},
	{"self_assessment", "Health according to the drive itself.", gauge, []string{"verdict"}, ofEvidence(func(e *drivebay.Evidence, add emit) { add(1, e.Verdict.String()) })},
	{"power_cycles_total", "Number of power cycles.", counter, nil, ofEvidence(func(e *drivebay.Evidence, add emit) { number(add, e.PowerCycles) })},
	{"host_written_bytes_total", "Bytes written by the host over the life of the drive.", counter, nil, ofEvidence(func(e *drivebay.Evidence, add emit) { number(add, e.BytesWritten) })},
	{"host_read_bytes_total", "Bytes read by the host over the life of the drive.", counter, nil, ofEvidence(func(e *drivebay.Evidence, add emit) { number(add, e.BytesRead) })},
	{"selftest_last_result", "Result of the newest completed self-test of each kind.", gauge, []string{"kind", "result"}, ofEvidence(lastSelfTests)},
	{"selftest_remaining_ratio", "Remaining share of the running self-test; absent if no test runs or the drive reports no percentage.", gauge, nil, ofEvidence(func(e *drivebay.Evidence, add emit) {
		if e.SelfTestProgress != nil {
			add(float64(*e.SelfTestProgress) / percent)
		}
	})},
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// ofEvidence reads values that exist only after the drive has answered.
func ofEvidence(f func(*drivebay.Evidence, emit)) func(*drivebay.Drive, emit) {
	return func(d *drivebay.Drive, add emit) {
		if d.Evidence != nil {
			f(d.Evidence, add)
		}
	}
}

func lastSelfTests(e *drivebay.Evidence, add emit) {
	seen := map[string]bool{}
	for _, t := range e.SelfTests { // newest first
		if completed := t.Result != drivebay.SelfTestRunning && t.Result != drivebay.SelfTestAborted; completed && !seen[t.Kind] {
			seen[t.Kind] = true
			add(1, t.Kind, t.Result.String())
		}
	}
}

// reportedUncorrectable is ATA attribute 187, which corresponds to the counters of NVMe and SCSI.
const reportedUncorrectable = 187

func mediaErrors(d *drivebay.Drive, add emit) {
	e := d.Evidence
	switch {
	case e == nil:
	case e.NVMe != nil:
		add(float64(e.NVMe.MediaErrors))
	case e.SCSI != nil && len(e.SCSI.ErrorCounters) > 0:
		sum := 0.0
		for _, c := range e.SCSI.ErrorCounters {
			sum += float64(c.Uncorrected)
		}
		add(sum)
	case e.ATA != nil:
		for _, a := range e.ATA.Attributes {
			if a.ID == reportedUncorrectable {
				add(float64(a.Count))
			}
		}
	}
}
