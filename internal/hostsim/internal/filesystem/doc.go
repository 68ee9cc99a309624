// Package filesystem simulates mounted filesystems, and the programs that make and check filesystems.
//
// A Mounter implements host.Mounter: the mount table, and the folders and files that are outside the
// filesystems of drives. Mounted is a filesystem of a device while it is mounted: it shows its files in
// sysfs, counts errors and turns read-only as the kernel does.
//
// The state of a filesystem that is not mounted is on its device only (package content).
package filesystem
