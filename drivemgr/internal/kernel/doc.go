// Package kernel reads what the kernel counts for a drive: requests, errors, timeouts, filesystem errors.
package kernel
