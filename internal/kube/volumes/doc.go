// Package volumes is the part of a node in the Volume objects: it shows the volumes of the engine as objects,
// and does what the controller requests in them.
//
// The engine's records are the truth. An object that is deleted is written again; only spec.release deletes
// data. What an object requests is derived from the object and the engine each time, never remembered: a
// daemon that is killed at any moment continues with the same decision.
package volumes
