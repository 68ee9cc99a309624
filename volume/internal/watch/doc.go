// Package watch observes volumes: their usage, their filesystems, the counters of their drives and
// the kernel's log. It computes the facts from which conditions are derived.
package watch
