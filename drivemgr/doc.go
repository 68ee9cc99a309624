// Package drivemgr is the drive engine: it lists the drives of the machine, reads
// each drive's state, has internal/health assess it, and publishes one immutable
// snapshot for all readers.
//
//	uevents, ticks ─► list ─► read (one lane per drive) ─► assess ─► publish
//
// One goroutine (Run) owns all state. Anything that can hang - a command to a drive,
// a read of sysfs, a write to the store - runs in another goroutine and sends its
// result to Run.
//
// This package is the public surface and the loop of Run. The work is done by the packages
// below internal, each of which knows only those above it in this list:
//
//	sysfs        attribute files of the kernel, and what udev recorded
//	identity     the id of a drive
//	inventory    the drives of a machine, their paths, bays and uses
//	kernel       counters and states of the kernel for a drive
//	kernellog    faults of drives in the kernel log
//	evidence     health pages and content, read from one drive
//	records      records and events, kept in the store
//	policy       pure decisions: releases, self-tests
//	state        the drives that the manager tracks
//	lights       locate lights of bays
//	claims       claims of drives for volumes; successors
//	selftests    self-tests
//	poll         readings of drives, and the assessment of their results
//	replacement  release, removal and return of a drive
//	tracking     listings: drives that appeared, vanished, moved or are copies
package drivemgr
