// Package smartctl decodes the output of `smartctl --json`, of any version since 7.0
// and of any transport, into the same evidence as that of package smart.
//
// Documents come from other programs: fields may be missing, renamed, of another type
// or out of range. Such a field is left out and named in a Problem, and the rest is used.
package smartctl
