// Package suite holds the tests that need real kernels and breakable hardware.
// They run with the build tag "lab": `make lab`.
//
// Tests that mostly wait, for a poll or for the kernel to give up, are parallel;
// tests that measure or that load the processor are not.
package suite
