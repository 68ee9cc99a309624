// Package block simulates drives, their bays, and the block devices that the kernel has of them.
//
// Devices is the table of all of them. A Drive is in a bay, in the case or on the shelf; plugging it in
// adds its entries in sysfs and its disks and partitions. A Device is a disk (one path to a drive), a
// partition or a mapped device; its bytes come from a Backing: a drive, a partition, or a target of
// device-mapper, of which this package has the linear one.
//
// Every access asks the drives below first: a drive that hangs lets the caller wait, as the kernel does.
// Faults of a drive are fields here; the functions that set them are in package faults.
package block
