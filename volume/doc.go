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
//
// Where things are, by what happens to a volume:
//
//	the engine      engine new round lanes lister outcome step
//	what there is   index parts drive lvmindex lvdevice reportof found foundlv learn name
//	where it goes   request placement room space seen spare
//	made, removed   create making copy delete expand snapshot; their plans: partition blank
//	                data overwrite verify, for LVM logical group lvstep lvtags
//	encrypted       luks header mapping rotate
//	used            stage target place mounts table options grow settle stale
//	how it is       watch facts gauge stats scrub check
//	put right       repairs heal* signs* tend mend reclaim
//	off a drive     leave letgo; groups: evacuate herd setout stride carry legs salvage
//	                survey pace throttle; partitions: copyaway moves movework copystep copydata
package volume
