package cluster

import (
	"maps"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/kube/heartbeat"
)

// reports are what nodes say about themselves, by their names.
type reports map[string]heartbeat.Report

// reportsOf returns the reports in Leases.
func reportsOf(leases []coordinationv1.Lease) reports {
	out := reports{}
	for i := range leases {
		if node, r, err := heartbeat.Read(&leases[i]); err == nil {
			out[node] = r
		}
	}
	return out
}

// sameOld reports whether two reports name the same old objects.
func (r reports) sameOld(o reports) bool {
	return maps.EqualFunc(r, o, func(a, b heartbeat.Report) bool { return slices.Equal(a.Old, b.Old) })
}

// isOld reports whether an object shows what was.
func (r reports) isOld(node, name string) bool {
	of := r[node]
	return of.IsOld(name)
}

// markOld marks the drives and volumes whose objects the API server does not take from their nodes, as the controller does:
// what they show may have changed since.
func (r reports) markOld(s *drivebay.Snapshot, set *drivebay.VolumeSet) {
	for i := range s.Drives {
		d := &s.Drives[i]
		if !r.isOld(d.Node, d.ID) {
			continue
		}
		if d.Health.Rank() < drivebay.HealthUnknown.Rank() {
			d.Health = drivebay.HealthUnknown
		}
		d.Findings = append(slices.Clip(d.Findings), drivebay.Finding{Code: heartbeat.ReasonOld, Severity: drivebay.HealthUnknown, Text: heartbeat.OldText(d.Node)})
	}
	for _, v := range set.Volumes { // views of this set alone
		if r.isOld(v.Node, v.ID) {
			v.OperationalStatus = drivebay.OperationalUnknown
			v.Condition = append(slices.Clip(v.Condition), drivebay.VolumeFinding{Severity: drivebay.SeverityDegraded, Reason: heartbeat.ReasonOld, Message: heartbeat.OldText(v.Node)})
		}
	}
}
