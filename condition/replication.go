package condition

import "github.com/drivebay/drivebay"

const kepReplication = "CSI-Addons specification, replication, GetVolumeReplicationInfo"

var replicationRules = []Rule{
	{
		Section: OnReplication, Reason: "ReplicaIncomplete", Severity: drivebay.SeverityInaccessible,
		When: "the replication of the volume was disabled before the copy from the peer was complete, or the volume was found with a mark of replication and without its record",
		Says: "which of the two", Next: "Enable the replication again with the role target, or delete the volume. To use the data as they are, run `drivebay volume accept-loss {volume} --yes`.",
		Source: "DRBD: a disk that is Inconsistent or Outdated has a mixture of old and new blocks, or old ones",
		check: func(l *look) *hit {
			if r := l.Volume.Replication; r == nil || !r.Ended {
				return nil
			}
			return say(nil, "%s", l.Volume.Replication.Why())
		},
	},
	{
		Section: OnReplication, Reason: "ReplicationConflict", Severity: drivebay.SeverityDegraded,
		When: "the kernel refuses the data of the peer: both sides were written without the other one (split brain), or their data have no common history",
		Says: "which of the two", Next: "Follow \"Split brain\" in docs/replication.md: on the side whose data are to be discarded, `drivebay replication resync {volume} --force --secret-file FILE --yes`, after a demote.",
		Source: kepReplication,
		check: func(l *look) *hit {
			if r := l.Replication; r != nil && r.Status == drivebay.ReplicationError {
				return say(nil, "its replication has a conflict (%s): %s", r.Conflict, r.Message)
			}
			return nil
		},
	},
	{
		Section: OnReplication, Reason: "ReplicationDegraded", Severity: drivebay.SeverityDegraded,
		When: "the peer does not have the data of the volume: it does not answer, its disk is missing, a copy is under way, or a verification found differences; or the kernel holds all requests of the volume",
		Says: "the state of the replication, and why", Next: "Run `drivebay replication status {volume}` on both sides. A copy that is under way ends by itself.",
		Source: kepReplication,
		check: func(l *look) *hit {
			if r := l.Replication; r != nil && r.Status == drivebay.ReplicationDegraded {
				return say(nil, "its replication is %s: %s", r.State, r.Message)
			}
			return nil
		},
	},
}
