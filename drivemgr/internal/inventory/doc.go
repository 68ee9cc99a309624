// Package inventory lists the drives of a machine from sysfs: identity, paths, bays, uses.
//
// It opens no drive: a drive that hangs does not delay the listing.
package inventory
