// Package heartbeat tells the controller that the daemon of a node is alive, and what room the node has.
//
// Both are in a Lease of the node, in the namespace of the release: the Lease is renewed anyway, so the room for
// volumes costs no further write. The room is what the engine itself computes, for each kind of drive and
// backing: the controller needs no rules of placement of its own, and a node refuses what the report promised too much.
package heartbeat
