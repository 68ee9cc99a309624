// Package sysfs reads attribute files of the kernel and what udev recorded about a device.
package sysfs
