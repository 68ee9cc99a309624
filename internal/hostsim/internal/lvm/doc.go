// Package lvm simulates lvm(8) of lvm2 2.03.16 and dmsetup(8), as far as package lvm of the engine uses
// them, with their messages and exit statuses.
//
// State is what LVM knows: volume groups, physical and logical volumes, by the labels on the drives. A
// command first scans the devices that it may use; a report and a change both work on that scan. The
// targets of device-mapper for mirrors and thin volumes are here, with the superblocks by which the kernel
// decides which leg of a mirror is the newest.
//
// A test can kill a command at each point where it has committed, activated or wiped something.
package lvm
