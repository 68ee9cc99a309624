// Package kernel reads the counters of the kernel for a drive: requests, errors, timeouts,
// filesystem errors.
package kernel
