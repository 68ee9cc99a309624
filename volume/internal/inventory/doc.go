// Package inventory combines the drives, their partitions, the report of LVM and the records: what
// each drive has in use, what is not read yet, and how much space there is (PlacementView).
package inventory
