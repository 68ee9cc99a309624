// Package hostsim simulates a machine in memory whose drives age, vanish, hang and return wrong data.
//
// It is a host.Machine like the real one: it has a sysfs, a udev database and a mount table with the
// names and the texts that Linux gives them. Its drives answer with pages as the specifications define
// them, and its kernel sends uevents and log lines. Callers of package host cannot see a difference;
// the cases of hosttest run on both.
//
// A machine is described in YAML (Spec). Faults come from its script, from Inject, or over HTTP
// (Handler).
//
// This package is the public surface. The simulation is done by the packages below internal, each of
// which knows only those above it in this list:
//
//	sysfs       files of sysfs, proc, udev and /dev
//	kernel      lock, clock, events and log
//	model       kinds, identity and age of drives
//	pages       pages that drives answer, and self-tests
//	content     what is written on drives
//	block       drives, bays and block devices
//	program     arguments and output of programs
//	filesystem  filesystems, mounts, mkfs and fsck
//	crypt       dm-crypt and cryptsetup
//	lvm         lvm and dmsetup
//	drbd        DRBD and drbdmeta
//	faults      faults of drives and filesystems
package hostsim
