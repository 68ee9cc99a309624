// Package env holds what every part of the volume engine needs and none of them changes: the
// machine, the drive manager, the record store, LVM and the options.
package env
