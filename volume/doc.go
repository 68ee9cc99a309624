// Package volume makes volumes out of claimed drives, mounts them, and watches
// their condition.
//
// A volume is a record and a piece of a drive. The record holds what is wanted and
// which work is in progress; the piece carries the volume's id in its own name
// (that of a GPT partition or of a logical volume), so that losing the records loses
// no volume. Work that writes to drives is a plan of steps, each with a check that
// reports whether the step is done: interrupted anywhere, the same plan starts again
// from its first step, and comes to the same end.
//
// Calls for one volume run one after the other (ErrPending for the second), and
// never wait for those of another. The health of drives comes from the snapshot of
// package drivemgr and from the kernel's own counters.
//
// Where things are, by what happens to a volume:
//
//	the engine      engine new run provisioning lister lanes outcome step unwritten older
//	what there is   index parts drive layout learn unread readiness capabilities lacking
//	                lvmindex lvmread lvdevice reportof name instance instancetime recorded
//	found, adopted  found foundlv foundunclaimed copied
//	where it goes   request placement room space spare makeroom
//	made, removed   create copy delete expand newextents snapshot forgetdrive; their plans:
//	                writable partition partitionattributes blank data overwrite remains
//	                remainswipe, for LVM logical group lvstep lvtags
//	encrypted       luks header mapping rotate
//	mirrors         mirror mirrorleg mirrorlegs mirrorwatch survivingmirror
//	used            stage publish path mounts mounttable options grow settle stale lostmounts
//	                unrecorded abandoned
//	how it is       watch facts mountfacts seen iocounters stats scrub check conditionevents
//	repaired        repairs heal* diagnosis* verify autorepair operator reclaim
//	off a drive     leave release; groups: evacuate evacuatestep volumegroup groupmove movelv
//	                movedsince salvage survey pace throttle; partitions: copyaway copymove
//	                copymoves copystep copydata leftcopy
package volume
