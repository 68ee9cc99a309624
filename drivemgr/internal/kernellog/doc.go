// Package kernellog finds the lines of the kernel log that report faults of drives, counts
// them for a day, and proves by reads that the reported sectors can be read again.
package kernellog
