// Package drivemgr is the drive engine: it lists the drives of the machine, reads
// each drive's state, has internal/health judge it, and publishes one immutable
// snapshot for all readers.
//
//	uevents, ticks ─► observe ─► look (one lane per drive) ─► assess ─► publish
//
// One goroutine (Run) owns all state. Anything that can hang - a command to a drive,
// a read of sysfs, a write to the store - runs in another goroutine and sends its
// result to Run.
package drivemgr
