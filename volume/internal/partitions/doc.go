// Package partitions knows the partitions of drives: those of the kernel, those of the partition
// tables, and how the two differ. It writes to no drive.
package partitions
