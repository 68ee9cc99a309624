package translate

import (
	"maps"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
	"github.com/drivebay/drivebay/internal/replication/parameters"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EnableParameters returns the parameters of a task that enables a replication.
func EnableParameters(r drivebay.ReplicationRequest) (out []v1alpha1.VolumeTaskParameter) {
	all := parameters.Of(r)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, v1alpha1.VolumeTaskParameter{Name: name, Value: all[name]})
	}
	return out
}

// EnableRequest reads them.
func EnableRequest(t *v1alpha1.VolumeTask) (drivebay.ReplicationRequest, error) {
	all := map[string]string{}
	for _, p := range t.Parameters {
		all[p.Name] = p.Value
	}
	return parameters.Parse(all)
}

// Usage returns a number of bytes as an object has it; nil: not known.
func Usage(n *uint64) *int64 {
	if n == nil {
		return nil
	}
	out := bytes(*n)
	return &out
}

// UsageOf returns a number of bytes of an object.
func UsageOf(n *int64) *uint64 {
	if n == nil {
		return nil
	}
	out := uint64(max(*n, 0))
	return &out
}

var replicationStatuses = map[drivebay.ReplicationStatus]string{drivebay.ReplicationHealthy: "HEALTHY", drivebay.ReplicationDegraded: "DEGRADED", drivebay.ReplicationError: "ERROR"}

// Replication returns the state of a replication as it is in an answer.
func Replication(i drivebay.ReplicationInfo) *v1alpha1.VolumeReplication {
	out := &v1alpha1.VolumeReplication{Primary: i.Primary, Status: replicationStatuses[i.Status], State: drivebay.Clip(i.State, 64), Message: drivebay.PlainText(i.Message, maxMessage),
		SyncedBytes: bytes(i.Bytes), SyncDuration: metav1.Duration{Duration: i.Duration}}
	if !i.LastSync.IsZero() {
		out.LastSync = metav1.Time{Time: i.LastSync.UTC().Truncate(time.Second)}
	}
	return out
}

// ReplicationInfo returns the state of a replication in an answer.
func ReplicationInfo(r *v1alpha1.VolumeReplication) drivebay.ReplicationInfo {
	out := drivebay.ReplicationInfo{Status: drivebay.ReplicationDegraded, Primary: r.Primary, State: r.State, Message: r.Message,
		ReplicationPast: drivebay.ReplicationPast{LastSync: r.LastSync.Time, Bytes: uint64(max(r.SyncedBytes, 0)), Duration: r.SyncDuration.Duration}}
	for status, name := range replicationStatuses {
		if name == r.Status {
			out.Status = status
		}
	}
	return out
}
