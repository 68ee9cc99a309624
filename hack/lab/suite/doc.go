// Package suite holds the tests that need real kernels and breakable hardware.
// They run with the build tag "lab": `make lab`.
package suite
