// Package poll reads each drive at its interval, applies the result to the drive, and assesses
// its health from all evidence.
//
// A drive is read in its own lane and at most once at a time: a drive that hangs delays no other.
package poll
