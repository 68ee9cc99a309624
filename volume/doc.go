// Package volume makes volumes out of claimed drives, mounts them, and watches their condition.
//
// A volume is a record and a piece of a drive. The record holds what is wanted and which work is
// in progress; the piece carries the volume's id in its own name (that of a GPT partition or of a
// logical volume), so that losing the records loses no volume. Work that writes to drives is a plan
// of steps, each with a check that reports whether the step is done: interrupted anywhere, the same
// plan starts again from its first step, and comes to the same end.
//
// Calls for one volume run one after the other (ErrPending for the second), and never wait for those
// of another. The health of drives comes from the snapshot of package drivemgr and from the kernel's
// own counters.
//
// This package is the public surface: each call has a file of its name. The work is done by the
// packages below internal, each of which knows only those above it in this list:
//
//	env           what all of them need
//	ledger        records, and who works on which volume
//	steps         plans, and lanes for what may hang
//	mountoptions  what the options of a mount may be, and what is added to them
//	mounttable    what is mounted where
//	capabilities  tools and privileges
//	partitions    partitions of the kernel and of the tables
//	moves         what is being moved
//	groups        volume groups, as LVM reports them
//	device        the layers of a volume; devices opened and proved
//	instances     which of several volumes with one id
//	place         where a volume fits
//	inventory     what is on drives: in use, not read, free
//	erase         blank or not, and wiping
//	write         changes of partition tables and volume groups
//	mirror        which leg is the newest
//	luks          encryption
//	mounts        staging and publishing
//	watch         facts, counters, checks of filesystems
//	provision     creation and deletion
//	snapshots     snapshots
//	expand        growth
//	replicated    the layer that DRBD replicates
//	copyaway      off a drive, by copying
//	evacuate      off a drive, by LVM
//	adopt         volumes without a record
//	repair        repairs
package volume
