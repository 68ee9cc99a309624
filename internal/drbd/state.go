package drbd

import "fmt"

// Role is enum drbd_role.
type Role uint8

// The roles. RoleUnknown is that of a peer that is not connected.
const (
	RoleUnknown Role = iota
	RolePrimary
	RoleSecondary
)

func (r Role) String() string { return name(int(r), "Unknown", "Primary", "Secondary") }

// Connection is enum drbd_conns. Their order matters: below WFReportParams the peer is not connected.
type Connection uint8

// The states of a connection.
const (
	StandAlone Connection = iota
	Disconnecting
	Unconnected
	Timeout
	BrokenPipe
	NetworkFailure
	ProtocolError
	TearDown
	WFConnection
	WFReportParams
	Connected
	StartingSyncS
	StartingSyncT
	WFBitMapS
	WFBitMapT
	WFSyncUUID
	SyncSource
	SyncTarget
	VerifyS
	VerifyT
	PausedSyncS
	PausedSyncT
	Ahead
	Behind
)

func (c Connection) String() string {
	return name(int(c), "StandAlone", "Disconnecting", "Unconnected", "Timeout", "BrokenPipe", "NetworkFailure", "ProtocolError", "TearDown",
		"WFConnection", "WFReportParams", "Connected", "StartingSyncS", "StartingSyncT", "WFBitMapS", "WFBitMapT", "WFSyncUUID",
		"SyncSource", "SyncTarget", "VerifyS", "VerifyT", "PausedSyncS", "PausedSyncT", "Ahead", "Behind")
}

// Disk is enum drbd_disk_state. Only UpToDate serves reads and writes of a user.
type Disk uint8

// The states of a disk. DiskUnknown is that of a peer that is not connected.
const (
	Diskless Disk = iota
	Attaching
	Failed
	Negotiating
	Inconsistent
	Outdated
	DiskUnknown
	Consistent
	UpToDate
)

func (d Disk) String() string {
	return name(int(d), "Diskless", "Attaching", "Failed", "Negotiating", "Inconsistent", "Outdated", "DUnknown", "Consistent", "UpToDate")
}

func name(i int, names ...string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown state %d", i)
}

// State is union drbd_state.
type State struct {
	Role, Peer     Role
	Connection     Connection
	Disk, PeerDisk Disk
	// Suspended means that DRBD holds all I/O of the device.
	Suspended bool
}

// decodeState takes the fields out of the word. The union is a bit field whose order the header turns around
// on big-endian machines, so that the role is in the low bits of the word on all of them.
func decodeState(w uint32) State {
	return State{
		Role:       Role(w & 3),
		Peer:       Role(w >> 2 & 3),
		Connection: Connection(w >> 4 & 31),
		Disk:       Disk(w >> 9 & 15),
		PeerDisk:   Disk(w >> 13 & 15),
		Suspended:  w>>17&1 != 0 || w>>21&1 != 0 || w>>22&1 != 0, // susp, susp_nod, susp_fen
	}
}
