// Package volume makes volumes out of drives that are claimed, mounts them, and
// knows how they are.
//
// A volume is a record and a piece of a drive. The record says what is wanted and
// what is under way; the piece carries the volume's id in its own name (that of a
// GPT partition or of a logical volume), so that losing the records loses no
// volume. Work that writes to drives is a plan of steps, each with a question that
// tells if it is done: interrupted anywhere, the same plan is begun again from its
// first step, and comes to the same end.
//
// Calls for one volume come one after the other (ErrPending for the second), and
// never wait for those of another. Nothing here asks a drive how it is: that comes
// from package drivemgr's snapshot, and from the kernel's own accounts.
package volume
