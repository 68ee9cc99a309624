// Package drivemgr is the engine of the drives: it observes the machine, asks
// each drive how it is, has that judged, and publishes one immutable snapshot
// that everybody else reads.
//
//	uevents, ticks ─► observe ─► look (a lane a drive) ─► assess ─► publish
//
// One goroutine (Run) owns all state. Whatever can hang - a question to a drive,
// a walk through sysfs, a write to the store - runs elsewhere and sends its
// result back to it.
package drivemgr
