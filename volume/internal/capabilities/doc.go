// Package capabilities finds out what this machine can do: which tools and filesystems it has,
// and which privileges the daemon lacks.
package capabilities
