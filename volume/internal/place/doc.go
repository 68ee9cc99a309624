// Package place computes where a volume fits. Its functions are pure: drives and partitions in,
// extents out.
package place
