// Package replicated is the layer of a volume that a DRBD device replicates to another machine: it is on the piece of the
// volume, below the encryption, so that the peer never gets plain text.
//
// The metadata of DRBD are at the end of the piece, in room that the piece was grown by. The record says that they are there,
// at which size of the piece, which role the volume has, and whether this side holds its data; the kernel says the rest. A
// volume that is not staged stays attached and connected: only its role matters to the peer.
//
// The shared secret comes with a call, and is kept by the kernel alone. After a restart the disk is attached and gets its
// role back, and is connected if the options have the secret; else the connection waits for the next call.
//
// Where the replication is disabled before the copy was complete, the device goes and the metadata stay: the volume is
// used when an operator accepts its data, or is the target of another copy.
//
//	Replicator  enable, disable, promote, demote, resync, growth
//	Devices     the DRBD device: metadata, attach, role, connection, removal
//	Observer    what the kernel says, for conditions and callers; what of it is recorded
package replicated
