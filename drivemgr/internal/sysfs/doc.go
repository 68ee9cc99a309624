// Package sysfs reads attribute files of the kernel and the udev database.
package sysfs
