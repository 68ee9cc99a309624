package drivebay

import (
	"net/netip"
	"time"
)

// Replication is how a volume is replicated to a volume of another machine. It has no secret: it is stored and shown to people.
type Replication struct {
	// Minor is the number of the DRBD device, which no other volume of the machine has.
	Minor uint32 `json:"minor"`
	ReplicationLink
	// HoldsData is true if the volume had its data here when its replication was enabled, or was primary here since.
	// Metadata that were never in use cannot defend data.
	HoldsData bool `json:"holdsData,omitempty"`
	Used      bool `json:"used,omitempty"` // the data have a generation: metadata without one were made after this was recorded
	// Primary is the role that the volume has here: only a primary is staged.
	Primary bool `json:"primary,omitempty"`
	// Behind: it was primary here without its disk, so that only the peer has what was written since.
	Behind bool `json:"behind,omitempty"`
	// Room is what the piece of the volume has at its end for the metadata of DRBD, whatever the size of the volume.
	Room uint64 `json:"room"`
	// Disk is the size of the piece at whose end the metadata are; 0: they are not written yet, and the volume is
	// used like any other.
	Disk  uint64    `json:"disk,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Ended: it was disabled before the copy from the peer was complete, or its record was lost. Its data wait for an operator
	// to accept them, or for another copy; its metadata stay.
	Ended bool `json:"ended,omitempty"`
	// Conflict is why the kernel refused the peer's data when it connected last; it ends with the next connection.
	Conflict ReplicationConflict `json:"conflict,omitempty"`
	// Past is what was last known of both sides being in sync.
	Past ReplicationPast `json:"past,omitzero"`
}

// ReplicationLink is how a volume is connected to that of its peer.
type ReplicationLink struct {
	// Local and Peer are the addresses of the connection. The kernel needs ports of its own for each.
	Local    netip.AddrPort `json:"local"`
	Peer     netip.AddrPort `json:"peer"`
	Protocol string         `json:"protocol"` // A or C
	// Pair is what the two volumes are called together; empty: the id of both, which follows from their name. The secret
	// of their connection is made from it, so that volumes that are no pair do not connect.
	Pair string `json:"pair,omitempty"`
	// MaxResyncRate limits the resynchronization, in KiB/s; 0: the kernel's default.
	MaxResyncRate uint32 `json:"maxResyncRate,omitempty"`
}

// ReplicationConflict is a relation of the data of two sides that only an operator can resolve.
type ReplicationConflict string

// The conflicts.
const (
	// SplitBrain: both sides were written without the other one since they were the same.
	SplitBrain ReplicationConflict = "split brain"
	// UnrelatedData: the data of the two sides have no common history.
	UnrelatedData ReplicationConflict = "unrelated data"
	// PeerTooSmall: the volume of the peer is smaller than the data of this side.
	PeerTooSmall ReplicationConflict = "peer too small"
	// RefusedByPeer: the peer ended the connection when it had seen this side's state; why is known there only.
	RefusedByPeer ReplicationConflict = "refused by the peer"
)

// ReplicationPast is what is known of synchronizations.
type ReplicationPast struct {
	// LastSync is when both sides were last known to have the same data; zero: never.
	LastSync time.Time `json:"lastSync,omitzero"`
	// Bytes and Duration are those of the last resynchronization that came to its end.
	Bytes    uint64        `json:"bytes,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
}

// Replicated reports whether a DRBD device is between the volume's data and its drive.
func (v *Volume) Replicated() bool { return v.Replication != nil && v.Replication.Disk > 0 }

// Replicates reports whether the volume is replicated now: its replication has not ended.
func (v *Volume) Replicates() bool { return v.Replicated() && !v.Replication.Ended }

// LostReplication is what is known of the replication of a piece that is marked as replicated: its metadata are at its end.
func LostReplication(size uint64) *Replication { return &Replication{Ended: true, Disk: size} }

// Lost reports whether a volume was found that was replicated, and nothing more is known of that.
func (r *Replication) Lost() bool { return r.Ended && !r.Peer.IsValid() }

// Why is why a volume cannot be used whose replication has ended.
func (r *Replication) Why() string {
	if r.Lost() {
		return "it was replicated when its record was lost: its data may be an old or incomplete copy"
	}
	return "its replication ended before the copy from the peer was complete: its data are incomplete or old"
}

// SecretReplication is the key of the shared secret of a replication among the secrets of a call.
const SecretReplication = "replicationSecret"

// ReplicationRequest is what the replication of a volume is enabled with.
type ReplicationRequest struct {
	Volume string
	ReplicationLink
	// HoldsData: the data of this side are the volume. Else the peer's replace them.
	HoldsData bool
	Secrets   Secrets
}

// ReplicationCall is a call for a volume that is replicated.
type ReplicationCall struct {
	Volume  string
	Force   bool
	Secrets Secrets
}

// ReplicationStatus says how well a volume is replicated.
type ReplicationStatus int

// The statuses.
const (
	// ReplicationHealthy: both sides have the same data.
	ReplicationHealthy ReplicationStatus = iota + 1
	// ReplicationDegraded: writes reach one side only, or later.
	ReplicationDegraded
	// ReplicationError: an operator has to decide which data are discarded.
	ReplicationError
)

// ReplicationInfo is what is known of the replication of a volume.
type ReplicationInfo struct {
	Status  ReplicationStatus `json:"-"`
	Primary bool              `json:"primary"`
	// State is the state in a word or two, and Message says more of it, if it is not the wanted one.
	State     string `json:"state"`
	Message   string `json:"message,omitempty"`
	Connected bool   `json:"connected"`
	// NoDisk: the kernel has no disk of this side, because its drive is gone or has failed.
	NoDisk bool `json:"noDisk,omitempty"`
	// Remote: this side has no disk any more, and the primary here reads and writes the data of the peer.
	Remote bool `json:"remote,omitempty"`
	// OutOfSync is how many bytes differ from the peer, or may.
	OutOfSync uint64 `json:"outOfSync,omitempty"`
	// Conflict is why the kernel refuses the peer's data.
	Conflict ReplicationConflict `json:"conflict,omitempty"`
	ReplicationPast
}
