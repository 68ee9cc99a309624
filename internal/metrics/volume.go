package metrics

import "github.com/drivebay/drivebay"

var (
	operational  = []drivebay.OperationalStatus{drivebay.OperationalUnknown, drivebay.Operative, drivebay.Inoperative, drivebay.OperationalStaging, drivebay.Maintenance, drivebay.Missing, drivebay.OperationalRemoving, drivebay.OperationalRemoved}
	statusLabels = []string{"status"}
)

// setMetrics holds the metrics of all volumes together.
var setMetrics = []metric[*drivebay.VolumeSet]{
	{"volumes", "Volumes by operational status.", gauge, statusLabels, func(s *drivebay.VolumeSet, add emit) {
		count := map[drivebay.OperationalStatus]int{}
		for _, v := range s.Volumes {
			count[v.OperationalStatus]++
		}
		for _, status := range operational {
			add(float64(count[status]), status.String())
		}
	}},
	{"volumes_abnormal", "Volumes with an abnormal condition.", gauge, nil, func(s *drivebay.VolumeSet, add emit) {
		add(count(s.Volumes, func(v *drivebay.VolumeView) bool { return v.Condition.Abnormal() }))
	}},
	{"volumes_timestamp_seconds", "When the volumes were listed; 0 before the first listing.", gauge, nil, func(s *drivebay.VolumeSet, add emit) { add(seconds(s.At)) }},
	{"volumes_problems", "Number of problems that prevent drivebay from reading volumes.", gauge, nil, func(s *drivebay.VolumeSet, add emit) { add(float64(len(s.Problems))) }},
	{"volumes_found", "Volumes on the drives of which there is no record, by whether an issue prevents their adoption or only the claim of their drive is missing.", gauge, []string{"issue"}, func(s *drivebay.VolumeSet, add emit) {
		with := count(s.Found, func(f drivebay.FoundVolume) bool { return f.Issue != "" })
		add(with, "true")
		add(float64(len(s.Found))-with, "false")
	}},
	{"snapshots", "Snapshots of volumes.", gauge, nil, func(s *drivebay.VolumeSet, add emit) { add(float64(len(s.Snapshots))) }},
	{"snapshots_unavailable", "Snapshots that cannot be used now.", gauge, nil, func(s *drivebay.VolumeSet, add emit) {
		add(count(s.Snapshots, func(v drivebay.VolumeSnapshot) bool { return v.Unavailable != "" }))
	}},
}

// volumeMetrics holds the metrics of one volume. A value that was not read is absent.
var volumeMetrics = []metric[*drivebay.VolumeView]{
	{"info", "Name and properties of the volume, for joins.", gauge, []string{"name", "node", "mode", "fs", "backing"}, func(v *drivebay.VolumeView, add emit) {
		add(1, v.Name, v.Node, v.Mode.String(), v.FSType, v.Location.Kind.String())
	}},
	{"drive", "Drives that the volume is on, for joins.", gauge, []string{"drive"}, func(v *drivebay.VolumeView, add emit) {
		for _, d := range v.Location.Drives {
			add(1, d)
		}
	}},
	{"size_bytes", "Size.", gauge, nil, func(v *drivebay.VolumeView, add emit) { add(float64(v.Size)) }},
	{"health", "Health of the volume, from its drives: 1 for the present verdict, 0 for the others.", gauge, []string{"health"}, func(v *drivebay.VolumeView, add emit) {
		for _, h := range healths {
			add(truth(v.Health == h), h.String())
		}
	}},
	{"condition", "One finding of the condition of the volume (docs/volume-conditions.md).", gauge, []string{"severity", "reason"}, func(v *drivebay.VolumeView, add emit) {
		for _, f := range v.Condition {
			add(1, f.Severity.String(), f.Reason)
		}
	}},
	{"status", "Operational status of the volume.", gauge, statusLabels, func(v *drivebay.VolumeView, add emit) { add(1, v.OperationalStatus.String()) }},
	{"csi_status", "Status of the volume in its CSI lifecycle.", gauge, statusLabels, func(v *drivebay.VolumeView, add emit) { add(1, v.CSIStatus.String()) }},
	{"usage", "Usage of the volume: the state of its move off a drive that is leaving.", gauge, []string{"usage"}, func(v *drivebay.VolumeView, add emit) { add(1, v.Usage.String()) }},
	{"published_paths", "Number of paths at which the volume is published.", gauge, nil, func(v *drivebay.VolumeView, add emit) {
		n := 0
		for _, p := range v.Publications {
			if !p.Staging {
				n++
			}
		}
		add(float64(n))
	}},
	{"filesystem_size_bytes", "Size of the filesystem.", gauge, nil, ofFS(func(f *drivebay.FSFacts, add emit) { number(add, f.Bytes) })},
	{"filesystem_free_bytes", "Free bytes of the filesystem, for users other than root.", gauge, nil, ofFS(func(f *drivebay.FSFacts, add emit) { number(add, f.Free) })},
	{"filesystem_inodes", "Inodes of the filesystem; absent if their number is not fixed.", gauge, nil, ofFS(func(f *drivebay.FSFacts, add emit) { number(add, f.Inodes) })},
	{"filesystem_free_inodes", "Free inodes of the filesystem.", gauge, nil, ofFS(func(f *drivebay.FSFacts, add emit) { number(add, f.FreeInodes) })},
	{"filesystem_errors", "Inconsistencies that the kernel counts in the filesystem.", gauge, nil, ofFS(func(f *drivebay.FSFacts, add emit) { add(float64(f.Errors)) })},
	{"filesystem_check_timestamp_seconds", "When the filesystem was last checked.", gauge, nil, ofScrub(func(s *drivebay.Scrub, add emit) { add(seconds(s.At)) })},
	{"filesystem_check_corrupt", "Number of checks in a row, up to the newest, that found the filesystem corrupted.", gauge, nil, ofScrub(func(s *drivebay.Scrub, add emit) { add(float64(s.Corrupt)) })},
	{"frozen_seconds", "How long requests to the volume have waited while none completed.", gauge, nil, ofVolumeIO(func(f *drivebay.IOFacts, add emit) { add(f.Frozen.Seconds()) })},
	{"io_errors", "Requests to the volume that failed within 24 hours.", gauge, nil, ofVolumeIO(func(f *drivebay.IOFacts, add emit) { add(float64(f.Errors)) })},
	{"pool_data_ratio", "Used share of the data space of the thin pool.", gauge, nil, ofLV(func(f *drivebay.LVFacts, add emit) { ratio(add, f.DataPercent) })},
	{"pool_metadata_ratio", "Used share of the metadata space of the thin pool.", gauge, nil, ofLV(func(f *drivebay.LVFacts, add emit) { ratio(add, f.MetadataPercent) })},
	{"replication_state", "State of the replication of the volume (docs/replication.md).", gauge, []string{"role", "state"}, ofReplication(func(r *drivebay.ReplicationInfo, add emit) { add(1, role(r.Primary), r.State) })},
	{"replication_connected", "1 if the volume is connected to its peer.", gauge, nil, ofReplication(func(r *drivebay.ReplicationInfo, add emit) { add(truth(r.Connected)) })},
	{"replication_out_of_sync_bytes", "Bytes that differ from the peer, or may.", gauge, nil, ofReplication(func(r *drivebay.ReplicationInfo, add emit) { add(float64(r.OutOfSync)) })},
	{"replication_last_sync_timestamp_seconds", "When both sides had the same data last; absent while they have, and where they never had.", gauge, nil, ofReplication(func(r *drivebay.ReplicationInfo, add emit) {
		if !r.LastSync.IsZero() {
			add(seconds(r.LastSync))
		}
	})},
	{"replication_resync_bytes", "What the last complete resynchronization copied.", gauge, nil, ofReplication(func(r *drivebay.ReplicationInfo, add emit) { add(float64(r.Bytes)) })},
	{"replication_resync_seconds", "How long the last complete resynchronization took.", gauge, nil, ofReplication(func(r *drivebay.ReplicationInfo, add emit) { add(r.Duration.Seconds()) })},
	{"mirror_sync_ratio", "Share of the mirror that is in sync.", gauge, nil, ofLV(func(f *drivebay.LVFacts, add emit) { ratio(add, f.SyncPercent) })},
}

func count[T any](all []T, is func(T) bool) float64 {
	n := 0.0
	for _, v := range all {
		n += truth(is(v))
	}
	return n
}

func ratio(add emit, p *float64) {
	if p != nil {
		add(*p / percent)
	}
}

func ofFS(f func(*drivebay.FSFacts, emit)) func(*drivebay.VolumeView, emit) {
	return ofFacts(func(facts *drivebay.Facts) *drivebay.FSFacts { return facts.FS }, f)
}

func ofScrub(f func(*drivebay.Scrub, emit)) func(*drivebay.VolumeView, emit) {
	return ofFS(func(fs *drivebay.FSFacts, add emit) {
		if fs.Scrub != nil {
			f(fs.Scrub, add)
		}
	})
}

func ofVolumeIO(f func(*drivebay.IOFacts, emit)) func(*drivebay.VolumeView, emit) {
	return ofFacts(func(facts *drivebay.Facts) *drivebay.IOFacts { return facts.IO }, f)
}

func ofLV(f func(*drivebay.LVFacts, emit)) func(*drivebay.VolumeView, emit) {
	return ofFacts(func(facts *drivebay.Facts) *drivebay.LVFacts { return facts.LV }, f)
}

func ofReplication(f func(*drivebay.ReplicationInfo, emit)) func(*drivebay.VolumeView, emit) {
	return ofFacts(func(facts *drivebay.Facts) *drivebay.ReplicationInfo { return facts.Replication }, f)
}

func role(primary bool) string {
	if primary {
		return "primary"
	}
	return "secondary"
}

// ofFacts reads a part of the facts, which may be missing.
func ofFacts[F any](part func(*drivebay.Facts) *F, f func(*F, emit)) func(*drivebay.VolumeView, emit) {
	return func(v *drivebay.VolumeView, add emit) {
		if v.Facts == nil {
			return
		}
		if p := part(v.Facts); p != nil {
			f(p, add)
		}
	}
}
