// Package smartctl reads what `smartctl --json` wrote, of any version since 7.0
// and of any transport, into the same evidence that our own questions to a
// drive give.
//
// A document is somebody else's: fields may be missing, renamed, of another
// type or beyond every range. Such a field is left out and named in a Problem,
// and the rest is used.
package smartctl
