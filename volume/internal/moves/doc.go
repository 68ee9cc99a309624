// Package moves remembers which volumes and volume groups are being moved off their drives, and
// how far they are.
package moves
