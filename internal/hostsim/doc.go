// Package hostsim simulates a machine in memory whose drives age, vanish, hang and return wrong data.
//
// It is a host.Machine like the real one: it has a sysfs, a udev database and a mount table with the
// names and the texts that Linux gives them. Its drives answer with pages as the specifications define
// them, and its kernel sends uevents and log lines. Callers of package host cannot see a difference;
// the cases of hosttest run on both.
//
// A machine is described in YAML (Spec). Faults come from its script, from Inject, or over HTTP
// (Handler).
package hostsim
