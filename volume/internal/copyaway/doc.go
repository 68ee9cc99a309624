// Package copyaway moves volumes that are partitions or whole drives off a drive that leaves: by
// copying them while they are not in use.
package copyaway
