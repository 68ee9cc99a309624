// Package hostsim is a machine in memory whose drives age, vanish, hang and lie.
//
// It is a host.Machine like the real one: it has a sysfs, a udev database and a
// mount table with the names and the texts that Linux gives them, its drives
// answer with pages as the specifications lay them out, and its kernel talks by
// uevents and log lines. Nothing above host can tell the difference; the cases
// of hosttest run on both.
//
// A machine is described in YAML (Spec). Faults come from its script, from
// Inject, or over HTTP (Handler).
package hostsim
