// Package state holds the drives that the manager tracks, their records and their events.
//
// The fields of State that the goroutine of Run owns are changed only there: a call from
// outside runs as a function in that goroutine (see Do).
package state
