// Package replication decides what a replicated volume's state means, and which call of the CSI-Addons replication
// contract is allowed in it. It is pure: package drbd reports the state and carries a decision out; Memory is what was reported before.
//
// The direction of a resynchronization comes from DRBD's generation identifiers and from the operator. No decision of this
// package discards local data, except in a split brain that DRBD has reported, on the side that the operator names; DRBD
// proves it again when it connects. Metadata that were never in use cannot defend data: the record of the side says that it
// holds data, and no decision connects such a side, or declares an empty one to be the volume.
package replication
