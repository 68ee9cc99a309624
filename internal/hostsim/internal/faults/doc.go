// Package faults injects faults into drives and filesystems.
//
// The table lists every fault with its arguments and its function. An Injector finds the drive by its bay,
// its kernel name or its serial number, or the filesystem by its device or mount path, and applies the
// function. heal undoes all of them.
package faults
